"""Find the part of a request that the provider rejected: a tool's schema, or attachments.

In:  the provider's message, and the request.
Out: the message with the names of the tool and its keys, or the names of the attachments
     (`actors.core.render.media_name`).

Providers identify a tool by its position (`tools.0.custom.input_schema`). Providers that compile all tools into one
grammar do not identify it. Providers identify an attachment by its position (`messages.3.content.1.image.source`,
`input[2].content[0].image_url`, `contents[0].parts[1].inline_data`) or by its URL, and often not at all. Positions
count the parts that were sent, so the request body is parsed. These errors are rare, so speed does not matter.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from actors.adapters.request import Request
from actors.core.data.jsonio import JsonRefused, JsonValue, parse
from actors.core.schemas.json_schema import subschema_entries
from actors.core.values.identity import content_name

_TOOL_PLACE = re.compile(r"\btools[.\[]+(\d+)")
_PATTERN = re.compile(r"match pattern '?\^?(\[[^\]]+\]\{1,\d+\})")
_IS_SCHEMA = re.compile(r"schema|propert|grammar|function_?declaration|parameters", re.IGNORECASE)
_IS_GRAMMAR = re.compile(r"grammar|regex|regular expression|look-?(?:around|ahead|behind)", re.IGNORECASE)
_MAX_BODY = 1 << 28
_DEPTH = 96
_MAX_KEYS = 3  # maximum number of keys that an error message lists
_MAX_NAME = 80  # maximum characters of a name in an error message


def _parse_body(body: bytes) -> dict[str, JsonValue]:
    """Return a request body as JSON, or an empty object if the body is not a JSON object."""
    try:
        request = parse(body, max_bytes=_MAX_BODY, max_depth=_DEPTH)
    except JsonRefused:
        return {}
    return request if isinstance(request, dict) else {}


class _DeclaredTool(NamedTuple):
    name: str
    schema: JsonValue


def name_refused_tool(message: str, request: Request) -> str:
    """Add the names of the tool and of the rejected keys to a provider's message about a tool's schema, and return the
    message. Other messages are returned unchanged.
    """
    if not _IS_SCHEMA.search(message):
        return message
    tools = [tool for tool in _declared_tools(request.body) if tool.name]
    if (place := _TOOL_PLACE.search(message)) is not None:
        tools = tools[int(place[1]) : int(place[1]) + 1]
    elif named := [tool for tool in tools if f"'{tool.name}'" in message or f'"{tool.name}"' in message]:
        tools = named
    elif not _IS_GRAMMAR.search(message):
        return message
    for tool in tools:
        keys = _rejected_schema_keys(message, tool)
        if keys or place is not None or len(tools) == 1:
            own = request.names.get(tool.name, tool.name)
            made = request.keys.get(own, {})
            told = ", ".join(repr(made.get(key, key)[:_MAX_NAME]) for key in keys[:_MAX_KEYS])
            return f"{message} (tool {own[:_MAX_NAME]!r}{', key ' if told else ''}{told})"
    return message


def _rejected_schema_keys(message: str, tool: _DeclaredTool) -> list[str]:
    """Return the keys of a tool's schema to which the message refers."""
    members = tool.schema.get("properties") if isinstance(tool.schema, dict) else None
    if (demanded := _PATTERN.search(message)) is not None and isinstance(members, dict):
        return [key for key in members if not re.fullmatch(demanded[1], key)]
    if _IS_GRAMMAR.search(message):
        return [key for key, held in _schema_properties(tool.schema) if _has_pattern(held)]
    return [
        key
        for key, _ in _schema_properties(tool.schema)
        if re.search(rf"['\".]{re.escape(key)}(?:['\"\].:\s]|$)", message)
    ]


def _schema_properties(schema: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    """Yield the properties of a schema and of all schemas inside it, outer properties first."""
    if not isinstance(schema, dict):
        return
    members = schema.get("properties")
    if isinstance(members, dict):
        yield from members.items()
    for keyword, value in schema.items():
        for _, inner in subschema_entries(keyword, value):
            yield from _schema_properties(inner)


def _has_pattern(schema: JsonValue) -> bool:
    if not isinstance(schema, dict):
        return False
    around = [item for item in schema.items() if item[0] != "properties"]
    inner = (held for keyword, value in around for _, held in subschema_entries(keyword, value))
    return "pattern" in schema or any(map(_has_pattern, inner))


def _declared_tools(body: bytes) -> Iterator[_DeclaredTool]:
    """Yield the tools of a request body of any family, in order."""
    request = _parse_body(body)
    for holder in (request, request.get("toolConfig")):
        tools = holder.get("tools") if isinstance(holder, dict) else None
        for tool in tools if isinstance(tools, list) else ():
            yield from _tools_of_entry(tool)


def _tools_of_entry(tool: JsonValue) -> Iterator[_DeclaredTool]:
    if not isinstance(tool, dict):
        return
    declarations = tool.get("functionDeclarations")
    listed = declarations if isinstance(declarations, list) else [tool]
    for entry in listed:
        told = entry
        for key in ("function", "toolSpec"):
            told = told[key] if isinstance(told, dict) and isinstance(told.get(key), dict) else told
        if not isinstance(told, dict):
            continue
        schemas = (
            told.get(key) for key in ("parameters", "parametersJsonSchema", "input_schema", "inputSchema")
        )
        schema = next((found for found in schemas if isinstance(found, dict)), dict[str, JsonValue]())
        inner = schema.get("json")
        name = told.get("name")
        yield _DeclaredTool(
            name if isinstance(name, str) else "", inner if isinstance(inner, dict) else schema
        )


_LISTS = ("messages", "input", "contents")
"""The keys of a request body that may contain the messages."""
_CALLS = frozenset(("input", "arguments", "args", "toolUse", "functionCall"))
"""Keys of tool call arguments, which the model wrote, so they do not contain attachments."""
_MEDIA_PLACE = re.compile(r"\b(?:messages|input|contents)((?:[.\[]+\w+\]?)+)")
_DATA_URL = re.compile(r"data:[^,]{0,200};base64,")


class MediaPart(NamedTuple):
    """An attachment in a request.

    Args:
        place: The list indices that lead to the attachment.
        name: The name that is derived from the attachment's content.
        url: The URL, or "" if the request contains the attachment's data.
    """

    place: tuple[int, ...]
    name: str
    url: str = ""


def media_parts(body: bytes) -> tuple[MediaPart, ...]:
    """Return the attachments of a request body of any family, in order. The result is empty if the body is not JSON."""
    request = _parse_body(body)
    return tuple(found for key in _LISTS for found in _find_media(request.get(key), ()))


def named_media(message: str, parts: Iterable[MediaPart]) -> tuple[str, ...]:
    """Return the names of the attachments that a provider's message identifies by position or by URL."""
    places = [
        tuple(map(int, re.findall(r"(?<=[.\[])\d+(?=[.\]:]|$)", found)))
        for found in _MEDIA_PLACE.findall(message)
    ]
    pointed = [
        item.name
        for item in parts
        if (item.url and item.url in message)
        or any(_is_same_position(item.place, place) for place in places if place)
    ]
    return tuple(dict.fromkeys(pointed))


def _is_same_position(position: tuple[int, ...], other_position: tuple[int, ...]) -> bool:
    """Return True if one position is a prefix of the other.

    An error may give the position of the message that contains an attachment, or of a page inside a document.
    """
    least = min(len(position), len(other_position))
    return position[:least] == other_position[:least]


def _find_media(value: JsonValue, indices: tuple[int, ...]) -> Iterator[MediaPart]:
    if isinstance(value, list):
        for at, item in enumerate(value):
            yield from _find_media(item, (*indices, at))
    elif isinstance(value, dict):
        if content := _attachment_content(value):
            bare = _DATA_URL.sub("", content, count=1)
            yield MediaPart(indices, content_name(bare), content if bare == content and "://" in bare else "")
            return
        for key, item in value.items():
            if key not in _CALLS:
                yield from _find_media(item, indices)


def _attachment_content(block: dict[str, JsonValue]) -> str:
    """Return the data or the URL of an attachment block of any family, or "" for other blocks."""
    source = block.get("source") or block.get("image_url") or block.get("inlineData")
    if block.get("type") in ("input_image", "input_file"):
        source = block.get("image_url") or block.get("file_data") or block.get("file_url")
    if isinstance(source, str):
        return source
    if not isinstance(source, dict):
        return ""
    found = source.get("data") or source.get("url") or source.get("bytes")
    return found if isinstance(found, str) else ""
