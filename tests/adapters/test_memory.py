"""Check that decoding a large answer takes at most twice its size in memory, in every family."""

import json
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from itertools import product

import pytest

from actors.adapters.codec import decode
from actors.core.dialects.profiles import PROFILES
from tests.adapters import converse_wire as converse
from tests.adapters.wire_streams import (
    anthropic_stream,
    calls,
    chunk,
    delta,
    fragment,
    function_call,
    gemini_chunk,
    gemini_stream,
    item_added,
    item_delta,
    openai_stream,
    responses_stream,
    start,
    stop,
)

SIZE = 5 * 256 * 1024
"""Characters of the text of a large answer."""
SPARE = 512 * 1024
"""Bytes for all that does not grow with the answer: the decoder, a chunk, an event."""
CHUNK = 64 * 1024
KINDS = ("text", "reasoning", "arguments", "malformed")
CALLS = ("arguments", "malformed")

Pieces = Sequence[str]
Body = dict[str, object]


def chat_stream(kind: str, pieces: Pieces) -> Iterator[bytes]:
    if kind in CALLS:
        yield openai_stream(calls(fragment(0, "x", "f")), done=False)
    for piece in pieces:
        said = {"content": piece} if kind == "text" else {"reasoning_content": piece}
        event = calls(fragment(0, text=piece)) if kind in CALLS else chunk(said)
        yield openai_stream(event, done=False)
    yield openai_stream(chunk({}, "stop"))


def chat_body(kind: str, whole: str) -> Body:
    message: Body = {"content": "", "reasoning_content": ""}
    if kind in CALLS:
        message["tool_calls"] = [fragment(0, "x", "f", whole)]
    else:
        message["content" if kind == "text" else "reasoning_content"] = whole
    return {"choices": [{"message": message, "finish_reason": "stop"}]}


def anthropic_streamed(kind: str, pieces: Pieces) -> Iterator[bytes]:
    made: dict[str, tuple[Body, str, str]] = {
        "text": ({"type": "text", "text": ""}, "text_delta", "text"),
        "reasoning": ({"type": "thinking", "thinking": ""}, "thinking_delta", "thinking"),
        "arguments": (
            {"type": "tool_use", "id": "x", "name": "f", "input": {}},
            "input_json_delta",
            "partial_json",
        ),
    }
    block, name, key = made["arguments" if kind in CALLS else kind]
    yield anthropic_stream(start(0, **block), stop=False)
    for piece in pieces:
        yield anthropic_stream(delta(0, type=name, **{key: piece}), stop=False)
    yield anthropic_stream(stop(0), {"type": "message_delta", "delta": {"stop_reason": "end_turn"}})


def anthropic_body(kind: str, whole: str) -> Body:
    made: dict[str, Body] = {
        "text": {"type": "text", "text": whole},
        "reasoning": {"type": "thinking", "thinking": whole},
        "arguments": {"type": "tool_use", "id": "x", "name": "f", "input": {"p": whole}},
        "malformed": {"type": "tool_use", "id": "x", "name": "f", "input": whole},
    }
    block = made[kind]
    return {"content": [block], "stop_reason": "end_turn"}


def responses_streamed(kind: str, pieces: Pieces) -> Iterator[bytes]:
    texts = {"text": "output_text", "reasoning": "reasoning_text"}
    what = texts.get(kind, "function_call_arguments")
    if kind in CALLS:
        yield responses_stream(item_added(0, **function_call("m", "x", "f", "")), done=False)
    for piece in pieces:
        yield responses_stream(item_delta(what, 0, "m", piece), done=False)
    if kind in CALLS:
        item = function_call("m", "x", "f", "")
        yield responses_stream({"type": "response.output_item.done", "item": item}, done=False)
    yield responses_stream()


def responses_body(kind: str, whole: str) -> Body:
    made: dict[str, Body] = {
        "text": {"type": "message", "id": "m", "content": [{"type": "output_text", "text": whole}]},
        "reasoning": {"type": "reasoning", "id": "r", "content": [{"type": "reasoning_text", "text": whole}]},
    }
    item = dict(function_call("m", "x", "f", whole)) if kind in CALLS else made[kind]
    return {"status": "completed", "output": [item]}


def gemini_streamed(kind: str, pieces: Pieces) -> Iterator[bytes]:
    for piece in pieces:
        more: Body = {"thought": True} if kind == "reasoning" else {}
        yield gemini_stream(gemini_chunk({"text": piece, **more}))
    yield gemini_stream(gemini_chunk(finish="STOP"))


def gemini_body(kind: str, whole: str) -> Body:
    part: Body = {"text": whole, "thought": kind == "reasoning"}
    if kind in CALLS:
        args = {"p": whole} if kind == "arguments" else whole
        part = {"functionCall": {"name": "f", "args": args}}
    return gemini_chunk(part, finish="STOP")


def bedrock_streamed(kind: str, pieces: Pieces) -> Iterator[bytes]:
    yield converse.HEAD
    if kind in CALLS:
        yield converse.begin(0, "x", "f")
    for piece in pieces:
        made: dict[str, Body] = {
            "text": {"text": piece},
            "reasoning": {"reasoningContent": {"text": piece}},
            "arguments": {"toolUse": {"input": piece}},
        }
        yield converse.delta(0, **made["arguments" if kind in CALLS else kind])
    yield converse.stop(0) + converse.message_stop() + converse.metadata()


def bedrock_body(kind: str, whole: str) -> Body:
    made: dict[str, Body] = {
        "text": {"text": whole},
        "reasoning": {"reasoningContent": {"reasoningText": {"text": whole}}},
        "arguments": {"toolUse": {"toolUseId": "x", "name": "f", "input": {"p": whole}}},
        "malformed": {"toolUse": {"toolUseId": "x", "name": "f", "input": whole}},
    }
    block = made[kind]
    return converse.body(block)


WIRES: dict[str, tuple[Callable[[str, Pieces], Iterator[bytes]], Callable[[str, str], Body]]] = {
    "openai_chat": (chat_stream, chat_body),
    "anthropic": (anthropic_streamed, anthropic_body),
    "openai_responses": (responses_streamed, responses_body),
    "gemini": (gemini_streamed, gemini_body),
    "bedrock": (bedrock_streamed, bedrock_body),
}


def measure_decoding(name: str, chunks: Iterator[bytes], *, stream: bool) -> tuple[int, int]:
    """Return the size of an answer and the peak memory of decoding it, in bytes."""
    decoder, came = decode(PROFILES[name], stream=stream), [*chunks]
    tracemalloc.start()
    try:
        for piece in came:
            decoder.feed(piece)
        assert decoder.close().blocks
        return sum(map(len, came)), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def sample_text(kind: str, text: str, *, size: int = SIZE, escaped: bool = False) -> str:
    """Return a text of `size` characters, or the arguments of a call that contain such a text."""
    whole = (text * (size // len(text) + 1))[:size]
    return json.dumps({"p": whole}, ensure_ascii=escaped) if kind == "arguments" else whole


ACCENTS, CHINESE, EMOJI = "naïve ", "中文 " * 20, "é😀 a"
STREAMED = [
    *product(KINDS, [("a", 16 * 1024), (EMOJI, 4096)]),
    *product(("text", "reasoning", "malformed"), [("a", 32)]),
    *product(CALLS, [(CHINESE, 4096)]),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("kind", "said"), STREAMED)
@pytest.mark.parametrize("name", WIRES)
def test_decoding_a_large_streamed_answer_takes_at_most_twice_its_size_in_memory(
    name: str, kind: str, said: tuple[str, int]
) -> None:
    if kind in CALLS and name == "gemini":
        return  # Gemini sends complete calls only
    text, length = said
    whole = sample_text(kind, text, size=SIZE // (16 if length < 100 else 2))
    pieces = [whole[at : at + length] for at in range(0, len(whole), length)]
    size, most = measure_decoding(name, WIRES[name][0](kind, pieces), stream=True)
    assert most <= 2 * size + SPARE // 2, f"{most / size:.2f} x"


WHOLE = [
    *product(KINDS, ("a", EMOJI, CHINESE)),
    *product(("text", "reasoning", "arguments"), (ACCENTS,)),
    *product(("text", "malformed"), ("a" * 1000 + "😀",)),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("kind", "text", "escaped"),
    [
        (kind, text, escaped)
        for escaped in (True, False)
        for kind, text in WHOLE
        if not (escaped and text.isascii())  # there is nothing to escape
    ],
)
@pytest.mark.parametrize("name", WIRES)
def test_decoding_a_large_unstreamed_answer_takes_at_most_twice_its_size_in_memory(
    name: str, kind: str, text: str, escaped: bool
) -> None:
    is_text = name in ("openai_chat", "openai_responses")  # for arguments, a text that is JSON
    whole = sample_text(kind if is_text else "text", text, escaped=escaped)
    data = json.dumps(WIRES[name][1](kind, whole), ensure_ascii=escaped).encode()
    pieces = (data[at : at + CHUNK] for at in range(0, len(data), CHUNK))
    size, most = measure_decoding(name, pieces, stream=False)
    assert most <= 2 * size + SPARE, f"{most / size:.2f} x"


@pytest.mark.parametrize("stream", [True, False])
def test_decoding_a_large_free_text_call_takes_at_most_twice_its_size_in_memory(stream: bool) -> None:
    whole = sample_text("text", EMOJI)
    item = {"type": "custom_tool_call", "id": "m", "call_id": "x", "name": "f", "input": ""}
    if stream:
        pieces = [whole[at : at + 4096] for at in range(0, len(whole), 4096)]
        deltas = [item_delta("custom_tool_call_input", 0, "m", piece) for piece in pieces]
        done = {"type": "response.output_item.done", "item": {**item, "status": "completed"}}
        chunks = [responses_stream(event, done=False) for event in (item_added(0, **item), *deltas, done)]
        chunks.append(responses_stream())
    else:
        body = {"status": "completed", "output": [{**item, "input": whole}]}
        data = json.dumps(body, ensure_ascii=False).encode()
        chunks = [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)]
    size, most = measure_decoding("openai_responses", iter(chunks), stream=stream)
    assert most <= 2 * size + SPARE, f"{most / size:.2f} x"
