"""Clean the answers of an MCP server so that the SDK accepts them, and convert the result of a tool to texts and media.

The SDK rejects a complete list of tools if one tool is invalid. It also rejects a result that does not fit the tool's
output schema, although the tool has already run. So this module drops invalid tools and output schemas, turns invalid
blocks into text, and builds results from the fields that it knows.

Most servers send structured content twice, as JSON and as text. This module returns structured content once: as the
server's text, or as an additional text if no text contains it.

A JSON-RPC error replaces an oversized answer, so that the SDK ends the request normally. This module and `connection`
convert the error back to an exception, which the call or the opening of the toolset then raises.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from mcp import MCPError
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ErrorData,
    ImageContent,
    RequestId,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from actors.core.data.jsonio import is_array, is_object
from actors.core.values.content import Media
from actors.errors import AnswerTooLarge
from actors.tools.mcp.options import too_large_error

CODE = -32_089
"""The JSON-RPC code of the error that replaces an oversized answer. Servers do not use this code."""
Fields: TypeAlias = dict[str, Any]  # Any: a server may send any JSON
OnDroppedTool: TypeAlias = Callable[[str, str], None]
"""Called with the name of a dropped tool and the reason."""
MAX_TOOLS = 1000  # maximum number of tools of one server; no provider accepts more
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
# Defaults of fields that the 2026 protocol requires and older servers do not send.
_LATER = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def clean_result(method: str, result: Fields, on_dropped: OnDroppedTool) -> Fields:
    """Return the result of a request in a form that the SDK accepts.

    Args:
        method: The method of the request, such as `tools/list`.
        result: The result from the server.
        on_dropped: Called with the name of each invalid tool and the reason.
    """
    match method:
        case "initialize":
            return {"capabilities": {}, "serverInfo": {"name": "", "version": ""}, **result}
        case "tools/list":
            return _clean_listing(result, on_dropped)
        case "tools/call" if result.get("resultType", "complete") == "complete":
            return _clean_call_result(result)
        case _:
            return result


def _clean_listing(result: Fields, on_dropped: OnDroppedTool) -> Fields:
    """Return a page of a tool list without invalid tools. `on_dropped` is called for each invalid tool."""
    listed = result.get("tools")
    if not is_array(listed):
        return result
    tools: list[Fields] = []
    for entry in listed[:MAX_TOOLS]:
        try:
            tools.append(_clean_tool(entry))
        except ValueError as error:
            name = entry.get("name") if is_object(entry) else None
            on_dropped(name if isinstance(name, str) else "", str(error))
    cursor = result.get("nextCursor")
    return {**_LATER, "tools": tools, **({"nextCursor": cursor} if isinstance(cursor, str) else {})}


def _clean_tool(entry: object) -> Fields:
    """Return a tool with only the fields that this module knows.

    Raises:
        ValueError: The entry is not a valid tool.
    """
    if not is_object(entry):
        raise ValueError(
            f"an entry in the server's list of tools is of type {type(entry).__name__}, not an object"
        )
    if not isinstance(entry.get("name"), str):
        raise ValueError("an entry in the server's list of tools has no name")
    tool: Fields = {"name": entry["name"], "inputSchema": _clean_schema(entry.get("inputSchema"))}
    for key in ("title", "description"):
        if isinstance(entry.get(key), str):
            tool[key] = entry[key]
    hints = entry.get("annotations")
    if is_object(hints):
        tool["annotations"] = {key: hints[key] for key in _HINTS if isinstance(hints.get(key), bool)}
        if isinstance(hints.get("title"), str):
            tool.setdefault("title", hints["title"])
    return tool


def _clean_schema(value: object) -> Fields:
    """Return an input schema that the SDK accepts. Raises `ValueError` if the value is not a schema of an object."""
    if not is_object(value):
        raise ValueError("the inputSchema is not an object")
    schema: Fields = {"type": "object", **value}
    if schema["type"] != "object":
        raise ValueError(
            f'the inputSchema has the type {json.dumps(schema["type"])[:40]} instead of "object"'
        )
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not is_object(properties):
        raise ValueError("the properties of the inputSchema are not an object")
    if odd := next((name for name, each in properties.items() if not isinstance(each, dict | bool)), None):
        raise ValueError(f"the property {odd[:40]!r} of the inputSchema is not a schema")
    if not is_array(required) or not all(isinstance(name, str) for name in required):
        raise ValueError("the field required of the inputSchema is not a list of names")
    if not isinstance(schema.get("$schema", ""), str):
        del schema["$schema"]
    return schema


def _clean_call_result(result: Fields) -> Fields:
    """Return the result of a tool call with only the fields and content that the SDK accepts."""
    content = result.get("content")
    if not is_array(content):
        content = [] if content is None else [content]
    cleaned: Fields = {"resultType": "complete", "content": [_clean_block(block) for block in content]}
    if result.get("isError") is True:
        cleaned["isError"] = True
    structured = result.get("structuredContent")
    if isinstance(structured, dict):
        cleaned["structuredContent"] = structured
    elif structured is not None:  # older protocols allow only objects here, so send text
        cleaned["content"].append(_text_block(structured))
    return cleaned


_FIELDS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "text": (("text",), ()),
    "image": (("data", "mimeType"), ()),
    "audio": (("data", "mimeType"), ()),
    "resource_link": (("uri",), ("name", "title", "description", "mimeType")),
}
"""Required and optional string fields, by block type."""


def _clean_block(block: object) -> Fields:
    """Return a content block with only the fields that this module knows. An invalid block becomes text."""
    if not is_object(block):
        return _text_block(block)
    kind = block.get("type")
    if kind == "resource":
        return _clean_resource(block)
    if not isinstance(kind, str) or kind not in _FIELDS:
        return _text_block(block)
    needed, other = _FIELDS[kind]
    if not all(isinstance(block.get(key), str) for key in needed):
        return _text_block(block)
    cleaned = {key: block[key] for key in ("type", *needed, *other) if isinstance(block.get(key), str)}
    return {"name": block["uri"], **cleaned} if kind == "resource_link" else cleaned


def _clean_resource(block: Fields) -> Fields:
    """Return an embedded resource with only the fields that this module knows. An invalid resource becomes text."""
    resource = block.get("resource")
    if not is_object(resource) or not isinstance(resource.get("uri"), str):
        return _text_block(block)
    cleaned = {key: resource[key] for key in ("uri", "mimeType") if isinstance(resource.get(key), str)}
    for key in ("text", "blob"):
        if isinstance(resource.get(key), str):
            return {"type": "resource", "resource": {**cleaned, key: resource[key]}}
    return _text_block(block)


def _text_block(value: object) -> Fields:
    """Return a text block that contains a string, or the JSON of another value."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return {"type": "text", "text": text}


class ServerToolError(Exception):
    """A tool failed on the server. The error contains the server's message."""


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
    """Return True if the texts contain the structured content. If it is `{"result": value}`, the value is enough."""
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


def encode_error(error: AnswerTooLarge) -> ErrorData:
    """Encode an error as a JSON-RPC error for the SDK."""
    found = {"setting": error.setting, "value": error.value, "limit": error.limit}
    return ErrorData(code=CODE, message=str(error), data=found)


def decode_error(error: ErrorData) -> AnswerTooLarge | None:
    """Decode an error that `encode_error` encoded; return None for every other error."""
    found: Any = error.data  # Any: a server may send any value
    if error.code != CODE or not is_object(found):
        return None
    setting, value, limit = (found.get(key) for key in ("setting", "value", "limit"))
    if isinstance(setting, str) and isinstance(value, int) and isinstance(limit, int):
        return too_large_error(setting, value, limit)
    return None


def error_answer(request: RequestId, error: ErrorData) -> bytes:
    """Return a JSON-RPC answer with an error, as JSON."""
    answer = {"jsonrpc": "2.0", "id": request, "error": error.model_dump(exclude_none=True)}
    return json.dumps(answer).encode()
