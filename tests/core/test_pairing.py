"""Check the pairing of calls and results when ids repeat or are missing."""

import json

import pytest

from actors import Message, Text, ToolCall, ToolResult
from actors.core.history.history import History
from actors.core.normalize.pairing import TranscriptCall, TranscriptResult, pair_results
from actors.transcripts import Ledger, check, dialect, encode, from_wire, render
from tests.core.recorded import Answer, Called, record_walk


def call(tool: str = "f", message: int = 0, key: str = "x", said: tuple[str, ...] = ()) -> TranscriptCall:
    return TranscriptCall(key, tool, message, said)


def result(says: str, message: int, behind: int = -1, tool: str = "", key: str = "x") -> TranscriptResult:
    return TranscriptResult(key, tool, says, message, behind)


A, B = call("a", 0), call("b", 2)  # two calls with one id, and a message between them
PAIRS: dict[str, tuple[list[TranscriptCall], list[TranscriptResult], list[int | None]]] = {
    "a single call takes the first result and keeps the next": (
        [A],
        [result("1", 1, 0), result("2", 1, 0), result("1", 1, 0)],
        [0, 0, 0],
    ),
    "a result directly behind the latest call is its result": ([A, B], [result("1", 3, 2)], [1]),
    "an older call gets no further result of a newer one": (
        [A, B],
        [result("1", 3, 2), result("2", 3, 2), result("3", 5, -1)],
        [1, None, None],
    ),
    "a repetition is about the same call": ([A, B], [result("1", 3, 2), result("1", 3, 2)], [1, 1]),
    "a repetition of an older result is about the older call": (
        [A, B],
        [result("1", 1, 0), result("2", 3, 2), result("1", 4)],
        [0, 1, 0],
    ),
    "equal results of two calls are two results": ([A, B], [result("1", 1, 0), result("1", 3, 2)], [0, 1]),
    "a late result while an older call is open is uncertain": ([A, B], [result("1", 5)], [None]),
    "a late result whose older calls are closed is the latest call's": (
        [A, B],
        [result("1", 1, 0), result("2", 5)],
        [0, 1],
    ),
    "a known result closes an older call": ([call(said=("1",)), B], [result("2", 5)], [1]),
    "a name decides among the calls of one id": (
        [A, B],
        [result("1", 3, 2, "b"), result("2", 3, 2, "b"), result("3", 5, -1, "a")],
        [1, 1, 0],
    ),
    "a name that no call of a reused id has is uncertain": ([A, B], [result("1", 3, 2, "c")], [None]),
    "an id with one call is better evidence than a name": ([A], [result("1", 1, 0, "c")], [0]),
    "calls of one message take results in order": (
        [call("a"), call("b")],
        [result("1", 1, 0), result("2", 2, 0)],
        [0, 1],
    ),
    "calls of one message take distinct results in order": (
        [call("a"), call("b")],
        [result("1", 1, 0), result("1", 1, 0), result("2", 1, 0)],
        [0, 0, 1],
    ),
    "fewer results than calls of one message are uncertain": (
        [call("a"), call("b")],
        [result("1", 1, 0)],
        [None],
    ),
    "more results than calls of one message are uncertain": (
        [call("a"), call("b")],
        [result("1", 1, 0), result("2", 1, 0), result("3", 1, 0)],
        [None, None, None],
    ),
    "results without an id pair_results by name": (
        [call("a", key=""), call("b", key="")],
        [result("1", 1, 0, "b", ""), result("2", 1, 0, "a", "")],
        [1, 0],
    ),
    "an unknown id is meant for a call without an id": (
        [call("a", key=""), call("a", key="y")],
        [result("1", 1, 0, "a", "z")],
        [0],
    ),
    "a name that only calls of other tools have finds no call": (
        [call("a", key="")],
        [result("1", 1, 0, "b", "")],
        [None],
    ),
    "results without id and name pair_results by place": (
        [call("a", key=""), call("b", key="")],
        [result("1", 1, 0, "", ""), result("2", 1, 0, "", "")],
        [0, 1],
    ),
    "results without id and name are uncertain in another place": (
        [call("a", key="")],
        [result("1", 5, -1, "", "")],
        [None],
    ),
}


@pytest.mark.requirement("REQ-915-022")
@pytest.mark.parametrize("name", PAIRS)
def test_a_result_pairs_with_its_only_possible_call(name: str) -> None:
    calls, results, about = PAIRS[name]
    assert pair_results(calls, results, allow_early=False) == about


def test_a_result_before_its_call_is_paired_with_it_if_requested() -> None:
    early = [result("1", 0, -1), result("2", 3, 2)]
    assert pair_results([B], early, allow_early=True) == [0, 0]
    assert pair_results([B], early, allow_early=False) == [None, 0]
    assert pair_results([B], early[:1], allow_early=True) == [0]
    assert pair_results([B], early[:1], allow_early=False) == [None]
    assert pair_results([B, call(message=5)], early[:1], allow_early=True) == [None]


@pytest.mark.requirement("REQ-915-022")
def test_parallel_calls_with_the_same_id_keep_their_own_results() -> None:
    history = [
        Message("user", [Text("u")]),
        Message("assistant", [ToolCall("", "first"), ToolCall("", "second")]),
        Message("tool", [ToolResult("", "one"), ToolResult("", "two")]),
    ]
    for name in ("openai", "anthropic"):
        said, _ = record_walk(history, dialect(name))
        blocks = [block for _, each in said for block in each]
        calls = [block.id for block in blocks if isinstance(block, Called)]
        answers = {block.id: block.words for block in blocks if isinstance(block, Answer)}
        assert [answers[call] for call in calls] == [b'"one"', b'"two"']
        assert len(set(calls)) == 2


@pytest.mark.requirement("REQ-915-014", "REQ-915-022")
def test_an_import_pairs_parallel_results_with_the_same_id_in_call_order() -> None:
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


def test_a_text_that_is_too_long_for_the_target_is_split_without_loss() -> None:
    words = "x" * (1_048_576 + 5)
    rendered = render(History([Message("user", [Text(words)])]), Ledger(), dialect("openai"))
    body = encode(rendered, model="m")
    assert check(body, dialect("openai")) == []
    parts = [part["text"] for part in json.loads(body)["messages"][0]["content"]]
    assert "".join(parts) == words
    assert max(map(len, parts)) <= 1_048_576
