"""Distort valid answers as relays do: each decodes to the same message, or is marked as incomplete.

    python -m tests.commands.distortions --count 20000

This makes random answers of every wire family, distorts each in one to three of the ways of `DISTORTIONS`, and decodes
it. A lossless distortion that is applied alone must not change the message. `tests/commands/test_distortions.py` tries
some of them. A failure names the seed: `--seed N --count 1` replays it and prints the stream.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Literal, TypeAlias

from actors.adapters.codec import decode
from actors.core.dialects.profiles import PROFILES
from actors.core.values.content import Message
from tests.adapters import converse_wire as converse
from tests.adapters.wire_streams import (
    Fields,
    anthropic_stream,
    chunk,
    gemini_chunk,
    gemini_stream,
    openai_stream,
    responses_stream,
    run,
)

TOOLS = ("write", "read", "read_file", "now")
Index: TypeAlias = int | str | None


@dataclass(frozen=True)
class Piece:
    """A piece of an answer, independent of the family.

    `part` is the number of the part that it belongs to. The start of a call has the id and the name, its stop the
    complete arguments; `figures` and `finish` belong to no part.
    """

    step: Literal["start", "delta", "stop", "finish", "figures"]
    kind: Literal["text", "call", ""] = ""
    part: int = 0
    index: Index = None
    id: str | None = ""
    name: str | None = ""
    text: str = ""


Stream: TypeAlias = list[Piece]
Content: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]
"""The text of an answer, and the name and arguments of each call."""


@dataclass(frozen=True)
class Answer:
    """A valid answer: a text, and calls with their arguments as JSON."""

    text: str
    calls: tuple[tuple[str, str], ...]

    def pieces(self, random: Random) -> Stream:
        """Return the answer as a well-behaved host streams it."""
        stream: Stream = []
        if self.text:
            at = Piece("start", "text", 0, 0)
            stream += [
                at,
                *(replace(at, step="delta", text=text) for text in split_text(self.text, random)),
                stop_of(at),
            ]
        for number, (name, arguments) in enumerate(self.calls, 1 if self.text else 0):
            at = Piece("start", "call", number, number, f"call_{number}x", name)
            pieces = split_text(arguments, random)
            stream += [at, *(replace(at, step="delta", id="", name="", text=text) for text in pieces)]
            stream.append(stop_of(at, arguments))
        return [*stream, Piece("finish"), Piece("figures", text="whole")]


def stop_of(start: Piece, text: str = "") -> Piece:
    """Return the stop of a part."""
    return replace(start, step="stop", text=text)


def split_text(text: str, random: Random, most: int = 4) -> list[str]:
    """Split a text into non-empty pieces."""
    places = sorted(random.sample(range(1, len(text)), min(random.randrange(most), len(text) - 1)))
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


def random_answer(random: Random) -> Answer:
    """Return a random answer.

    No two calls have the same name and arguments: a duplicate would not count as a distortion.
    """
    words = ("It rains. ", "日本 😀 ", "So, {} it is. ", '"quoted" ')
    text = "".join(random.choices(words, k=random.randrange(4)))
    calls: list[tuple[str, str]] = []
    for _ in range(random.randrange(0 if text else 1, 4)):
        name, arguments = random.choice(TOOLS), {}
        if random.random() < 0.9 and name != "now":
            arguments = {
                key: random.choice(_VALUES)
                for key in random.sample(("path", "text", "a"), random.randint(1, 3))
            }
        spaces = random.choice(((",", ":"), (", ", ": ")))
        call = (name, json.dumps(arguments, ensure_ascii=random.random() < 0.5, separators=spaces))
        if all(_same(call) != _same(other) for other in calls):
            calls.append(call)
    return Answer(text, tuple(calls))


_VALUES: tuple[object, ...] = (
    "a.txt",
    "",
    "before {} after",
    '{"a":1}',
    'he said "{}"',
    "é😀",
    "\\",
    [1, {"b": []}],
    {"c": {}},
    7,
    None,
    True,
)


def _same(call: tuple[str, str]) -> tuple[str, str]:
    return call[0], json.dumps(json.loads(call[1]), sort_keys=True)


# ---- distortions of a stream by relays


def call_positions(stream: Stream) -> Iterator[int]:
    """Yield the positions of the pieces of calls."""
    return (at for at, piece in enumerate(stream) if piece.kind == "call")


def change_calls(stream: Stream, change: Callable[[Piece], Piece], *steps: str) -> Stream:
    """Return a stream with changed pieces of calls, of these steps or of all."""
    return [change(p) if p.kind == "call" and (not steps or p.step in steps) else p for p in stream]


def index_zero(stream: Stream, random: Random) -> Stream:
    return [replace(piece, index=0) for piece in stream]


def index_grows(stream: Stream, random: Random) -> Stream:
    numbers = iter(range(1000))
    return change_calls(stream, lambda piece: replace(piece, index=next(numbers)))


def index_lost(stream: Stream, random: Random) -> Stream:
    return change_calls(stream, lambda piece: replace(piece, index=None))


def index_text(stream: Stream, random: Random) -> Stream:
    return [replace(piece, index=str(piece.index) if piece.index is not None else None) for piece in stream]


def index_restarts(stream: Stream, random: Random) -> Stream:
    """Number the calls from 0 in the deltas only."""
    return change_calls(stream, lambda piece: replace(piece, index=0), "delta")


def ids_placeholder(stream: Stream, random: Random) -> Stream:
    word = random.choice(("null", "None", " ", None))
    return change_calls(stream, lambda piece: replace(piece, id=word), "delta")


def ids_lost(stream: Stream, random: Random) -> Stream:
    word = random.choice(("null", "None", " ", None, ""))
    return change_calls(stream, lambda piece: replace(piece, id=word))


def ids_fresh(stream: Stream, random: Random) -> Stream:
    numbers = iter(range(1000))
    return change_calls(stream, lambda piece: replace(piece, id=f"fresh_{next(numbers)}"), "start", "delta")


def name_repeated(stream: Stream, random: Random) -> Stream:
    names = {piece.part: piece.name for piece in stream if piece.step == "start"}
    return change_calls(stream, lambda piece: replace(piece, name=names[piece.part]), "delta")


def name_pieces(stream: Stream, random: Random) -> Stream:
    given: Stream = []
    for piece in stream:
        if piece.step == "start" and piece.name and piece.text == "":
            first, *rest = split_text(piece.name, random, 3)
            given.append(replace(piece, name=first))
            given += [replace(piece, step="delta", id="", name=more, text="") for more in rest]
        else:
            given.append(piece)
    return given


def name_lost(stream: Stream, random: Random) -> Stream:
    starts = [at for at in call_positions(stream) if stream[at].step == "start"]
    lost = random.choice(starts) if starts else -1
    return [replace(piece, name="") if at == lost else piece for at, piece in enumerate(stream)]


def split(stream: Stream, random: Random) -> Stream:
    given: Stream = []
    for piece in stream:
        if piece.step == "delta" and piece.text:
            given += [replace(piece, text=text) for text in split_text(piece.text, random, 6)]
        else:
            given.append(piece)
    return given


def final_only(stream: Stream, random: Random) -> Stream:
    """Send the arguments where the call begins or ends, and not in between."""
    return [
        piece
        for piece in stream
        if piece.kind != "call" or piece.step != "delta" or (piece.name and not piece.text)
    ]


def call_again(stream: Stream, random: Random) -> Stream:
    """Repeat a call after the others: with the same index, another, or none."""
    parts = sorted({stream[at].part for at in call_positions(stream)})
    if not parts:
        return stream
    part, index = random.choice(parts), random.choice((0, 99, None, part_index := "same"))
    again = [piece for piece in stream if piece.kind == "call" and piece.part == part]
    if index != part_index:
        again = [replace(piece, index=index) for piece in again]
    end = next(
        at for at, piece in enumerate(stream) if piece.step == "finish" and at > max(call_positions(stream))
    )
    return [*stream[:end], *(replace(piece, part=piece.part + 50) for piece in again), *stream[end:]]


def deltas(stream: Stream, change: Callable[[Sequence[Piece]], Sequence[Piece]]) -> Stream:
    """Return a stream with changed deltas of each call."""
    given: Stream = []
    held: Stream = []
    for piece in [*stream, Piece("figures")]:
        is_delta = piece.kind == "call" and piece.step == "delta" and bool(piece.text)
        if is_delta and (not held or held[-1].part == piece.part):
            held.append(piece)
            continue
        given += change(held) if held else ()
        held = [piece] if is_delta else []
        given += () if held else (piece,)
    return given[:-1]


def empty_first(stream: Stream, random: Random) -> Stream:
    return deltas(stream, lambda told: [replace(told[0], text="{}"), *told])


def cumulative(stream: Stream, random: Random) -> Stream:
    def grown(told: Sequence[Piece]) -> Sequence[Piece]:
        texts = [piece.text for piece in told]
        return [replace(piece, text="".join(texts[: at + 1])) for at, piece in enumerate(told)]

    return deltas(stream, grown)


def arguments_again(stream: Stream, random: Random) -> Stream:
    return deltas(stream, lambda told: [*told, replace(told[-1], text="".join(piece.text for piece in told))])


def finish_early(stream: Stream, random: Random) -> Stream:
    place = random.randrange(len(stream))
    return [*stream[:place], Piece("finish"), *stream[place:]]


def finish_always(stream: Stream, random: Random) -> Stream:
    return [both for piece in stream for both in (piece, Piece("finish"))]


def figures_bare(stream: Stream, random: Random) -> Stream:
    return [*stream, Piece("figures", text="bare")]


Distortion: TypeAlias = Callable[[Stream, Random], Stream]
LOSSLESS: tuple[Distortion, ...] = (
    index_zero,
    index_grows,
    index_lost,
    index_text,
    ids_placeholder,
    ids_fresh,
    name_repeated,
    name_pieces,
    split,
    final_only,
    call_again,
    empty_first,
    cumulative,
    arguments_again,
    finish_early,
    finish_always,
    figures_bare,
)
LOSING: tuple[Distortion, ...] = (ids_lost, name_lost, index_restarts)
DISTORTIONS = (*LOSSLESS, *LOSING)
RESENDING: tuple[Distortion, ...] = (call_again, empty_first, cumulative, arguments_again)
APART: tuple[set[Distortion], ...] = (
    {ids_lost, call_again},
    {ids_lost, name_lost},
    {ids_lost, name_repeated},
    {ids_fresh, call_again},
    {ids_fresh, name_repeated, index_grows},
    {ids_fresh, name_lost},
    {empty_first, name_repeated, index_grows},
    {name_lost, name_repeated, index_grows},
    {index_restarts, name_repeated},
    {name_pieces, name_repeated},
    {name_pieces, final_only},
    {name_pieces, index_restarts},
    {name_pieces, name_lost},
    *[set[Distortion]((index_restarts, resending)) for resending in RESENDING],
    *[set[Distortion]((ids_fresh, name_repeated, resending)) for resending in RESENDING],
)
"""Distortions that are not combined: together they give another valid answer, or one that no relay sends."""

# ---- wire formats


def chat(stream: Stream, reason: str) -> bytes:
    chunks: list[object] = []
    whole = not any(piece.kind == "call" and piece.step == "delta" and piece.text for piece in stream)
    for piece in stream:
        if piece.step == "finish":
            chunks.append(chunk({}, reason))
        elif piece.step == "figures":
            chunks.append(_chat_figures(piece))
        elif piece.kind == "text" and piece.text:
            chunks.append(chunk({"content": piece.text}))
        elif piece.kind == "call" and piece.step != "stop":
            text = (
                next((p.text for p in stream if p.step == "stop" and p.part == piece.part), "")
                if whole
                else piece.text
            )
            function = {"name": piece.name, "arguments": text}
            given = {"index": piece.index, "id": piece.id, "type": "function", "function": function}
            chunks.append(chunk({"tool_calls": [given]}))
    return openai_stream(*chunks)


def _chat_figures(piece: Piece) -> Fields:
    details = {"cached_tokens": 80} if piece.text == "whole" else None
    usage = {"prompt_tokens": 100, "completion_tokens": 3, "prompt_tokens_details": details}
    return {"object": "chat.completion.chunk", "choices": [], "usage": usage}


def anthropic(stream: Stream, reason: str) -> bytes:
    usage = {"input_tokens": 20, "cache_read_input_tokens": 80, "output_tokens": 1}
    events: list[Fields] = [{"type": "message_start", "message": {"usage": usage}}]
    whole = not any(piece.kind == "call" and piece.step == "delta" and piece.text for piece in stream)
    for piece in stream:
        if piece.step == "finish":
            events.append({"type": "message_delta", "delta": {"stop_reason": reason}})
        elif piece.step == "figures":
            events.append({"type": "message_delta", "delta": {}, "usage": {"output_tokens": 3}})
        elif piece.step == "start" and piece.kind == "text":
            events.append(_block(piece, type="text", text=""))
        elif piece.step == "start":
            text = (
                next((p.text for p in stream if p.step == "stop" and p.part == piece.part), "")
                if whole
                else ""
            )
            given = json.loads(text or "{}")
            events.append(_block(piece, type="tool_use", id=piece.id, name=piece.name, input=given))
        elif piece.step == "delta":
            said = {"type": "text_delta", "text": piece.text}
            argued = {"type": "input_json_delta", "partial_json": piece.text}
            delta = said if piece.kind == "text" else argued
            events.append({"type": "content_block_delta", "index": piece.index, "delta": delta})
        else:
            events.append({"type": "content_block_stop", "index": piece.index})
    return anthropic_stream(*events)


def _block(piece: Piece, **block: object) -> Fields:
    return {"type": "content_block_start", "index": piece.index, "content_block": block}


def responses(stream: Stream, reason: str) -> bytes:
    events: list[Fields] = []
    for piece in stream:
        place = {"output_index": piece.index}
        if piece.step == "start":
            events.append({"type": "response.output_item.added", **place, "item": _item(piece, "")})
        elif piece.step == "stop":
            text = piece.text if piece.kind == "call" else _text_of(stream, piece.part)
            events.append({"type": "response.output_item.done", **place, "item": _item(piece, text)})
        elif piece.step == "delta":
            what = "output_text" if piece.kind == "text" else "function_call_arguments"
            item_id = f"fc_{piece.part}" if piece.id == "" else piece.id
            events.append(
                {"type": f"response.{what}.delta", **place, "item_id": item_id, "delta": piece.text}
            )
    output = [
        _item(p, p.text if p.kind == "call" else _text_of(stream, p.part)) for p in stream if p.step == "stop"
    ]
    usage = {"input_tokens": 100, "output_tokens": 3, "input_tokens_details": {"cached_tokens": 80}}
    response = {"status": "completed", "output": output, "usage": usage}
    return responses_stream(*events, {"type": "response.completed", "response": response}, done=False)


def _item(piece: Piece, text: str) -> Fields:
    item_id = f"fc_{piece.part}"
    if piece.kind == "text":
        content = [{"type": "output_text", "text": text}] if text else []
        return {"type": "message", "id": item_id, "role": "assistant", "content": content}
    call = {
        "type": "function_call",
        "id": item_id,
        "call_id": piece.id,
        "name": piece.name,
        "arguments": text,
    }
    return {**call, "status": "completed" if piece.step == "stop" else "in_progress"}


def _text_of(stream: Stream, part: int) -> str:
    return "".join(p.text for p in stream if p.kind == "text" and p.part == part and p.step == "delta")


def gemini(stream: Stream, reason: str) -> bytes:
    chunks: list[object] = []
    for piece in stream:
        if piece.step == "finish":
            chunks.append(gemini_chunk(finish=reason))
        elif piece.step == "figures":
            cached = {"cachedContentTokenCount": 80} if piece.text == "whole" else {}
            usage = {"promptTokenCount": 100, "candidatesTokenCount": 3, **cached}
            chunks.append({"usageMetadata": usage})
        elif piece.kind == "text" and piece.text:
            chunks.append(gemini_chunk({"text": piece.text}))
        elif piece.kind == "call" and piece.step == "stop":
            start = next(p for p in stream if p.part == piece.part and p.step == "start")
            call = {"id": start.id, "name": start.name, "args": json.loads(piece.text or "{}")}
            chunks.append(gemini_chunk({"functionCall": call}))
    return gemini_stream(*chunks)


def bedrock(stream: Stream, reason: str) -> bytes:
    frames, ends = [converse.HEAD], [piece for piece in stream if piece.step == "figures"]
    for piece in stream:
        place = {"contentBlockIndex": piece.index}
        if piece.step == "finish":
            frames.append(converse.message_stop(reason))
        elif piece.step == "start" and piece.kind == "call":
            told = {"toolUse": {"toolUseId": piece.id, "name": piece.name}}
            frames.append(converse.event("contentBlockStart", start=told, **place))
        elif piece.step == "delta":
            delta = {"text": piece.text} if piece.kind == "text" else {"toolUse": {"input": piece.text}}
            frames.append(converse.event("contentBlockDelta", delta=delta, **place))
        elif piece.step == "stop":
            frames.append(converse.event("contentBlockStop", **place))
    figures = {"inputTokens": 20, "outputTokens": 3, "cacheReadInputTokens": 80}
    return b"".join([*frames, *(converse.metadata(**figures) for _ in ends[:1])])


_BLOCKS = (
    index_zero,
    index_grows,
    index_lost,
    index_text,
    split,
    call_again,
    empty_first,
    cumulative,
    arguments_again,
)
_BLOCKS_TOO = (*_BLOCKS, finish_early, finish_always, name_lost, ids_lost)
FAMILIES: Mapping[str, tuple[Callable[[Stream, str], bytes], str, tuple[Distortion, ...]]] = {
    "openai_compatible": (chat, "tool_calls", DISTORTIONS),
    "mistral": (chat, "tool_calls", DISTORTIONS),
    "anthropic": (anthropic, "tool_use", (*_BLOCKS_TOO, index_restarts, final_only, figures_bare)),
    "bedrock": (bedrock, "tool_use", _BLOCKS_TOO),
    "openai_responses": (
        responses,
        "completed",
        (*_BLOCKS, ids_placeholder, ids_fresh, final_only, name_lost, index_restarts),
    ),
    "gemini": (
        gemini,
        "STOP",
        (split, call_again, finish_early, finish_always, figures_bare, name_lost, ids_lost),
    ),
}
"""The wire format of each dialect, its plain finish reason, and the distortions that it can express."""


def content_of(message: Message) -> Content:
    """Return a message in the form of `Answer`; malformed arguments stay raw."""
    calls = [(call.name, call.raw or json.dumps(call.arguments, sort_keys=True)) for call in message.calls]
    return message.text, tuple(calls)


@dataclass(frozen=True)
class Trial:
    """One distorted answer and its expected message."""

    dialect: str
    answer: Answer
    names: tuple[str, ...]
    stream: bytes
    is_lossless: bool
    knows_tools: bool

    def fault(self) -> str:
        """Return the problem with its decoded form; empty if there is none."""
        decoder = decode(PROFILES[self.dialect], tools=frozenset(TOOLS) if self.knows_tools else None)
        _, message = run(decoder, [self.stream])
        if not isinstance(message, Message):
            return f"a fault: {message}" if self.is_lossless else ""
        wanted = self.answer.text, tuple(_same(call) for call in self.answer.calls)
        if content_of(message) == wanted:
            if self.is_lossless and decoder.cut_reason:
                return "the same message, but marked as incomplete"
            figures = (decoder.usage.input_tokens, decoder.usage.cache_read_tokens)
            return "" if figures == (100, 80) else f"figures {figures}"
        if not self.is_lossless and (decoder.cut_reason or any(call.is_malformed for call in message.calls)):
            return ""
        return f"{content_of(message)} instead of {wanted}, cut {decoder.cut_reason}"


def trial(seed: int) -> Trial:
    """Return the distorted answer of a seed."""
    random = Random(seed)
    answer = random_answer(random)
    dialect = random.choice(list(FAMILIES))
    write, reason, ways = FAMILIES[dialect]
    chosen = random.sample(ways, random.choice((1, 1, 2, 3)))
    while any(pair <= set(chosen) for pair in APART):
        chosen.pop()
    chosen.sort(
        key=lambda distort: distort.__name__.startswith("f")
    )  # distortions of finish and figures come last
    stream = answer.pieces(random)
    for distort in chosen:
        stream = distort(stream, random)
    names = tuple(distort.__name__ for distort in chosen)
    is_lossless = len(chosen) == 1 and chosen[0] in LOSSLESS
    knows_tools = name_pieces in chosen or random.random() < 0.5
    return Trial(dialect, answer, names, write(stream, reason), is_lossless, knows_tools)


def main(arguments: Sequence[str] | None = None) -> int:
    """Decode distorted answers, print the failures, and return their number."""
    parser = argparse.ArgumentParser(description="Do distorted answers decode to the same message?")
    parser.add_argument("--count", type=int, default=20_000, help="how many answers are distorted")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    given = parser.parse_args(arguments)
    failed: Counter[tuple[str, ...]] = Counter()
    for seed in range(given.seed, given.seed + given.count):
        tried = trial(seed)
        if fault := tried.fault():
            failed[tried.dialect, *tried.names] += 1
            if failed.total() <= 20 or given.count == 1:
                sys.stdout.write(f"seed {seed}: {tried.dialect}, {' + '.join(tried.names)}: {fault}\n")
        if given.count == 1:
            sys.stdout.write(tried.stream.decode("utf-8", "replace"))
    sys.stdout.write(f"{given.count} distorted answers, {failed.total()} decoded wrongly\n")
    for names, count in failed.most_common(20):
        sys.stdout.write(f"{count:6} {' '.join(names)}\n")
    return min(failed.total(), 1)


if __name__ == "__main__":
    sys.exit(main())
