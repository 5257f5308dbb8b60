"""Check the parser of server-sent events: any split, any line ending, bounded memory."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.adapters.framing import EventParser, ServerEvent
from actors.errors import StreamFault

MEBIBYTE = 1024 * 1024


def parse_events(chunks: Sequence[bytes], parser: EventParser | None = None) -> list[ServerEvent]:
    parser = parser or EventParser(MEBIBYTE)
    return [event for chunk in chunks for event in parser.feed(chunk)] + parser.close()


def one_by_one(data: bytes) -> list[bytes]:
    return [data[place : place + 1] for place in range(len(data))]


STREAMS = {
    "plain": (b"data: a\n\ndata: b\n\n", [("", "a"), ("", "b")]),
    "named": (b"event: ping\ndata: {}\n\n", [("ping", "{}")]),
    "CR only": (b"event: x\rdata: a\r\rdata: b\r\r", [("x", "a"), ("", "b")]),
    "CRLF": (b"event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n", [("x", "a"), ("", "b")]),
    "mixed line ends": (b"data: a\r\ndata: b\rdata: c\n\r\n", [("", "a\nb\nc")]),
    "byte order mark": (b"\xef\xbb\xbfdata: a\n\n", [("", "a")]),
    "comments": (b": hello\ndata: a\n: inside\ndata: b\n\n:\n\n", [("", "a\nb")]),
    "split character": ("data: 日本😀\n\n".encode(), [("", "日本😀")]),
    "broken character": (b"data: a\xffb\n\n", [("", "a\ufffdb")]),
    "no blank line at the end": (b"data: a\n\ndata: [DONE]", [("", "a"), ("", "[DONE]")]),
    "one space is taken": (b"data:  a\ndata:b\n\n", [("", " a\nb")]),
    "unknown fields": (b"id: 7\nretry: 100\nnonsense\nfoo: bar\ndata: a\n\n", [("", "a")]),
    "an event without data": (b"event: ping\n\ndata: a\n\n", [("", "a")]),
    "empty data": (b"data\n\ndata:\n\n", [("", ""), ("", "")]),
    "JSON among the events": (
        b'data: a\n\n{"error":\r\n  {"code": 1}\n\n}\ndata: b\n\n',
        [("", "a"), ("", "b"), ("", '{"error":\n  {"code": 1}\n}')],
    ),
    "nothing": (b"", []),
    "U+2028 ends no line": ("data: a\u2028b\x0bc\x85\n\n".encode(), [("", "a\u2028b\x0bc\x85")]),
}


@pytest.mark.parametrize("name", STREAMS)
def test_events_do_not_depend_on_how_the_bytes_are_split(name: str) -> None:
    data, expected = STREAMS[name]
    events = [ServerEvent(*event) for event in expected]
    assert parse_events([data]) == events
    assert parse_events(one_by_one(data)) == events
    for place in range(len(data)):
        assert parse_events([data[:place], b"", data[place:]]) == events


@given(
    st.lists(
        st.sampled_from([b"data: x", b"event: y", b"\r", b"\n", b"\r\n", b":", b"\xff", b"\xef\xbb\xbf"])
    )
)
def test_any_bytes_are_parsed_equally_in_one_piece_and_in_many_pieces(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    assert parse_events([data]) == parse_events(one_by_one(data)) == parse_events(pieces)


def test_an_event_above_the_size_limit_is_reported_as_a_fault_regardless_of_its_split() -> None:
    big = b"data: " + b"x" * 100
    for chunks in ([big + b"\n\n"], one_by_one(big), [b"data: " + b"x" * 40 + b"\n"] * 3, [b"y" * 101]):
        with pytest.raises(StreamFault, match="larger than 100 bytes"):
            parse_events(chunks, EventParser(max_event=100))


def test_a_flood_of_empty_data_lines_is_bounded() -> None:
    parser = EventParser(max_event=100)
    with pytest.raises(StreamFault, match="larger than 100 bytes"):
        parser.feed(b"data\n" * 200)


def test_the_number_of_data_lines_of_an_event_is_bounded() -> None:
    data = b"data:a\n" * 100_000
    (event,) = EventParser(MEBIBYTE).feed(data + b"\n")
    assert len(event.data) == 199_999
    with pytest.raises(StreamFault, match="has more than 100000 data lines"):
        EventParser(MEBIBYTE).feed(data + b"data:a\n")


@pytest.mark.parametrize("size", [1, 2, 3, 64 * 1024])
def test_a_byte_order_mark_may_precede_a_large_data_line(size: int) -> None:
    data = b"\xef\xbb\xbfdata: " + b"x" * 2 * MEBIBYTE
    chunks = [data[:size], *(data[at : at + 64 * 1024] for at in range(size, len(data), 64 * 1024))]
    (event,) = parse_events(chunks, EventParser(3 * MEBIBYTE))
    assert len(event.data) == 2 * MEBIBYTE


def test_the_amount_of_json_outside_sse_events_is_limited() -> None:
    parser = EventParser(max_event=100)
    with pytest.raises(StreamFault, match="larger than 100 bytes"):
        parser.feed(b'[\n"x",\n\n' * 30)


def test_a_flood_of_comments_inside_one_event_is_skipped() -> None:
    parser = EventParser(max_event=100)
    assert parser.feed(b"data: a\n" + b": keep-alive\n" * 1000 + b"data: b\n\n") == [ServerEvent("", "a\nb")]


def test_sse_data_may_be_large_but_all_other_lines_together_are_limited() -> None:
    data = b"data: " + b"x" * 2 * MEBIBYTE + b"\n: keep-alive\n\n"
    assert [len(event.data) for event in parse_events([data], EventParser(3 * MEBIBYTE))] == [2 * MEBIBYTE]
    for line in (b"x" * 2 * MEBIBYTE, b'{"error": 1}\n' * 100_000, b": " + b"x" * 2 * MEBIBYTE):
        with pytest.raises(StreamFault, match="is not data is larger than 1048576 bytes"):
            parse_events([line], EventParser(3 * MEBIBYTE))


def test_an_event_of_exactly_the_size_limit_is_accepted() -> None:
    data = b"data: " + b"x" * 93
    assert len(EventParser(max_event=100).feed(data + b"\n\n")) == 1


def test_a_large_event_received_byte_by_byte_is_reported_as_a_fault() -> None:
    with pytest.raises(StreamFault, match="larger than 1048576 bytes"):
        parse_events([b"data: "] + [b"x"] * MEBIBYTE)
