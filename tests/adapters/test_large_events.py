"""Check stream events as large as an answer, since final events may repeat the complete answer."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from actors.adapters.codec import decode
from actors.core.dialects.profiles import dialect
from actors.core.values.content import Text
from actors.errors import StreamFault

Json = dict[str, Any]  # Any: an event under test
PIECE = 64 * 1024


def repeated_text_events(text: str) -> Iterator[Json]:
    """Yield the events of a Responses answer: deltas, followed by three copies of the text."""
    part = {"type": "output_text", "text": text, "annotations": []}
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    yield {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}}
    for at in range(0, len(text), PIECE):
        yield {"type": "response.output_text.delta", **place, "delta": text[at : at + PIECE]}
    yield {"type": "response.output_text.done", **place, "text": text}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": "response.completed", "response": {"status": "completed", "output": [item]}}


@pytest.mark.parametrize("letter", ["x", "\N{GRINNING FACE}"])
def test_text_repeated_in_the_last_events_of_a_stream_is_decoded_once(letter: str) -> None:
    text = letter * (1_200_000 // len(letter.encode()))
    decoder = decode(dialect("openai_responses"))
    for event in repeated_text_events(text):
        decoder.feed(f"data: {json.dumps(event, ensure_ascii=False)}\n\n".encode())
    assert [block.text for block in decoder.close().blocks if isinstance(block, Text)] == [text]


def test_the_last_events_of_a_stream_count_towards_the_size_limit() -> None:
    decoder = decode(dialect("openai_responses"), max_bytes=3_000_000)
    *events, last = (
        f"data: {json.dumps(event)}\n\n".encode() for event in repeated_text_events("x" * 900_000)
    )
    for event in events:
        decoder.feed(event)
    with pytest.raises(StreamFault, match="larger than 3000000 bytes"):
        decoder.feed(last)


def test_an_endless_event_is_buffered_up_to_the_size_limit() -> None:
    decoder = decode(dialect("openai_responses"), max_bytes=100_000)
    decoder.feed(b"data: " + b"x" * 90_000)
    with pytest.raises(StreamFault, match="larger than 100000 bytes"):
        decoder.feed(b"x" * 10_000)


VALUES = b'{"type": "x", "a": [' + b"[]," * 600_000 + b"1]}"
QUOTES = '{"type": "x", "a": "\N{GRINNING FACE}'.encode() + b'"' * 3_000_000 + b"}"


@pytest.mark.parametrize(
    ("begin", "data", "end"),
    [
        pytest.param(b"data: ", VALUES, b"\n\n", id="event"),
        pytest.param(b"data: ", VALUES, b"", id="last event"),
        pytest.param(b"", VALUES, b"", id="body"),
        pytest.param(b"data: ", QUOTES, b"\n\n", id="quotes in an event"),
        pytest.param(b"", QUOTES, b"", id="quotes in a body"),
    ],
)
def test_a_json_document_with_too_many_values_is_rejected(begin: bytes, data: bytes, end: bytes) -> None:
    decoder = decode(dialect("openai_responses"), stream=bool(begin))
    with pytest.raises(StreamFault, match="contains more than 1000000 JSON values"):  # noqa: PT012  by either call
        decoder.feed(begin + data + end)
        decoder.close()


@pytest.mark.parametrize("letter", ["", "\N{GRINNING FACE}"])
def test_a_string_of_brackets_and_commas_counts_as_one_json_value(letter: str) -> None:
    text = letter + '[{,"\\' * 400_000
    decoder = decode(dialect("openai_responses"))
    for event in repeated_text_events(text):
        decoder.feed(f"data: {json.dumps(event, ensure_ascii=False)}\n\n".encode())
    assert [block.text for block in decoder.close().blocks if isinstance(block, Text)] == [text]
