"""Convert the result of a server's tool to a result of this package.

In:  the SDK's `CallToolResult`, or its error.
Out: texts and media in the server's order; an error if the tool reports a failure.

Most servers repeat structured content as text. It is returned once,
after the other parts if no text repeats it.
"""

import json
from collections.abc import Iterable

from mcp import MCPError
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from actors.core.data.jsonio import is_array, is_object
from actors.core.values.content import Media
from actors.tools.mcp.refusals import too_large


class ServerToolError(Exception):
    """A server's tool failed. The message is the server's."""


def tool_output(result: CallToolResult) -> object:
    """Return the output of a tool.

    Raises:
        ServerToolError: The tool reports a failure.
    """
    parts = [part for block in result.content for part in _parts(block)]
    texts = [part for part in parts if isinstance(part, str)]
    if (structured := result.structured_content) is not None:
        if _is_repeated(structured, texts):
            parts = _without_repeats(parts, structured)
        else:
            parts.append(_compact(structured))
    if result.is_error:
        texts = [part if isinstance(part, str) else f"[{part.media_type}]" for part in parts]
        raise ServerToolError("\n".join(filter(None, texts)) or "the tool gave no reason")
    return parts[0] if len(parts) == 1 else parts or ""


def failure(error: MCPError) -> Exception:
    """Return the error for a call that a server rejected, with the server's details."""
    if (problem := too_large(error.error)) is not None:
        return problem
    details = _compact(error.error.data)
    return ServerToolError(f"{error.message} (code {error.code})" + (f"\n{details}" if details else ""))


def _parts(block: ContentBlock) -> Iterable[str | Media]:
    match block:
        case TextContent(text=text):
            yield text
        case ImageContent(data=data, mime_type=media_type) | AudioContent(data=data, mime_type=media_type):
            yield Media(media_type, data)
        case ResourceLink():
            yield _link(block)
        case EmbeddedResource(resource=resource):
            yield from _embedded_parts(resource)


def _link(link: ResourceLink) -> str:
    """Return the text for a link: name, address, title, type and description, for the model to choose by."""
    about = {"title": link.title, "type": link.mime_type, "description": link.description}
    more = "".join(f"; {key}: {' '.join(text.split())}" for key, text in about.items() if text)
    return f"[Resource {link.name}: {link.uri}{more}]"


def _embedded_parts(resource: TextResourceContents | BlobResourceContents) -> Iterable[str | Media]:
    if isinstance(resource, TextResourceContents):
        yield f"[Resource {resource.uri}]\n{resource.text}"
    else:
        yield f"[Resource {resource.uri}]"
        yield Media(resource.mime_type or "application/octet-stream", resource.blob)


def _is_repeated(structured: object, texts: list[str]) -> bool:
    """Return True if the texts contain the structured content, or the value that it wraps."""
    wrapped = structured
    if is_object(structured) and structured.keys() == {"result"}:
        wrapped = structured["result"]
    if any(_is_text_of(text, structured) or _is_text_of(text, wrapped) for text in texts):
        return True
    # The SDK's servers send each value of a list as a separate text.
    return is_array(wrapped) and len(wrapped) == len(texts) > 0 and all(map(_is_text_of, texts, wrapped))


def _without_repeats(parts: list[str | Media], structured: object) -> list[str | Media]:
    """Return the parts without repeated texts of the structured content."""
    repeats = [at for at, part in enumerate(parts) if isinstance(part, str) and _is_text_of(part, structured)]
    return [part for at, part in enumerate(parts) if at not in repeats[1:]]


def _is_text_of(text: str, value: object) -> bool:
    """Return True if a text is the value, or its JSON."""
    if isinstance(value, str) and text == value:
        return True
    try:
        return bool(_canonical(json.loads(text)) == _canonical(value))
    except (ValueError, RecursionError):
        return False


def _canonical(value: object) -> str:
    """Return JSON for comparing values: `1` differs from `true`, and the order of keys is ignored."""
    return json.dumps(value, sort_keys=True)


def _compact(value: object) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
