"""Check that log events round-trip and that invalid events are rejected."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import msgpack

from actors.core.data.jsonio import Json, quote
from actors.core.log.call_events import Cancelled, Returned, Scheduled
from actors.core.log.codec import decode_event, encode_event
from actors.core.log.events import VERSION, AskStarted, LogEvent, RequestSent, RoundEnded
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
from actors.core.values.packed import pack, unpack
from actors.errors import JournalError
from tests.commands.at_scale import share
from tests.core.session_log import examples, simulate
from tests.generated.histories import history
from tests.generated.strategies import events


@examples(1000)
@given(events())
def test_encoding_and_decoding_any_log_event_returns_the_same_event(event: LogEvent) -> None:
    record = encode_event(event)
    assert decode_event(record) == event
    assert encode_event(decode_event(record)) == record


@pytest.mark.requirement("PROMISE-6")
def test_encoding_and_decoding_a_generated_log_returns_the_same_log() -> None:
    for seed in range(share(960)):
        for event in simulate(*history(seed), seed).log:
            record = encode_event(event)
            assert encode_event(decode_event(record)) == record


def test_encoding_an_event_replaces_lone_surrogates() -> None:
    event = Scheduled(CallId("\ud800"), "r\udc00", Json(b"{}"))
    assert decode_event(encode_event(event)) == Scheduled(CallId("\ufffd"), "r\ufffd", Json(b"{}"))
    lost = Message("assistant", [ToolCall("\ud800", "a", raw="\udfff"), Media("image/png", "\ud800" * 5000)])
    back = decode_event(encode_event(AskStarted(1, pack(lost))))
    assert isinstance(back, AskStarted)
    call, media = unpack(back.message).blocks
    assert call == ToolCall("\ufffd", "a", raw="\ufffd")
    assert media == Media("image/png", "\ufffd" * 5000)


def test_arguments_and_signatures_keep_every_byte() -> None:
    origin = Binding("b", "anthropic")
    call = ToolCall("c", "read", json=Json(b'{ "a" : [1.0, 1e2],\n"b":"\\u00e9\\/" }'))
    thought = Thinking("t", ProviderState("signature", quote('s"\\\u00e9'), origin))
    packed = pack(Message("assistant", [thought, call, Text("x")], origin=origin))
    event = RoundEnded(1, 1, packed)
    assert decode_event(encode_event(event)) == event
    assert unpack(packed).blocks == (thought, call, Text("x"))


MADE = Binding("b", "anthropic")
GOOD = encode_event(Returned(CallId("c"), quote("x")))
SENT = encode_event(RequestSent(1, 1, MADE, 0, 1, ((CallId("c"), "lost"),)))
SAID = Message(
    "assistant",
    [
        Text("x"),
        Thinking("t", ProviderState("signature", quote("s"), MADE)),
        ToolCall("c", "read", {"a": 1}, native=ProviderState("call_id", quote("n"), MADE)),
        ToolResult("c", [1], is_complete=True, media=[Media("image/png", "Ag==")]),
        Media("image/png", "AA=="),
        Code("1 + 1", "python"),
    ],
)
TALK = encode_event(RoundEnded(1, 1, pack(SAID)))


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"{}",
        b"\x90",
        b"\xc0",
        b"\xff",
        GOOD[:-1],
        GOOD + b"\x00",
        GOOD.replace(b"returned", b"vanished"),
        TALK[: len(TALK) // 2],
    ],
)
def test_an_invalid_event_is_rejected_with_a_one_line_error(record: bytes) -> None:
    with pytest.raises(JournalError) as raised:
        decode_event(record)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("version", [VERSION + 1, VERSION - 1, str(VERSION), None, True])
def test_an_unknown_version_is_rejected(version: object) -> None:
    with pytest.raises(JournalError, match="version: "):
        decode_event(msgpack.encode([version, msgpack.decode(GOOD)[1]]))


def change_record(
    record: bytes, way: tuple[int, ...], other: Any, in_message: bool = False
) -> bytes:  # Any: msgpack
    """Return the record with a value replaced, or its list truncated before the value (`...`)."""
    root: Any = msgpack.decode(record)  # Any: traversed by its keys
    said: Any = msgpack.decode(root[1][3]) if in_message else root
    *path, last = way
    value = said
    for step in path:
        value = value[step]
    if other is ...:
        del value[last:]
    else:
        value[last:last] = [other] if last == len(value) else []
        value[last] = other
    if in_message:
        root[1][3] = msgpack.encode(said)
    return msgpack.encode(root)


@pytest.mark.parametrize(
    ("record", "way", "other", "told"),
    [
        (encode_event(Cancelled(CallId("c"))), (1, 2), "bogus", "cancelled.reason: 'bogus': "),
        (encode_event(Cancelled(CallId("c"))), (1, 2), ..., "cancelled.reason: missing"),
        (SENT, (1, 6, 0, 1), "found", "request_sent.seals[0][1]: 'found': "),
        (SENT, (1, 6, 0, 1), ..., "request_sent.seals[0]: ['c']: "),
        (SENT, (1, 5), True, "request_sent.cursor: True: Expected `int`"),
        (SENT, (1, 4), ..., "request_sent.epoch: "),
        (SENT, (1, 3, 0), 1, "request_sent.binding.backend: 1: Expected `str`"),
        (SENT, (1, 7), 1, "request_sent"),
        (GOOD, (1, 1), None, "returned.call_id: None: Expected `str`"),
        (GOOD, (1, 2), None, "returned.content: None: Expected `bytes`"),
        (GOOD, (1, 2), b"{", "returned.content: b'{': not valid JSON"),
        (GOOD, (1, 2), b'"\xff"', "returned.content"),
        (GOOD, (1, 2), ..., "returned.content: missing"),
        (GOOD, (0,), True, "version: True: "),
        (GOOD, (0,), VERSION + 1, f"version: {VERSION + 1}: "),
        (GOOD, (1, 0), [], "Expected `str`"),
        (GOOD, (1, 0), "vanished", "'vanished'"),
    ],
)
def test_an_event_error_names_the_field_and_its_value(
    record: bytes, way: tuple[int, ...], other: object, told: str
) -> None:
    with pytest.raises(JournalError) as raised:
        decode_event(change_record(record, way, other))
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("way", "other", "told"),
    [
        ((0,), "nobody", "round_ended.message.role: 'nobody': "),
        ((1, 0, 0), "z", "round_ended.message.blocks[0]"),
        ((1, 0), [], "round_ended.message.blocks[0]"),
        ((1, 0, 1), 7, "round_ended.message.blocks[0].json: 7: Expected `bytes`"),
        ((1, 0, 1), b"7", "round_ended.message.blocks[0].json: b'7': not valid JSON of the type"),
        ((1, 0, 2), 7, "round_ended.message.blocks[0]"),
        ((1, 1, 2, 1), b"{", "round_ended.message.blocks[1].seal.data: b'{': not valid JSON of the type"),
        ((1, 1, 2, 2), None, "a seal names no binding"),
        ((1, 2, 3), b"[]", "round_ended.message.blocks[2].json: b'[]': not valid JSON of the type"),
        ((1, 2, 5, 1), ..., "round_ended.message.blocks[2].native"),
        ((1, 3, 4), 1, "round_ended.message.blocks[3].is_complete: 1: "),
        ((1, 3, 5), ..., "round_ended.message.blocks[3].media: "),
        ((1, 5, 2), None, "round_ended.message.blocks[5].language: None: "),
        ((3,), ..., "round_ended.message.origin: "),
    ],
)
def test_a_message_error_names_the_field_and_its_value(
    way: tuple[int, ...], other: object, told: str
) -> None:
    with pytest.raises(JournalError) as raised:
        decode_event(change_record(TALK, way, other, in_message=True))
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)


def places(value: object, way: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
    """Yield every path in a msgpack value, including its root."""
    below = enumerate(value) if isinstance(value, list) else ()
    return [way, *(place for at, item in below for place in places(item, (*way, at)))]


OTHERS = ["", "x", "lost", "model", 0, -1, True, None, 1.5, [], ["x"], b"", b"{}", b'"x"', ...]


def damage_event(event: LogEvent, at: int, other: object) -> bytes:
    """Return an event's record with a value replaced or omitted, every other time within its message."""
    record = encode_event(event)
    said = event.message if at % 2 == 0 and isinstance(event, RoundEnded) else None
    in_message = isinstance(said, bytes)
    ways = places(msgpack.decode(said if isinstance(said, bytes) else record))[1:]
    return change_record(record, ways[at // 2 % len(ways)], other, in_message)


DAMAGED = st.one_of(
    st.builds(damage_event, events(), st.integers(0, 999), st.sampled_from(OTHERS)),
    st.builds(
        lambda record, start, added, cut: record[:start] + added + record[start + cut :],
        events().map(encode_event),
        st.integers(0, 999),
        st.binary(max_size=3),
        st.integers(0, 3),
    ),
)


@examples(1500)
@given(DAMAGED)
def test_a_damaged_record_is_rejected_or_decodes_to_its_content(record: bytes) -> None:
    try:
        event = decode_event(record)
    except JournalError:
        return
    assert encode_event(event) == record
