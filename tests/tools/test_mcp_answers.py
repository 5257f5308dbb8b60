"""Generated answers of MCP servers: distorted anywhere, they are accepted, and none of their text is lost."""

import json
from random import Random
from typing import Any

import pytest
from mcp_types import CallToolResult, ListToolsResult, methods
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from actors.core.values.content import Media
from actors.tools.mcp.answers import OnDroppedTool, ServerToolError, clean_result, tool_output
from actors.tools.mcp.child import LineParser
from actors.tools.mcp.options import McpLimits
from actors.tools.mcp.streams import OpenRequests
from tests.commands.at_scale import share

Json = Any  # JSON from a server

VERSIONS = (*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS)
ODD: tuple[Json, ...] = (None, True, 7, "", "words", [], [1], {}, {"a": 1})


def distort(value: Json, draw: Random) -> Json:
    """Return a copy of a value with one part changed, removed or renamed."""
    made = json.loads(json.dumps(value))
    holder = made
    while True:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if not keys:
            return made
        key = draw.choice(keys)
        if isinstance(holder[key], dict | list) and draw.randrange(4):
            holder = holder[key]
            continue
        match draw.randrange(3):
            case 0:
                holder[key] = draw.choice(ODD)
            case 1:
                del holder[key]
            case _ if isinstance(holder, dict):
                holder[f"{key}s"] = holder.pop(key)
            case _:
                holder.insert(key, draw.choice(ODD))
        return made


RESULT = {
    "content": [
        {"type": "text", "text": "MARK-1"},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {
            "type": "resource_link",
            "uri": "a://MARK-2",
            "name": "n",
            "title": "MARK-3",
            "description": "MARK-4",
        },
        {"type": "resource", "resource": {"uri": "a://b", "mimeType": "text/plain", "text": "MARK-5"}},
        {"type": "text", "text": "MARK-6", "annotations": {"audience": ["user"]}, "_meta": {"a": 1}},
    ],
    "structuredContent": {"key": "MARK-7", "more": [1, 2]},
    "isError": False,
}
TOOLS = {
    "tools": [
        {
            "name": name,
            "title": "T",
            "description": "D",
            "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            "outputSchema": {"type": "object", "properties": {"b": {}}},
            "annotations": {"readOnlyHint": True, "title": "A"},
        }
        for name in ("one", "two", "three")
    ],
    "nextCursor": "more",
}


def test_a_distorted_result_is_accepted_and_its_texts_are_kept() -> None:
    for seed in range(share(9600)):
        draw, result = Random(seed), RESULT
        for _ in range(draw.randint(0, 3)):
            result = distort(result, draw)
        made = clean_result("tools/call", dict(result), fail)
        for version in VERSIONS:
            methods.validate_server_result("tools/call", version, made)
        try:
            said = tool_output(CallToolResult.model_validate(made, by_name=False))
        except ServerToolError as error:
            said = str(error)
        parts = said if isinstance(said, list) else [said]
        words = " ".join(str(part) for part in parts if not isinstance(part, Media))
        told = {key: result[key] for key in ("content", "structuredContent") if key in result}
        for number in range(1, 8):
            mark = f"MARK-{number}"
            if mark in json.dumps(told) and not _is_dropped(mark, told):
                assert mark in words, (seed, mark, result)


def _is_dropped(mark: str, told: Json) -> bool:
    """Return True if the mark is in a renamed field of a link, which is dropped."""
    content = told.get("content")
    links = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    return any(mark in str(block.get(key)) for block in links for key in ("titles", "descriptions", "_metas"))


def fail(tool: str, why: str) -> None:
    raise AssertionError(tool, why)


def test_a_distorted_tool_list_offers_each_valid_tool_and_reports_the_invalid_tools() -> None:
    for seed in range(share(9600)):
        draw, listing = Random(seed), dict(TOOLS)
        tools: list[Json] = list(TOOLS["tools"])
        bad = draw.randrange(3)
        for _ in range(draw.randint(1, 3)):
            tools[bad] = distort(tools[bad], draw) if isinstance(tools[bad], dict | list) else tools[bad]
        left_out: list[tuple[str, str]] = []
        made = clean_result("tools/list", {**listing, "tools": tools}, _append_to(left_out))
        for version in VERSIONS:
            methods.validate_server_result("tools/list", version, made)
        listed = ListToolsResult.model_validate(made, by_name=False)
        names = [tool.name for tool in listed.tools]
        sound = [tool["name"] for at, tool in enumerate(tools) if at != bad]
        assert [name for name in names if name in sound] == sound, (seed, tools)
        assert len(names) + len(left_out) == 3
        assert listed.next_cursor == "more"


def _append_to(left_out: list[tuple[str, str]]) -> OnDroppedTool:
    return lambda tool, why: left_out.append((tool, why))


@pytest.mark.parametrize("size", [1, 7, 100, 64 * 1024])
def test_lines_received_in_pieces_of_any_size_yield_the_same_messages(size: int) -> None:
    requests = OpenRequests()
    messages = [
        {"jsonrpc": "2.0", "id": number, "result": {"text": "x" * number * 50}} for number in range(40)
    ]
    said = b"".join(json.dumps(message).encode() + b"\n" for message in messages)
    lines = LineParser(McpLimits(max_bytes=1_500), requests, "any")
    heard = [item for at in range(0, len(said), size) for item in lines.feed(said[at : at + size])]
    read = [item.message.id for item in heard if not isinstance(item, Exception)]  # type: ignore[union-attr]  # answers
    assert read == [number for number, message in enumerate(messages) if len(json.dumps(message)) <= 1_500]


def test_the_limit_on_json_values_ignores_brackets_and_commas_in_strings() -> None:
    limits = McpLimits(max_values=1_000)
    commas = "," * 100_000
    assert limits.excess_error(json.dumps({"result": {"text": commas}}).encode()) is None
    excess = limits.excess_error(json.dumps({"result": {"values": [0] * 100_000}}).encode())
    assert excess is not None
    assert (excess.setting, excess.value) == ("max_values", 100_000)
    texts = limits.excess_error(json.dumps({"result": {"values": ['\\", a'] * 100_000}}).encode())
    assert texts is not None
    assert texts.setting == "max_values"
    assert limits.excess_error(b'{"result": "' + b'\\",' * 1_000_000) is None
