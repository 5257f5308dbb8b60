"""Check that optimised code paths give the same results as simple code."""

import gc
import json
import pickle
from copy import deepcopy
from hashlib import sha256
from inspect import signature

import pytest

from actors.adapters.document import load_json
from actors.core.data.jsonio import Quoted, quote, sanitise
from actors.core.data.record import replace
from actors.core.history.history import History, extend
from actors.core.ledger import Ledger
from actors.core.log.call_events import Cancelled, Failed, Returned, Scheduled, Started
from actors.core.log.codec import decode_event, encode_event
from actors.core.log.events import AskStarted, Opened, RequestSent, TurnStarted
from actors.core.session.state import SessionState
from actors.core.transcript.transcript import mint
from actors.core.values.content import (
    Code,
    Media,
    Message,
    ProviderState,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from actors.core.values.identity import Binding, CallId
from actors.core.values.packed import LARGE, pack, unpack
from actors.journal.storage import Entry
from actors.journal.storage.memory import MemoryStorage
from actors.testing.images import png_base64

PIXEL = png_base64()

HOME = Binding("home", "anthropic", "https://api.example", "", "model-1")
BLOCKS = (
    Text("words"),
    Text(""),
    Thinking("thought", ProviderState("signature", quote("s" * 300), HOME)),
    Thinking("unsealed"),
    ToolCall("hist_tool_1", "search", {"query": "é"}, native=ProviderState("call_id", quote("call_1"), HOME)),
    ToolCall("", "", raw="{broken"),
    ToolResult("hist_tool_1", {"rows": [1, 2]}, is_complete=True),
    ToolResult("hist_tool_1", error="gone", is_complete=False),
    ToolResult("nobody"),
    ToolResult("hist_tool_1", "seen", media=[Media("image/png", PIXEL), Media("a/b", url="https://x.test")]),
    Media("image/png", data=PIXEL),
    Media("image/png", url="https://example.test/a.png"),
    Code("print(1)", "python"),
)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: type(block).__name__)
def test_each_block_round_trips_through_a_history(block: object) -> None:
    message = Message("assistant", (Text("before"), block, Text("after")), 3, HOME)  # type: ignore[arg-type]  # one of BLOCKS
    back = unpack(pack(message))
    assert (back, hash(back), repr(back)) == (message, hash(message), repr(message))


def test_values_stored_in_large_numbers_are_not_tracked_by_the_garbage_collector() -> None:
    packed = pack(Message("assistant", BLOCKS, 1, HOME))
    events = (Opened("s", "t", None, (packed,)), AskStarted(1, packed), RequestSent(1, 1, HOME, 0, 1))
    history = extend(History(), (packed,) * 100)
    for _ in range(4):  # one collection untracks one level of nested tuples
        gc.collect()
    for kept in (packed, *events, Returned(CallId("c")), history, history._packed, Text("x"), HOME):
        assert not gc.is_tracked(kept)
    assert list(history.upto(1)) == [Message("assistant", BLOCKS, 1, HOME)]


def test_packing_and_reading_large_media_keeps_them_as_one_object() -> None:
    large, small = "A" * LARGE, "A" * (LARGE - 1)
    held = (Media("image/png", large), Media("image/png", small), Media("a/b", "\0"), Media("a/b", url="u"))
    message = Message("tool", (ToolResult("c", "r", media=held), Text("x"), held[0]))
    packed = pack(message)
    assert isinstance(packed, tuple)
    assert len(packed[0]) < 2 * LARGE
    again = unpack(packed)
    assert again == message
    assert isinstance(again.blocks[0], ToolResult)
    assert isinstance(again.blocks[2], Media)
    assert again.blocks[0].media[0].data is again.blocks[2].data is large
    assert pack(again) == packed


def test_equal_bindings_are_read_as_one_object() -> None:
    seal = ProviderState("signature", quote("s"), replace(HOME, upstream="Elsewhere"))
    packed = pack(Message("assistant", (*BLOCKS, Thinking("x", seal)), 1, HOME))
    one, two = unpack(packed), unpack(packed)
    assert one.origin is two.origin
    makers = [block.seal.origin for block in one.blocks if isinstance(block, Thinking) and block.seal]
    assert makers == [HOME, seal.origin]
    assert makers[0] is one.origin
    bound = [decode_event(encode_event(TurnStarted(1, 1, HOME))) for _ in range(2)]
    assert bound[0].binding is bound[1].binding  # type: ignore[union-attr]  # both are `TurnStarted`


def test_a_history_and_a_log_in_memory_share_one_packed_message() -> None:
    packed, started = pack(Message("user", (Text("words"),))), Started(CallId("c"))
    events = (Opened("id", "t", None, (packed,)), AskStarted(1, packed), started)
    state = SessionState().apply(events[0]).apply(events[1])
    assert state.history._packed[1][0] is packed
    assert state.history._packed[1][1] is packed
    storage = MemoryStorage()
    assert storage.append([Entry("id", storage.claim("id").fence, events)]) == [3]
    assert storage.read("id") == list(events)
    assert storage.read("id", after=2) == [started]
    assert all(read is event for read, event in zip(storage.read("id"), events, strict=True))


@pytest.mark.parametrize("value", BLOCKS)
def test_a_block_can_be_copied_and_pickled(value: object) -> None:
    assert deepcopy(value) == value
    assert pickle.loads(pickle.dumps(value)) == value


def test_the_repr_of_a_block_is_its_constructor_call() -> None:
    assert list(signature(Text).parameters) == ["text", "json"]
    with pytest.raises(TypeError):
        Text("x", quote("y"))  # type: ignore[call-arg]  # that is the point
    with pytest.raises(AttributeError):
        Text("x").json = Quoted(quote("y"))  # type: ignore[misc]  # as above


def test_queries_of_the_ledger_for_one_call_agree_with_its_complete_list() -> None:
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
        result = known.completion if known else None
        shown = result and (result.rendered_json, result.error is not None, result.media)
        assert ledger._answer(call_id) == shown
    assert [ledger._answer(call_id) is not None for call_id in calls] == [True, True, *[False] * 4]


@pytest.mark.parametrize("call_id", ["hist_tool_1", "", "é", "hist_tool_1#1", *map(str, range(50))])
def test_a_generated_id_is_the_first_24_base_62_digits_of_a_digest(call_id: str) -> None:
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
def test_provider_json_is_parsed_with_the_tolerance_of_the_json_module(text: str) -> None:
    assert repr(load_json(text)) == repr(json.loads(text))


@pytest.mark.parametrize("text", ["", "{", '{"a":}', "[1,]", "{} {}", "\ud800", "[" * 100_000])
def test_invalid_json_raises_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        load_json(text)


@pytest.mark.parametrize(
    ("text", "expected"), [("plain", "plain"), ("é", "é"), ("\ud83d\ude00", "😀"), ("a\ud800b", "a\ufffdb")]
)
def test_a_lone_surrogate_is_replaced_and_the_rest_of_the_text_is_kept(text: str, expected: str) -> None:
    assert sanitise(text) == expected
