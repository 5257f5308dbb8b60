"""What was made quick says the same as what it replaced."""

import json
from hashlib import sha256

import pytest

from actors.adapters.wire import loaded
from actors.core.codec import SMALL, decode_event, encode_event
from actors.core.content import Code, Media, Message, Seal, Text, Thinking, ToolCall, ToolResult
from actors.core.events import Cancelled, Failed, Opened, RequestSent, Returned, Scheduled, Started
from actors.core.history import History, freeze, thaw
from actors.core.identity import Binding, CallId
from actors.core.jsonio import mended, quote
from actors.core.ledger import Ledger
from actors.core.projection import mint

HOME = Binding("home", "anthropic", "https://api.example", "", "model-1")
BLOCKS = (
    Text("words"),
    Text(""),
    Thinking("thought", Seal("signature", quote("s" * 300), HOME)),
    Thinking("unsealed"),
    ToolCall("hist_tool_1", "search", {"query": "é"}, native=Seal("call_id", quote("call_1"), HOME)),
    ToolCall("", "", raw="{broken"),
    ToolResult("hist_tool_1", {"rows": [1, 2]}, is_complete=True),
    ToolResult("hist_tool_1", error="gone", is_complete=False),
    ToolResult("nobody"),
    Media("image/png", data="aGk="),
    Media("image/png", url="https://example.test/a.png"),
    Code("print(1)", "python"),
)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: type(block).__name__)
def test_each_block_comes_back_from_a_history_as_it_went_in(block: object) -> None:
    message = Message("model", (Text("before"), block, Text("after")), 3, HOME)  # type: ignore[arg-type]  # one of BLOCKS
    back = thaw(freeze(message))
    assert (back, hash(back), repr(back)) == (message, hash(message), repr(message))


def test_a_history_keeps_no_tuple_for_a_block_and_nothing_the_collector_must_visit() -> None:
    record = freeze(Message("model", BLOCKS, 1, HOME))
    assert {type(item) for item in record if isinstance(item, tuple)} == {tuple}
    assert all(type(part) is str for item in record if isinstance(item, tuple) for part in item)
    assert list(History([thaw(record)])) == [thaw(record)]


def test_an_event_in_a_log_shares_the_pieces_of_the_history_and_reads_back_the_same() -> None:
    result = ToolResult("hist_tool_1", "r" * 1000)
    signed = Thinking("t" * 1000, Seal("signature", quote("s" * SMALL), HOME))
    event = Opened("id", "target", None, (Message("model", (signed,)), Message("tool", (result,))), 1)
    segments = encode_event(event)
    assert signed.seal is not None
    for piece in (result.content_json, signed.json, signed.seal.data):
        assert any(segment is piece for segment in segments)
    assert decode_event(b"".join(segments)) == event


def test_a_ledger_asked_for_one_thing_answers_as_when_asked_for_all() -> None:
    calls = [CallId(f"hist_tool_{number}") for number in range(6)]
    ledger = Ledger().apply(
        *(Scheduled(call_id, "search") for call_id in calls[:5]),
        Returned(calls[0], quote("result")),
        Failed(calls[1], quote("error")),
        Cancelled(calls[2]),
        Started(calls[3]),
        RequestSent(1, 1, HOME, 0, 1, ((calls[2], "cancelled"), (calls[3], "interrupted"))),
        Returned(calls[3], quote("late")),
    )
    for call_id in calls:
        known = ledger.get(call_id)
        assert ledger.completion(call_id) == (known.completion if known else None)
        assert ledger.is_sealed(call_id) == (known is not None and known.sealed is not None)
    assert [ledger.is_sealed(call_id) for call_id in calls] == [False, False, True, True, False, False]


@pytest.mark.parametrize("call_id", ["hist_tool_1", "", "é", "hist_tool_1#1", *map(str, range(50))])
def test_a_minted_id_is_the_first_24_digits_of_the_digest_to_base_62(call_id: str) -> None:
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    number = int.from_bytes(sha256(call_id.encode()).digest())
    expected = "".join(digits[number // 62**place % 62] for place in range(24))
    assert mint("openai", CallId(call_id)) == f"call_{expected}"


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":2}',
        '{"half":"\\ud800"}',
        '{"pair":"\\ud83d\\ude00"}',
        "[1.5, -0.0, 1e400, 123456789012345678901234567890]",
        "[" * 500 + "]" * 500,
        ' {"spaces" : [ ] } ',
        '"café"',
        "[NaN]",
    ],
)
def test_a_providers_json_is_read_as_tolerantly_as_before(text: str) -> None:
    assert repr(loaded(text)) == repr(json.loads(text))


@pytest.mark.parametrize("text", ["", "{", '{"a":}', "[1,]", "{} {}", "\ud800", "[" * 100_000])
def test_what_is_no_json_is_refused_with_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        loaded(text)


@pytest.mark.parametrize(
    ("text", "expected"), [("plain", "plain"), ("é", "é"), ("\ud83d\ude00", "😀"), ("a\ud800b", "a\ufffdb")]
)
def test_a_half_pair_is_replaced_and_all_else_kept(text: str, expected: str) -> None:
    assert mended(text) == expected
