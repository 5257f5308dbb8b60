"""What a call of a server's tool came to, as a tool of this package returns it.

In:  the SDK's `CallToolResult`.
Out: texts and media in the server's order; an error if the tool says that it failed.

Structured content is given once: servers repeat it as a text, and one that does not has it put behind the others.
"""

import json
from collections.abc import Iterable

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

from actors.core.content import Media


class ServerToolError(Exception):
    """A tool of a server failed, in its own words."""


def returned(result: CallToolResult) -> object:
    """Return what a tool gave.

    Raises:
        ServerToolError: It says that it failed.
    """
    parts = [part for block in result.content for part in _parts(block)]
    texts = [part for part in parts if isinstance(part, str)]
    if result.is_error:
        raise ServerToolError("\n".join(texts) or _compact(result.structured_content) or "it did not say why")
    if result.structured_content is not None and not _is_said(result.structured_content, texts):
        parts.append(_compact(result.structured_content))
    return parts[0] if len(parts) == 1 else parts or ""


def _parts(block: ContentBlock) -> Iterable[str | Media]:
    match block:
        case TextContent(text=text):
            yield text
        case ImageContent(data=data, mime_type=mime) | AudioContent(data=data, mime_type=mime):
            yield Media(mime, data)
        case ResourceLink(uri=uri, name=name):
            yield f"[Resource {name}: {uri}]"
        case EmbeddedResource(resource=resource):
            yield from _embedded(resource)


def _embedded(resource: TextResourceContents | BlobResourceContents) -> Iterable[str | Media]:
    if isinstance(resource, TextResourceContents):
        yield f"[Resource {resource.uri}]\n{resource.text}"
    else:
        yield f"[Resource {resource.uri}]"
        yield Media(resource.mime_type or "application/octet-stream", resource.blob)


def _is_said(structured: object, texts: list[str]) -> bool:
    """Say whether one of the texts is the structured content, or the plain value that it wraps."""
    wrapped = (
        structured.get("result") if isinstance(structured, dict) and len(structured) == 1 else structured
    )
    return any(_is_json(text, structured) or text == wrapped or _is_json(text, wrapped) for text in texts)


def _is_json(text: str, value: object) -> bool:
    try:
        return bool(json.loads(text) == value)
    except (ValueError, RecursionError):
        return False


def _compact(value: object) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
