"""Convert the result of an MCP server's tool to texts and media.

In:  the SDK's `CallToolResult`, or its error.
Out: texts and media in the server's order; an error if the tool reports a failure.

Most servers send structured content twice, as JSON and as text. This module returns structured content once: as the
server's text, or as an additional text if no text contains it.
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
from actors.tools.mcp.refusals import decode_error


class ServerToolError(Exception):
    """A tool failed on the server. Contains the server's message."""


def tool_output(result: CallToolResult) -> object:
    """Return the output of a tool: a string or `Media`, a list if there are several, or "" if there is none.

    Raises:
        ServerToolError: The tool reports a failure.
    """
    parts = [part for block in result.content for part in _convert_block(block)]
    texts = [part for part in parts if isinstance(part, str)]
    if (structured := result.structured_content) is not None:
        if _is_repeated(structured, texts):
            parts = _without_repeated_texts(parts, structured)
        else:
            parts.append(_compact_json(structured))
    if result.is_error:
        texts = [part if isinstance(part, str) else f"[{part.media_type}]" for part in parts]
        raise ServerToolError("\n".join(filter(None, texts)) or "the tool gave no reason")
    return parts[0] if len(parts) == 1 else parts or ""


def rejection_error(error: MCPError) -> Exception:
    """Return the error for a call that a server rejected, with the code and the details from the server."""
    if (problem := decode_error(error.error)) is not None:
        return problem
    details = _compact_json(error.error.data)
    return ServerToolError(f"{error.message} (code {error.code})" + (f"\n{details}" if details else ""))


def _convert_block(block: ContentBlock) -> Iterable[str | Media]:
    """Convert a content block to texts and media."""
    match block:
        case TextContent(text=text):
            yield text
        case ImageContent(data=data, mime_type=media_type) | AudioContent(data=data, mime_type=media_type):
            yield Media(media_type, data)
        case ResourceLink():
            yield _link_text(block)
        case EmbeddedResource(resource=resource):
            yield from _convert_resource(resource)


def _link_text(link: ResourceLink) -> str:
    """Return a text for a link to a resource, with the details that help a model decide whether to read it."""
    about = {"title": link.title, "type": link.mime_type, "description": link.description}
    more = "".join(f"; {key}: {' '.join(text.split())}" for key, text in about.items() if text)
    return f"[Resource {link.name}: {link.uri}{more}]"


def _convert_resource(resource: TextResourceContents | BlobResourceContents) -> Iterable[str | Media]:
    """Convert an embedded resource to its text, or to its media with a line that gives its address."""
    if isinstance(resource, TextResourceContents):
        yield f"[Resource {resource.uri}]\n{resource.text}"
    else:
        yield f"[Resource {resource.uri}]"
        yield Media(resource.mime_type or "application/octet-stream", resource.blob)


def _is_repeated(structured: object, texts: list[str]) -> bool:
    """Return True if the texts contain the structured content, or the value if the content is `{"result": value}`."""
    wrapped = structured
    if is_object(structured) and structured.keys() == {"result"}:
        wrapped = structured["result"]
    if any(_is_text_of(text, structured) or _is_text_of(text, wrapped) for text in texts):
        return True
    # Servers built with the SDK send each value of a list as a separate text.
    return is_array(wrapped) and len(wrapped) == len(texts) > 0 and all(map(_is_text_of, texts, wrapped))


def _without_repeated_texts(parts: list[str | Media], structured: object) -> list[str | Media]:
    """Keep only the first of the texts that repeat the structured content."""
    repeats = [at for at, part in enumerate(parts) if isinstance(part, str) and _is_text_of(part, structured)]
    return [part for at, part in enumerate(parts) if at not in repeats[1:]]


def _is_text_of(text: str, value: object) -> bool:
    """Return True if a text is the JSON of a value, or equals a value that is a string."""
    if isinstance(value, str) and text == value:
        return True
    try:
        return bool(_comparable_json(json.loads(text)) == _comparable_json(value))
    except (ValueError, RecursionError):
        return False


def _comparable_json(value: object) -> str:
    """Return JSON for comparing values: `1` differs from `true`, and the order of keys does not matter."""
    return json.dumps(value, sort_keys=True)


def _compact_json(value: object) -> str:
    """Return a value as compact JSON; "" for None."""
    return "" if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
