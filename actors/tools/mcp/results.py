"""Turn the result of a call of a server's tool into the result of a tool of this package.

In:  the SDK's `CallToolResult`, or its error.
Out: texts and media in the server's order; an error if the tool says that it failed.

Structured content is given once: most servers repeat it as text. If no text repeats it, it follows the other parts.
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

from actors.core.values.content import Media
from actors.tools.mcp.refusals import too_large


class ServerToolError(Exception):
    """A tool of a server failed, in its own words."""


def returned(result: CallToolResult) -> object:
    """Return what a tool gave.

    Raises:
        ServerToolError: It says that it failed.
    """
    parts = [part for block in result.content for part in _parts(block)]
    texts = [part for part in parts if isinstance(part, str)]
    if (structured := result.structured_content) is not None:
        if _is_said(structured, texts):
            parts = _once(parts, structured)
        else:
            parts.append(_compact(structured))
    if result.is_error:
        words = [part if isinstance(part, str) else f"[{part.media_type}]" for part in parts]
        raise ServerToolError("\n".join(filter(None, words)) or "it did not say why")
    return parts[0] if len(parts) == 1 else parts or ""


def failure(error: MCPError) -> Exception:
    """Return the error of a call that a server refused, with all that the server says of it."""
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
            yield from _embedded(resource)


def _link(link: ResourceLink) -> str:
    """Return a link with all that the model can choose by: address, name, title, type and description."""
    about = {"title": link.title, "type": link.mime_type, "description": link.description}
    more = "".join(f"; {key}: {' '.join(text.split())}" for key, text in about.items() if text)
    return f"[Resource {link.name}: {link.uri}{more}]"


def _embedded(resource: TextResourceContents | BlobResourceContents) -> Iterable[str | Media]:
    if isinstance(resource, TextResourceContents):
        yield f"[Resource {resource.uri}]\n{resource.text}"
    else:
        yield f"[Resource {resource.uri}]"
        yield Media(resource.mime_type or "application/octet-stream", resource.blob)


def _is_said(structured: object, texts: list[str]) -> bool:
    """Return True if the texts say the structured content, or the plain value or list that it wraps."""
    wrapped = structured
    if isinstance(structured, dict) and structured.keys() == {"result"}:
        wrapped = structured["result"]
    if any(_says(text, structured) or _says(text, wrapped) for text in texts):
        return True
    # The SDK's servers send each value of a list as a text of its own.
    return isinstance(wrapped, list) and len(wrapped) == len(texts) > 0 and all(map(_says, texts, wrapped))


def _once(parts: list[str | Media], structured: object) -> list[str | Media]:
    """Return the parts without the second and further texts that say all of the structured content."""
    repeats = [at for at, part in enumerate(parts) if isinstance(part, str) and _says(part, structured)]
    return [part for at, part in enumerate(parts) if at not in repeats[1:]]


def _says(text: str, value: object) -> bool:
    """Return True if a text is a value, or its JSON."""
    if isinstance(value, str) and text == value:
        return True
    try:
        return bool(_sorted(json.loads(text)) == _sorted(value))
    except (ValueError, RecursionError):
        return False


def _sorted(value: object) -> str:
    """Return JSON by which values are compared: `1` is not `true`, and the order of keys means nothing."""
    return json.dumps(value, sort_keys=True)


def _compact(value: object) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
