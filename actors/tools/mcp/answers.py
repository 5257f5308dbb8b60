"""Clean the answers of an MCP server so that the SDK accepts them.

In:  the result of a request, as parsed JSON.
Out: a result that the SDK's models accept. An invalid tool, block or field does not invalidate the others.

The SDK rejects a complete list because of one invalid tool, and a result that does not fit the tool's output schema,
although the tool has run. This module therefore drops output schemas and rebuilds results from their known fields.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from actors.core.data.jsonio import is_array, is_object

Fields: TypeAlias = dict[str, Any]  # Any: parsed JSON from a server
LeaveOut: TypeAlias = Callable[[str, str], None]
"""Receives the name of a dropped tool and the reason."""

TOOLS = 1000  # maximum tools of one server; no provider accepts more
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_LATER = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}  # required by the protocol of 2026


def accept_result(method: str, result: Fields, leave_out: LeaveOut) -> Fields:
    """Return the result of a request in the form that the SDK accepts."""
    match method:
        case "initialize":
            return {"capabilities": {}, "serverInfo": {"name": "", "version": ""}, **result}
        case "tools/list":
            return _clean_listing(result, leave_out)
        case "tools/call" if result.get("resultType", "complete") == "complete":
            return _clean_call_result(result)
        case _:
            return result


def _clean_listing(result: Fields, leave_out: LeaveOut) -> Fields:
    listed = result.get("tools")
    if not is_array(listed):
        return result
    tools: list[Fields] = []
    for entry in listed[:TOOLS]:
        try:
            tools.append(_tool(entry))
        except ValueError as error:
            name = entry.get("name") if is_object(entry) else None
            leave_out(name if isinstance(name, str) else "", str(error))
    cursor = result.get("nextCursor")
    return {**_LATER, "tools": tools, **({"nextCursor": cursor} if isinstance(cursor, str) else {})}


def _tool(entry: object) -> Fields:
    """Return the known fields of a tool.

    Raises:
        ValueError: The entry is not a valid tool.
    """
    if not is_object(entry):
        raise ValueError("it is not an object")
    if not isinstance(entry.get("name"), str):
        raise ValueError("it has no name")
    tool: Fields = {"name": entry["name"], "inputSchema": _schema(entry.get("inputSchema"))}
    for key in ("title", "description"):
        if isinstance(entry.get(key), str):
            tool[key] = entry[key]
    hints = entry.get("annotations")
    if is_object(hints):
        tool["annotations"] = {key: hints[key] for key in _HINTS if isinstance(hints.get(key), bool)}
        if isinstance(hints.get("title"), str):
            tool.setdefault("title", hints["title"])
    return tool


def _schema(given: object) -> Fields:
    if not is_object(given):
        raise ValueError("its inputSchema is not an object")
    schema: Fields = {"type": "object", **given}
    if schema["type"] != "object":
        raise ValueError(f"its inputSchema has the type {json.dumps(schema['type'])[:40]}; it takes object")
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not is_object(properties):
        raise ValueError("the properties of its inputSchema are not an object")
    if odd := next((name for name, each in properties.items() if not isinstance(each, dict | bool)), None):
        raise ValueError(f"the property {odd[:40]!r} of its inputSchema is not a schema")
    if not is_array(required) or not all(isinstance(name, str) for name in required):
        raise ValueError("required in its inputSchema is not a list of names")
    if not isinstance(schema.get("$schema", ""), str):
        del schema["$schema"]
    return schema


def _clean_call_result(result: Fields) -> Fields:
    content = result.get("content")
    if not is_array(content):
        content = [] if content is None else [content]
    cleaned: Fields = {"resultType": "complete", "content": [_block(block) for block in content]}
    if result.get("isError") is True:
        cleaned["isError"] = True
    structured = result.get("structuredContent")
    if isinstance(structured, dict):
        cleaned["structuredContent"] = structured
    elif structured is not None:  # before 2026 structured content had to be an object
        cleaned["content"].append(_text(structured))
    return cleaned


_FIELDS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "text": (("text",), ()),
    "image": (("data", "mimeType"), ()),
    "audio": (("data", "mimeType"), ()),
    "resource_link": (("uri",), ("name", "title", "description", "mimeType")),
}
"""Required and optional string fields, by block type."""


def _block(block: object) -> Fields:
    """Return the known fields of a block; an invalid block becomes text."""
    if not is_object(block):
        return _text(block)
    kind = block.get("type")
    if kind == "resource":
        return _embedded_resource(block)
    if not isinstance(kind, str) or kind not in _FIELDS:
        return _text(block)
    needed, other = _FIELDS[kind]
    if not all(isinstance(block.get(key), str) for key in needed):
        return _text(block)
    cleaned = {key: block[key] for key in ("type", *needed, *other) if isinstance(block.get(key), str)}
    return {"name": block["uri"], **cleaned} if kind == "resource_link" else cleaned


def _embedded_resource(block: Fields) -> Fields:
    resource = block.get("resource")
    if not is_object(resource) or not isinstance(resource.get("uri"), str):
        return _text(block)
    cleaned = {key: resource[key] for key in ("uri", "mimeType") if isinstance(resource.get(key), str)}
    for key in ("text", "blob"):
        if isinstance(resource.get(key), str):
            return {"type": "resource", "resource": {**cleaned, key: resource[key]}}
    return _text(block)


def _text(value: object) -> Fields:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return {"type": "text", "text": text}
