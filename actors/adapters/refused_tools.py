"""Name the tool and the key of a schema that a provider refused.

In:  the provider's words, and the request that it refused.
Out: the words, and behind them the tool and the key by their own names, as far as they can be found.

Providers point at a tool by its place among the tools, at most (`tools.0.custom.input_schema`), and those that make a
grammar of all tools point at none. A request is refused for a schema rarely, so this need not be fast.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from actors.adapters.request import Request
from actors.core.data.jsonio import JsonRefused, JsonValue, parse
from actors.core.schemas.json_schema import entries

_PLACE = re.compile(r"\btools[.\[]+(\d+)")
_PATTERN = re.compile(r"match pattern '?\^?(\[[^\]]+\]\{1,\d+\})")
_IS_SCHEMA = re.compile(r"schema|propert|grammar|function_?declaration|parameters", re.IGNORECASE)
_IS_GRAMMAR = re.compile(r"grammar|regex|regular expression|look-?(?:around|ahead|behind)", re.IGNORECASE)
_MOST = 1 << 28
_DEPTH = 96
_NAMED = 3  # keys
_LONGEST = 80  # characters of a name


class _Tool(NamedTuple):
    name: str
    schema: JsonValue


def refused_tool(message: str, request: Request) -> str:
    """Return a provider's words about a tool's schema with the tool and the keys named; other words as they are."""
    if not _IS_SCHEMA.search(message):
        return message
    tools = [tool for tool in _tools(request.body) if tool.name]
    if (place := _PLACE.search(message)) is not None:
        tools = tools[int(place[1]) : int(place[1]) + 1]
    elif named := [tool for tool in tools if f"'{tool.name}'" in message or f'"{tool.name}"' in message]:
        tools = named
    elif not _IS_GRAMMAR.search(message):
        return message
    for tool in tools:
        keys = _keys(message, tool)
        if keys or place is not None or len(tools) == 1:
            own = request.names.get(tool.name, tool.name)
            made = request.keys.get(own, {})
            told = ", ".join(repr(made.get(key, key)[:_LONGEST]) for key in keys[:_NAMED])
            return f"{message} (tool {own[:_LONGEST]!r}{', key ' if told else ''}{told})"
    return message


def _keys(message: str, tool: _Tool) -> list[str]:
    """Return the keys of a tool's schema that the words are about."""
    members = tool.schema.get("properties") if isinstance(tool.schema, dict) else None
    if (demanded := _PATTERN.search(message)) is not None and isinstance(members, dict):
        return [key for key in members if not re.fullmatch(demanded[1], key)]
    if _IS_GRAMMAR.search(message):
        return [key for key, held in _members(tool.schema) if _has_pattern(held)]
    return [
        key
        for key, _ in _members(tool.schema)
        if re.search(rf"['\".]{re.escape(key)}(?:['\"\].:\s]|$)", message)
    ]


def _members(schema: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    """Yield the properties of a schema, those of inner ones behind those around them."""
    if not isinstance(schema, dict):
        return
    members = schema.get("properties")
    if isinstance(members, dict):
        yield from members.items()
    for keyword, value in schema.items():
        for _, inner in entries(keyword, value):
            yield from _members(inner)


def _has_pattern(schema: JsonValue) -> bool:
    if not isinstance(schema, dict):
        return False
    around = [item for item in schema.items() if item[0] != "properties"]
    inner = (held for keyword, value in around for _, held in entries(keyword, value))
    return "pattern" in schema or any(map(_has_pattern, inner))


def _tools(body: bytes) -> Iterator[_Tool]:
    """Yield the tools of a request body of any family, in order."""
    try:
        request = parse(body, max_bytes=_MOST, max_depth=_DEPTH)
    except JsonRefused:
        return
    config = request.get("toolConfig") if isinstance(request, dict) else None
    for holder in (request, config):
        tools = holder.get("tools") if isinstance(holder, dict) else None
        for tool in tools if isinstance(tools, list) else ():
            yield from _declared(tool)


def _declared(tool: JsonValue) -> Iterator[_Tool]:
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
        schema = next((found for found in schemas if isinstance(found, dict)), {})
        inner = schema.get("json")
        name = told.get("name")
        yield _Tool(name if isinstance(name, str) else "", inner if isinstance(inner, dict) else schema)
