"""What is written to a log comes back as it was; what is not an event of this version is refused."""

import json
from typing import get_args

import pytest
from hypothesis import given

from actors.core.codec import decode_event, encode_event
from actors.core.content import Message, Seal, Text, Thinking, ToolCall
from actors.core.events import Event, Opened, Returned, RoundEnded, Scheduled
from actors.core.identity import Binding, CallId
from actors.core.jsonio import Json, quote
from actors.errors import JournalError
from actors.testing.histories import history
from actors.testing.strategies import events
from tests.core.session_log import examples, simulated


def written(event: Event) -> bytes:
    return b"".join(encode_event(event))


@examples(1000)
@given(events())
def test_every_event_comes_back_as_it_was(event: Event) -> None:
    line = written(event)
    assert b"\n" not in line
    assert decode_event(line) == event
    assert written(decode_event(line)) == line


def test_the_strategy_knows_every_kind_of_event() -> None:
    kinds = {kind for alias in get_args(Event) for kind in get_args(alias) or (alias,)}
    seen: set[type] = set()

    @examples(1000)
    @given(events())
    def collect(event: Event) -> None:
        seen.add(type(event))

    collect()
    assert seen == kinds


@pytest.mark.requirement("PROMISE-6")
def test_the_log_of_a_generated_session_comes_back_as_it_was() -> None:
    for seed in range(200):
        for event in simulated(*history(seed), seed).log:
            again = decode_event(written(event))
            assert written(again) == written(event)


def test_lone_surrogates_are_replaced_and_never_fail() -> None:
    event = Scheduled(CallId("\ud800"), "r\udc00", Json(b"{}"))
    assert decode_event(written(event)) == Scheduled(CallId("\ufffd"), "r\ufffd", Json(b"{}"))


def test_arguments_and_signatures_keep_every_byte() -> None:
    origin = Binding("b", "anthropic")
    call = ToolCall("c", "read", json=Json(b'{ "a" : [1.0, 1e2],\n"b":"\\u00e9\\/" }'))
    thought = Thinking("t", Seal("signature", quote('s"\\\u00e9'), origin))
    event = RoundEnded(1, 1, Message("model", [thought, call, Text("x")], origin=origin))
    assert decode_event(written(event)) == event


GOOD = written(Returned(CallId("c"), quote("x")))


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff",
        GOOD[:-1],
        GOOD.replace(b'"v":1', b'"v":2'),
        GOOD.replace(b"returned", b"vanished"),
        GOOD.replace(b"call_id", b"callid"),
        GOOD.replace(b"{", b'{"more":1,', 1),
        b'{"v":1,"event":"returned"}',
        b'{"v":1,"event":"round_ended","turn":1,"round":1,"message":{"speaker":"model"}}',
    ],
)
def test_what_is_no_event_is_refused_in_one_line(line: bytes) -> None:
    with pytest.raises(JournalError) as raised:
        decode_event(line)
    assert "\n" not in str(raised.value)


def test_a_field_that_has_a_default_may_be_missing_in_an_older_log() -> None:
    line = json.dumps({"v": 1, "event": "opened", "session": "s", "target": "t"}).encode()
    assert decode_event(line) == Opened("s", "t")


def test_large_pieces_are_shared_not_copied() -> None:
    content = quote("x" * 10_000)
    event = RoundEnded(1, 1, Message("model", [Text(json=content)]))
    assert any(piece is content for piece in encode_event(event))
