"""What was made quick says the same as what it replaced."""

import gc
import json
from hashlib import sha256

import pytest

from actors.adapters.wire import loaded
from actors.core.codec import SMALL, decode_event, encode_event, rest_event
from actors.core.content import Code, Media, Message, Seal, Text, Thinking, ToolCall, ToolResult
from actors.core.events import Cancelled, Failed, Opened, RequestSent, Returned, Scheduled, Started, Submitted
from actors.core.history import History
from actors.core.identity import Binding, CallId
from actors.core.jsonio import mended, quote
from actors.core.ledger import Ledger
from actors.core.projection import mint
from actors.core.record import LARGE, freeze, thaw
from actors.storage import Entry
from actors.storage.memory import MemoryStorage

STARTED = b'{"v":1,"event":"started","call_id":"c"}'
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
    ToolResult("hist_tool_1", "seen", media=[Media("image/png", "aGk="), Media("a/b", url="https://x.test")]),
    Media("image/png", data="aGk="),
    Media("image/png", url="https://example.test/a.png"),
    Code("print(1)", "python"),
)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: type(block).__name__)
def test_each_block_comes_back_from_a_history_as_it_went_in(block: object) -> None:
    message = Message("model", (Text("before"), block, Text("after")), 3, HOME)  # type: ignore[arg-type]  # one of BLOCKS
    back = thaw(freeze(message))
    assert (back, hash(back), repr(back)) == (message, hash(message), repr(message))


def test_a_history_keeps_bytes_and_nothing_the_collector_must_visit() -> None:
    large = ToolResult("hist_tool_1", "r" * LARGE)
    for message in (Message("model", BLOCKS, 1, HOME), Message("tool", (large, large))):
        record = freeze(message)
        gc.collect()  # plain tuples of bytes are taken off its list then
        assert not gc.is_tracked(record)
        assert thaw(record) == message


def test_what_is_large_in_a_message_is_one_object_wherever_it_is_kept() -> None:
    result, signed = ToolResult("c", "r" * LARGE), Thinking("", Seal("signature", quote("s" * LARGE), HOME))
    message = Message("tool", (result, signed, Text("short")))
    record = freeze(message)
    back, seal, _ = thaw(record).blocks
    assert isinstance(back, ToolResult)
    assert isinstance(seal, Thinking)
    assert back.content_json is result.content_json
    assert signed.seal is not None
    assert seal.seal is not None
    assert seal.seal.data is signed.seal.data


def test_a_history_and_a_log_in_memory_share_one_record() -> None:
    message = Message("human", (Text("words"),))
    record = freeze(message)
    assert History([message]).records[1][0] is record
    assert any(part[0] is record for part in rest_event(Submitted(1, message)) if isinstance(part, tuple))
    assert freeze(thaw(record)) is record
    storage = MemoryStorage()
    storage.append([Entry("id", (Submitted(1, message), Started(CallId("c"))))])
    assert storage.read("id") == [b"".join(encode_event(Submitted(1, message))), STARTED]
    assert storage.read("id", after=1) == [STARTED]


@pytest.mark.parametrize("kind", [Submitted, Returned])
def test_nothing_that_a_log_in_memory_keeps_is_visited_by_the_collector(kind: type) -> None:
    event = Submitted(1, Message("model", BLOCKS, 1, HOME)) if kind is Submitted else Returned(CallId("c"))
    kept = rest_event(event)
    gc.collect()  # once for each tuple in a tuple
    gc.collect()
    assert not gc.is_tracked(kept)


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
