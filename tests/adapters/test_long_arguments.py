"""Check that arguments too long for one string are decoded like any others."""

import json
from collections.abc import Sequence

import pytest

from actors.adapters.base import Decoder
from actors.adapters.codec import decode
from actors.adapters.partial import Pieces
from actors.core.data.jsonio import MAX_ARGUMENTS
from actors.core.dialects.profiles import PROFILES
from actors.core.values.content import ToolCall
from actors.core.values.stream import ArgumentsDelta, StreamEvent
from tests.adapters.wire_streams import (
    calls,
    chunk,
    fragment,
    function_call,
    item_added,
    item_delta,
    openai_stream,
    responses_stream,
)

LONG = 'é😀\n"a\\ ' * 60_000
"""More characters than arguments may have, in a document of more than 1 MiB."""
OBJECT = json.dumps({"p": "é😀a " * 20_000}, ensure_ascii=False)
"""Acceptable arguments; four of them are not."""


def decode_stream(*pieces: str) -> tuple[Decoder, Sequence[ToolCall]]:
    """Return the calls of an answer with one call, with its arguments in these pieces."""
    decoder = decode(PROFILES["openai_chat"], stream=True)
    decoder.feed(openai_stream(calls(fragment(0, "x", "f")), done=False))
    for piece in pieces:
        decoder.feed(openai_stream(calls(fragment(0, text=piece)), done=False))
    decoder.feed(openai_stream(chunk({}, "tool_calls")))
    return decoder, decoder.close().calls


def argued(events: Sequence[StreamEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, ArgumentsDelta))


@pytest.mark.parametrize("escaped", [True, False])
@pytest.mark.parametrize("is_object", [True, False])
def test_long_arguments_of_a_body_are_kept_verbatim(is_object: bool, escaped: bool) -> None:
    given: object = {"p": [LONG, {"q": LONG}], "n": [], "o": {}} if is_object else LONG
    text = json.dumps(given, ensure_ascii=False, separators=(",", ":")) if is_object else LONG
    part = {"functionCall": {"name": "f", "args": given}}
    body = {"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]}
    decoder = decode(PROFILES["gemini"], stream=False)
    decoder.feed(json.dumps(body, ensure_ascii=escaped).encode())
    (call,) = decoder.close().calls
    assert (call.json, call.raw, call.is_malformed) == (b"{}", text, True)
    assert argued(list(decoder.late)) == text


@pytest.mark.parametrize(
    "pieces",
    {
        "with blanks around it": (" " * MAX_ARGUMENTS, OBJECT, "\n" * MAX_ARGUMENTS),
        "again and again": (OBJECT, OBJECT, "\n", OBJECT, OBJECT),
        "between empty ones": ("{}", OBJECT, OBJECT, OBJECT, OBJECT),
        "as it grows": ("{}", *(OBJECT[: len(OBJECT) * part // 8] for part in range(1, 9))),
    }.items(),
    ids=lambda named: named[0],
)
def test_an_arguments_object_is_extracted_from_a_longer_text(pieces: tuple[str, tuple[str, ...]]) -> None:
    assert sum(map(len, pieces[1])) > MAX_ARGUMENTS
    _, (call,) = decode_stream(*pieces[1])
    assert (call.json.decode(), call.is_malformed) == (OBJECT, False)


@pytest.mark.parametrize(
    "text", ["{}" + json.dumps({"p": LONG}), OBJECT + LONG, OBJECT * 3 + OBJECT[:-1], json.dumps([LONG])]
)
def test_arguments_text_that_does_not_contain_exactly_one_object_is_kept_verbatim(text: str) -> None:
    _, (call,) = decode_stream(*(text[at : at + 30_000] for at in range(0, len(text), 30_000)))
    assert (call.json, call.raw) == (b"{}", text)


@pytest.mark.parametrize("at", [0, 9_000, 299_999, None])
def test_the_final_arguments_text_continues_or_replaces_earlier_fragments(at: int | None) -> None:
    """`at` is the position at which the final text differs from the pieces."""
    whole = LONG[:310_000]
    before = whole[:300_000]
    if at is not None:
        before = before[:at] + "?" + before[at + 1 :]
    decoder = decode(PROFILES["openai_responses"], stream=True)
    events = decoder.feed(responses_stream(item_added(0, **function_call("m", "x", "f", "")), done=False))
    for begin in range(0, len(before), 10_000):
        piece = item_delta("function_call_arguments", 0, "m", before[begin : begin + 10_000])
        events += decoder.feed(responses_stream(piece, done=False))
    item = function_call("m", "x", "f", whole)
    done = {"type": "response.output_item.done", "item": item}
    events += decoder.feed(responses_stream(done))
    (call,) = decoder.close().calls
    assert call.raw == whole
    assert argued(events) == (whole if at is None else before)


@pytest.mark.parametrize(
    ("texts", "rest"),
    [(["ab", "cd", "efgh", "i"], "ghi"), (["abcdef"], ""), (["ab", "xx", "ef"], None), (["abc", "de"], None)],
)
def test_the_unstreamed_remainder_of_a_text_does_not_depend_on_how_the_text_was_split(
    texts: list[str], rest: str | None
) -> None:
    found = Pieces.from_text("abcdef").remainder_of(texts)
    assert (None if found is None else "".join(found)) == rest


@pytest.mark.parametrize(("end", "count"), [("", 1), ("?", 2)])
def test_an_exact_copy_of_a_long_call_is_dropped(end: str, count: int) -> None:
    given = [fragment(index, "x", "f", LONG + more) for index, more in enumerate(("", end))]
    decoder = decode(PROFILES["openai_chat"], stream=False)
    body = {"choices": [{"message": {"tool_calls": given}, "finish_reason": "tool_calls"}]}
    decoder.feed(json.dumps(body).encode())
    assert len(decoder.close().calls) == count
