"""Results of repeated ids find their calls: the nearest message's, and within it in call order."""

import json

import pytest

from actors import Ledger, Message, Text, ToolCall, ToolResult, check, dialect, encode, from_wire, render
from actors.core.door.pairing import Unanswered
from actors.core.history import History
from actors.core.identity import CallId
from tests.core.recorded import Answer, Called, walked


def test_calls_of_one_message_are_answered_in_their_order_and_the_last_message_first() -> None:
    waiting, repeated = Unanswered(), CallId("id")
    for message in (("a1", "a2"), ("b1", "b2")):
        waiting.next_message()
        for call in message:
            waiting.add(repeated, CallId(call))
    assert [waiting.take(repeated) for _ in range(5)] == ["b1", "b2", "a1", "a2", None]
    assert waiting.take(CallId("unknown")) is None


@pytest.mark.requirement("REQ-915-022")
def test_parallel_calls_of_one_id_keep_their_own_results() -> None:
    history = [
        Message("human", [Text("u")]),
        Message("model", [ToolCall("", "first"), ToolCall("", "second")]),
        Message("tool", [ToolResult("", "one"), ToolResult("", "two")]),
    ]
    for name in ("openai", "anthropic"):
        said, _ = walked(history, dialect(name))
        blocks = [block for _, each in said for block in each]
        calls = [block.id for block in blocks if isinstance(block, Called)]
        answers = {block.id: block.words for block in blocks if isinstance(block, Answer)}
        assert [answers[call] for call in calls] == [b'"one"', b'"two"']
        assert len(set(calls)) == 2


@pytest.mark.requirement("REQ-915-014", "REQ-915-022")
def test_an_import_pairs_parallel_results_of_one_id_in_call_order() -> None:
    calls = [
        {"id": "same", "type": "function", "function": {"name": name, "arguments": "{}"}} for name in "ab"
    ]
    results = [{"role": "tool", "tool_call_id": "same", "content": text} for text in "AB"]
    wire = [
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        *results,
    ]
    _, ledger = from_wire(wire, "openai")
    found = {item.tool: item.completion.content for item in ledger.interactions() if item.completion}
    assert found == {"a": "A", "b": "B"}


def test_a_text_longer_than_the_target_takes_is_split_and_nothing_of_it_is_lost() -> None:
    words = "x" * (1_048_576 + 5)
    rendered = render(History([Message("human", [Text(words)])]), Ledger(), dialect("openai"))
    body = encode(rendered, model="m")
    assert check(body, dialect("openai")) == []
    parts = [part["text"] for part in json.loads(body)["messages"][0]["content"]]
    assert "".join(parts) == words
    assert max(map(len, parts)) <= 1_048_576
