"""Check that calls of free-text and namespaced tools keep their text and names in every dialect.

OpenAI Responses supports both kinds. Chat Completions supports free-text tools at OpenAI's own host. In all other
dialects, the free text is sent as an argument, and the namespace as a prefix of the tool's name.
"""

import json
from typing import Any

import pytest

from actors.adapters.codec import decode
from actors.adapters.request import ToolSpec
from actors.core.data.jsonio import Json
from actors.core.dialects.profiles import PROFILES
from actors.core.values.content import Message, ToolCall
from actors.testing import validate
from actors.transcripts import check, encode, from_wire, render
from tests.adapters.wire_streams import chunk, openai_stream, responses_stream, run

Wire = dict[str, Any]  # Any: JSON

PATCH = '*** Begin Patch\n+ "x" \u2603 \\n\n*** End Patch'
ITEMS: list[Wire] = [
    {"type": "message", "role": "user", "content": "Mend it."},
    {"type": "custom_tool_call", "call_id": "call_a", "name": "apply_patch", "input": PATCH},
    {
        "type": "function_call",
        "call_id": "call_b",
        "name": "lookup",
        "namespace": "crm",
        "arguments": '{"a":1}',
    },
    {"type": "custom_tool_call", "call_id": "call_c", "name": "sql", "namespace": "db", "input": ""},
    {"type": "custom_tool_call_output", "call_id": "call_a", "output": "done"},
    {"type": "function_call_output", "call_id": "call_b", "output": "found"},
    {"type": "custom_tool_call_output", "call_id": "call_c", "output": "0 rows"},
    {"type": "message", "role": "user", "content": "Thanks."},
]
GRAMMAR = Json(b'{"type":"grammar","syntax":"lark","definition":"start: /.+/"}')
TOOLS = [
    ToolSpec.free_form("apply_patch", "Patch.", GRAMMAR),
    ToolSpec("crm__lookup", "Look.", Json(b'{"type":"object","properties":{}}'), namespace="crm"),
    ToolSpec.free_form("db__sql", "Query.", namespace="db"),
]


def body(items: list[Wire], source: str, target: str) -> Wire:
    """Return the request for a target, accepted by its judge and its strict server."""
    history, ledger = from_wire(items, source)
    assert history.report.notes == ()
    made = encode(render(history, ledger, PROFILES[target]), model="m", tools=TOOLS, max_tokens=99)
    assert check(made, PROFILES[target]) == []
    assert validate(made, target) is None
    wire: Wire = json.loads(made)
    return wire


def calls(wire: Wire, name: str) -> list[ToolCall]:
    history, _ = from_wire(wire, name)
    return [call for message in history for call in message.calls]


@pytest.mark.parametrize("target", PROFILES)
def test_free_text_arguments_and_tool_namespaces_are_kept_in_every_dialect(target: str) -> None:
    there = body(ITEMS, "responses", target)
    made = calls(there, target)
    assert [(call.name, call.arguments) for call in made] == [
        ("apply_patch", {"input": PATCH}),
        ("crm__lookup", {"a": 1}),
        ("db__sql", {"input": ""}),
    ]
    history, _ = from_wire(there, target)
    assert [result.content for message in history for result in message.results] == [
        "done",
        "found",
        "0 rows",
    ]


def test_custom_and_namespaced_calls_round_trip_in_responses() -> None:
    there = body(ITEMS, "responses", "openai_responses")
    wanted = [dict(item) for item in ITEMS]
    ids = {item["call_id"]: item for item in there["input"] if "call_id" in item}
    assert len(ids) == 3
    shown = [{key: value for key, value in item.items() if key != "call_id"} for item in there["input"]]
    assert shown == [{key: value for key, value in item.items() if key != "call_id"} for item in wanted]
    assert [(tool["type"], tool["name"]) for tool in there["tools"]] == [
        ("custom", "apply_patch"),
        ("namespace", "crm"),
        ("namespace", "db"),
    ]
    assert there["tools"][0]["format"] == json.loads(GRAMMAR)
    assert [tool["name"] for tool in there["tools"][1]["tools"]] == ["lookup"]


def test_chat_completions_keeps_custom_calls_only_for_hosts_that_support_them() -> None:
    for name, profile in PROFILES.items():
        if profile.family == "openai_chat":
            there = body(ITEMS, "responses", name)
            kinds = [call["type"] for message in there["messages"] for call in message.get("tool_calls", ())]
            declared = [tool["type"] for tool in there["tools"]]
            wanted = ["custom", "function", "custom"] if name == "openai_chat" else ["function"] * 3
            assert (kinds, declared) == (wanted, wanted), name
    there = body(ITEMS, "responses", "openai_chat")
    assert there["tools"][0]["custom"]["format"]["grammar"]["syntax"] == "lark"
    assert there["messages"][1]["tool_calls"][0]["custom"] == {"name": "apply_patch", "input": PATCH}
    again = body(there["messages"], "openai_chat", "openai_chat")
    assert again["messages"] == there["messages"]
    back = body(there["messages"], "openai_chat", "openai_responses")
    kinds = [item["type"] for item in back["input"] if "call" in item["type"]]
    assert kinds[:3] == ["custom_tool_call", "function_call", "custom_tool_call"]


def test_a_custom_call_is_decoded_from_a_stream_and_a_body() -> None:
    custom = {"name": "sql", "input": "select 1"}
    told = {"index": 0, "id": "call_A", "type": "custom", "custom": custom}
    stream = openai_stream(chunk({"tool_calls": [told]}), chunk({}, "tool_calls"))
    _, message = run(decode(PROFILES["openai_chat"]), [stream])
    assert isinstance(message, Message)
    assert [(call.name, call.text) for call in message.calls] == [("sql", "select 1")]
    item = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_A", "namespace": "db", **custom}
    done = {"type": "response.output_item.done", "output_index": 0, "item": {**item, "status": "completed"}}
    ended = {"type": "response.completed", "response": {"status": "completed", "output": []}}
    _, message = run(decode(PROFILES["openai_responses"]), [responses_stream(done, ended)])
    assert isinstance(message, Message)
    assert [(call.name, call.namespace, call.text) for call in message.calls] == [
        ("db__sql", "db", "select 1")
    ]


def test_text_arguments_for_a_json_tool_are_treated_as_malformed_json() -> None:
    free, malformed = ToolCall.free_form("a", "f", "{"), ToolCall("a", "f", raw="{")
    assert (free.text, free.is_malformed, free.arguments) == ("{", False, {"input": "{"})
    assert (malformed.text, malformed.is_malformed, malformed.arguments) == (None, True, {})
    assert (ToolCall("a", "f", {"input": "{"}).text, ToolCall("a", "f").is_malformed) == (None, False)
