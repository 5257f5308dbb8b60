"""Build provider answers from the wire rules."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from actors.adapters.base import Decoder
from actors.adapters.codec import decode
from actors.core.dialects.dialect import Dialect
from actors.core.dialects.profiles import PROFILES
from actors.core.values.content import Message, ProviderBlock, Text, Thinking, ToolCall
from actors.core.values.identity import Binding
from actors.core.values.stream import StreamEvent
from actors.errors import StreamFault

OPENAI = Binding("gpt", "openai_chat", model="gpt-5.5")
CLAUDE = Binding("claude", "anthropic", model="claude-sonnet-5")
RESPONSES = Binding("responses", "openai_responses", model="gpt-5.5")
GOOGLE = Binding("gemini", "gemini", model="gemini-3-pro")
BINDINGS = {binding.dialect: binding for binding in (OPENAI, CLAUDE, RESPONSES, GOOGLE)}
SIGNATURE = "EqQBCkgIBRABGAIqQL+/==sig/+é"

Fields = Mapping[str, object]


def chunk(delta: Fields, finish: str | None = None, **more: object) -> dict[str, object]:
    """One Chat Completions chunk."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice], **more}


def fragment(index: int | None, id: str | None = None, name: str | None = None, text: str = "") -> Fields:  # noqa: A002
    """One entry of `delta.tool_calls`. Values that are None are omitted."""
    function = {"arguments": text} if name is None else {"name": name, "arguments": text}
    given = {"index": index, "id": id, "function": function}
    return {key: value for key, value in given.items() if value is not None}


def calls(*fragments: Fields) -> dict[str, object]:
    """A chunk that holds these fragments."""
    return chunk({"tool_calls": list(fragments)})


def openai_stream(*chunks: object, done: bool = True) -> bytes:
    """A stream of `data:` lines. Bytes are included verbatim."""
    lines = [item if isinstance(item, bytes) else b"data: " + dump_json(item) + b"\n\n" for item in chunks]
    return b"".join(lines) + (b"data: [DONE]\n\n" if done else b"")


def anthropic_stream(*events: Fields, stop: bool = True) -> bytes:
    """A stream of named events, `message_stop` last."""
    all_events = [*events, {"type": "message_stop"}] if stop else events
    return b"".join(b"event: %b\ndata: %b\n\n" % (str(e["type"]).encode(), dump_json(e)) for e in all_events)


def responses_stream(*events: Fields, done: bool = True) -> bytes:
    """A stream of named events, each with its number."""
    ended = ({"type": "response.completed", "response": {"status": "completed"}},) if done else ()
    numbered = [{**event, "sequence_number": at} for at, event in enumerate((*events, *ended))]
    return b"".join(b"event: %b\ndata: %b\n\n" % (str(e["type"]).encode(), dump_json(e)) for e in numbered)


def item_added(index: int, **item: object) -> Fields:
    """A `response.output_item.added`."""
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def item_done(index: int, **item: object) -> Fields:
    """A `response.output_item.done`."""
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def item_delta(kind: str, index: int, item_id: str, piece: str, **more: object) -> Fields:
    """A delta of an item: `item_delta("output_text", ...)`."""
    place = {"output_index": index, "item_id": item_id}
    return {"type": f"response.{kind}.delta", **place, "delta": piece, **more}


def function_call(item_id: str, call_id: str, name: str, arguments: str, status: str = "completed") -> Fields:
    """A `function_call` item."""
    named = {"type": "function_call", "id": item_id, "call_id": call_id, "name": name}
    return {**named, "arguments": arguments, "status": status}


def gemini_chunk(*parts: Fields, finish: str | None = None, **more: object) -> dict[str, object]:
    """One GenerateContentResponse with the new parts."""
    candidate: dict[str, object] = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "modelVersion": "gemini-3-pro", "responseId": "r1", **more}


def gemini_stream(*chunks: object) -> bytes:
    """A stream of `data:` lines with the provider's line ends."""
    return b"".join(b"data: " + dump_json(item) + b"\r\n\r\n" for item in chunks)


def start(index: int, **block: object) -> Fields:
    """A `content_block_start`."""
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, **delta: object) -> Fields:
    """A `content_block_delta`."""
    return {"type": "content_block_delta", "index": index, "delta": delta}


def stop(index: int) -> Fields:
    """A `content_block_stop`."""
    return {"type": "content_block_stop", "index": index}


def dump_json(value: object) -> bytes:
    """JSON as servers send it, spaces and all."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


@dataclass(frozen=True)
class Recording:
    """A complete streamed answer of a provider: its bytes, and the blocks of its message.

    `recordings/DIALECT.sse` has the bytes and `recordings/DIALECT.json` the blocks, in the form of `message_outline`.
    """

    binding: Binding
    stream: bytes
    blocks: tuple[tuple[str, ...], ...]

    @property
    def profile(self) -> Dialect:
        return PROFILES[self.binding.dialect]

    def decoder(self) -> Decoder:
        """Return a new decoder for the answer."""
        return decode(self.profile, self.binding)


def _recording(binding: Binding) -> Recording:
    path = Path(__file__).parent / "recordings" / binding.dialect
    blocks = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    return Recording(binding, path.with_suffix(".sse").read_bytes(), tuple(map(tuple, blocks)))


RECORDINGS = tuple(map(_recording, BINDINGS.values()))
SUMMARY = [{"type": "summary_text", "text": "Let me see…"}, {"type": "summary_text", "text": "Yes."}]
REASONING = json.dumps(
    {"type": "reasoning", "id": "rs_1", "summary": SUMMARY, "encrypted_content": "gAAA+/==é"},
    ensure_ascii=False,
    separators=(",", ":"),
)
"""The reasoning item as it is sent again."""


def message_outline(message: Message) -> tuple[tuple[str, ...], ...]:
    """Return a model message as plain strings: kind, text or id and name, arguments, seal."""
    return tuple(_block_outline(block) for block in message.blocks)


def _block_outline(block: object) -> tuple[str, ...]:
    match block:
        case Text():
            return "text", block.text
        case Thinking():
            return "thinking", block.text, block.seal.data.decode() if block.seal else ""
        case ToolCall():
            native = block.native.data.decode() if block.native else ""
            plain = ("call", block.id, block.name, block.json.decode(), native)
            return plain if block.raw is None else (*plain, block.raw)
        case ProviderBlock():
            return "native", block.name, block.seal.kind
        case _:
            raise AssertionError(block)


def run(decoder: Decoder, chunks: Sequence[bytes]) -> tuple[list[StreamEvent], Message | StreamFault]:
    """Feed all chunks and close the decoder. Faults are returned, other exceptions raised."""
    events: list[StreamEvent] = []
    try:
        for piece in chunks:
            events += decoder.feed(piece)
        return events, decoder.close()
    except StreamFault as fault:
        return events, fault


def answer(profile: Dialect, stream: bytes) -> Message:
    """Return the message of a valid stream."""
    _, message = run(decode(profile, BINDINGS[profile.name]), [stream])
    assert isinstance(message, Message), message
    return message


def body_answer(profile: Dialect, body: object) -> tuple[list[StreamEvent], Message]:
    """Return the events and the message of a body."""
    decoder = decode(profile, BINDINGS[profile.name], stream=False)
    assert decoder.feed(dump_json(body)) == []
    message = decoder.close()
    return list(decoder.late), message


def cut_at_random(data: bytes, random: Random) -> Iterator[bytes]:
    """Split the bytes into pieces, most of them short."""
    while data:
        size = random.choice((0, 1, 1, 2, 3, 7, 20, 200))
        yield data[:size]
        data = data[size:]
