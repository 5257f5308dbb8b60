"""What is written to a log comes back as it was; what is not an event of this version is refused."""

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.core.codec import decode_event, encode_event, rest_event, rested_line
from actors.core.content import Code, Media, Message, Seal, Text, Thinking, ToolCall, ToolResult
from actors.core.events import Cancelled, Event, RequestSent, Returned, RoundEnded, Scheduled
from actors.core.identity import Binding, CallId
from actors.core.jsonio import Json, parse, quote
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


@examples(500)
@given(events())
def test_an_event_at_rest_reads_as_the_line_it_is_written_as(event: Event) -> None:
    kept = rest_event(event)
    assert rested_line(kept) == written(event)
    assert rest_event(event) == kept
    assert rested_line(rest_event(decode_event(rested_line(kept)))) == written(event)


def test_the_strategy_knows_every_kind_of_event() -> None:
    kinds = {kind for alias in get_args(Event) for kind in get_args(alias) or (alias,)}
    seen: set[type] = set()

    @examples(4000)
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


TALK = written(
    RoundEnded(
        1,
        1,
        Message(
            "model",
            [
                Text("x"),
                Thinking("t", Seal("signature", quote("s"), Binding("b", "anthropic"))),
                ToolCall(
                    "c", "read", {"a": 1}, native=Seal("call_id", quote("n"), Binding("b", "anthropic"))
                ),
                ToolResult("c", [1], is_complete=True, media=[Media("image/png", "Ag==")]),
                Media("image/png", "AA=="),
                Code("1 + 1", "python"),
            ],
        ),
    )
)
SENT = written(RequestSent(1, 1, Binding("b", "anthropic"), 0, 1, ((CallId("c"), "lost"),)))


@pytest.mark.parametrize(
    ("line", "good", "bad", "told"),
    [
        (
            written(Cancelled(CallId("c"))),
            '"cancelled"}',
            '"bogus"}',
            'cancelled.reason is "bogus", not one of',
        ),
        (SENT, '"lost"', '"found"', 'request_sent.seals[0][1] is "found", not one of'),
        (SENT, '["c","lost"]', '["c"]', 'request_sent.seals[0] is ["c"], not a list of 2'),
        (SENT, '"cursor":1', '"cursor":true', "request_sent.cursor is true, not an integer"),
        (SENT, '"epoch":0,', "", "request_sent.epoch is missing"),
        (SENT, '"binding":["b",', '"binding":[1,', "request_sent.binding[0] is 1, not a text"),
        (GOOD, '"call_id":"c"', '"call_id":null', "returned.call_id is null, not a text"),
        (GOOD, '{"text":"x"}', "null", "returned.content is null, not a text"),
        (GOOD, '{"text":"x"}', '"{"', 'returned.content is "{", not JSON in a string'),
        (GOOD, '{"text":"x"}', r'"\"x\""', "returned.content is"),
        (GOOD, '{"text":"x"}', '{"text":"x","more":1}', "returned.content.more is 1, not a field there is"),
        (GOOD, '"v":1', '"v":true', "v is true, not version 1"),
        (GOOD, '"returned"', "[]", "event is [], not in the catalogue"),
        (TALK, '"speaker":"model"', '"speaker":"nobody"', 'message.speaker is "nobody", not one of'),
        (TALK, '{"text":"x"}', '{"text":"x","code":"y"}', "not a block of one kind"),
        (TALK, '{"text":"x"}', "{}", "message.blocks[0] is {}, not a block of one kind"),
        (TALK, '{"text":"x"}', '{"text":7}', "round_ended.message.blocks[0].text is 7, not a text"),
        (TALK, '"is_complete":true', '"is_complete":1', "blocks[3].is_complete is 1, not true or false"),
        (TALK, r'"{\"a\":1}"', '"[]"', 'blocks[2].arguments is "[]", not JSON in a string that begins'),
        (TALK, '"language":"python"', '"lang":"python"', "blocks[5].language is missing"),
        (TALK, '["call_id","n",', '["call_id",', "blocks[2].native is"),
        (TALK, '"usage":[0,0,0,0]', '"usage":[0,0,0]', "round_ended.usage is [0,0,0], not a list of 4"),
    ],
)
def test_what_is_wrong_in_an_event_is_named_with_its_field_and_its_value(
    line: bytes, good: str, bad: str, told: str
) -> None:
    text = line.decode()
    assert good in text
    with pytest.raises(JournalError) as raised:
        decode_event(text.replace(good, bad, 1).encode())
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)


def test_every_field_must_be_there() -> None:
    line = json.dumps({"v": 1, "event": "opened", "session": "s", "target": "t"}).encode()
    with pytest.raises(JournalError, match=r"opened\.system is missing"):
        decode_event(line)


def test_a_block_is_known_by_its_kind_wherever_that_stands() -> None:
    turned = TALK.replace(b'{"code":"1 + 1","language":"python"}', b'{"language":"python","code":"1 + 1"}')
    assert turned != TALK
    assert decode_event(turned) == decode_event(TALK)


def places(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place in a JSON value, its own included."""
    below: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        below = list(value.items())
    elif isinstance(value, list):
        below = list(enumerate(value))
    return [path, *(place for key, item in below for place in places(item, (*path, key)))]


OTHERS = [
    "",
    "{}",
    "null",
    '"x"',
    " 1",
    "lost",
    "model",
    0,
    -1,
    True,
    None,
    1.5,
    [],
    ["x"],
    {},
    {"text": "x"},
]


def changed(line: bytes, at: int, other: Any, how: str) -> bytes:  # Any: JSON
    """The line with one value replaced or left out, or with one more beside it; `at` says where."""
    root: Any = json.loads(line)  # Any: walked by the path
    value, paths = root, places(root)[1:]
    *path, last = paths[at % len(paths)]
    for step in path:
        value = value[step]
    if how == "set":
        value[last] = other
    elif how == "drop":
        del value[last]
    elif isinstance(value, dict):
        value[how] = other
    else:
        value.append(other)
    return json.dumps(root).encode()


DAMAGED = st.one_of(
    st.builds(
        changed,
        events().map(written),
        st.integers(0, 999),
        st.sampled_from(OTHERS),
        st.sampled_from(["set", "drop", "code", "more"]),
    ),
    st.builds(
        lambda line, start, added, cut: line[:start] + added + line[start + cut :],
        events().map(written),
        st.integers(0, 999),
        st.binary(max_size=3),
        st.integers(0, 3),
    ),
)


@examples(1000)
@given(DAMAGED)
def test_a_damaged_line_is_refused_or_is_the_event_that_it_says(line: bytes) -> None:
    try:
        event = decode_event(line)
    except JournalError:
        return
    again = written(event)
    assert parse(again) == parse(line)
    assert decode_event(again) == event
    assert written(decode_event(again)) == again


def test_large_pieces_are_shared_not_copied() -> None:
    content = quote("x" * 10_000)
    event = RoundEnded(1, 1, Message("model", [Text(json=content)]))
    assert any(piece is content for piece in encode_event(event))
