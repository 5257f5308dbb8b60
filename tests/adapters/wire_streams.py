"""Answers as the two providers send them, written out by hand from the wire rules."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from actors.adapters.decode import decode, decode_body
from actors.core.content import Message, Text, Thinking, ToolCall
from actors.core.dialect import ANTHROPIC, OPENAI_CHAT, Dialect
from actors.core.identity import Binding
from actors.core.stream import Decoder, StreamEvent
from actors.errors import StreamFault

OPENAI = Binding("gpt", "openai_chat", model="gpt-5.5")
CLAUDE = Binding("claude", "anthropic", model="claude-sonnet-5")
SIGNATURE = "EqQBCkgIBRABGAIqQL+/==sig/+é"

Fields = Mapping[str, object]


def chunk(delta: Fields, finish: str | None = None, **more: object) -> dict[str, object]:
    """One Chat Completions chunk."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice], **more}


def fragment(index: int | None, id: str | None = None, name: str | None = None, text: str = "") -> Fields:  # noqa: A002
    """One entry of `delta.tool_calls`. What is None is left out."""
    function = {"arguments": text} if name is None else {"name": name, "arguments": text}
    given = {"index": index, "id": id, "function": function}
    return {key: value for key, value in given.items() if value is not None}


def calls(*fragments: Fields) -> dict[str, object]:
    """A chunk that holds these fragments."""
    return chunk({"tool_calls": list(fragments)})


def openai_stream(*chunks: object, done: bool = True) -> bytes:
    """A stream of `data:` lines. Bytes go in as they are."""
    lines = [item if isinstance(item, bytes) else b"data: " + dumped(item) + b"\n\n" for item in chunks]
    return b"".join(lines) + (b"data: [DONE]\n\n" if done else b"")


def anthropic_stream(*events: Fields, stop: bool = True) -> bytes:
    """A stream of named events, `message_stop` last."""
    all_events = [*events, {"type": "message_stop"}] if stop else events
    return b"".join(b"event: %b\ndata: %b\n\n" % (str(e["type"]).encode(), dumped(e)) for e in all_events)


def start(index: int, **block: object) -> Fields:
    """A `content_block_start`."""
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, **delta: object) -> Fields:
    """A `content_block_delta`."""
    return {"type": "content_block_delta", "index": index, "delta": delta}


def stop(index: int) -> Fields:
    """A `content_block_stop`."""
    return {"type": "content_block_stop", "index": index}


def dumped(value: object) -> bytes:
    """JSON as servers send it, spaces and all."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


@dataclass(frozen=True)
class Recording:
    """One good answer: the bytes, and the message it is."""

    name: str
    profile: Dialect
    binding: Binding
    stream: bytes
    blocks: tuple[tuple[str, ...], ...]

    def decoder(self) -> Decoder:
        """A fresh decoder for it."""
        return decode(self.profile, self.binding)


RECORDINGS = (
    Recording(
        "openai: reasoning, text, two interleaved calls",
        OPENAI_CHAT,
        OPENAI,
        b": OPENROUTER PROCESSING\n\n"
        + openai_stream(
            chunk({"role": "assistant", "content": ""}),
            chunk({"reasoning_content": "Hm, "}),
            chunk({"reasoning_content": "naïve…"}),
            chunk({"content": "I look "}),
            chunk({"content": "at 日本 😀."}),
            calls(fragment(0, "call_A", "read")),
            calls(fragment(1, "call_B", "run")),
            calls(fragment(0, text='{"p" :'), fragment(1, text='{"c":"é')),
            calls(fragment(1, text='"}'), fragment(0, text=" 1}")),
            chunk({}, "tool_calls"),
            {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4}},
        ),
        (
            ("thinking", "Hm, naïve…", ""),
            ("text", "I look at 日本 😀."),
            ("call", "hist_tool_1", "read", '{"p" : 1}', '"call_A"'),
            ("call", "hist_tool_2", "run", '{"c":"é"}', '"call_B"'),
        ),
    ),
    Recording(
        "anthropic: thinking, redacted, text, two calls",
        ANTHROPIC,
        CLAUDE,
        anthropic_stream(
            {"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 1}}},
            start(0, type="thinking", thinking="", signature=""),
            {"type": "ping"},
            delta(0, type="thinking_delta", thinking="Let me "),
            delta(0, type="thinking_delta", thinking="see…"),
            delta(0, type="signature_delta", signature=SIGNATURE),
            stop(0),
            start(1, type="redacted_thinking", data="c2VjcmV0+/=="),
            stop(1),
            start(2, type="text", text=""),
            delta(2, type="text_delta", text="I look at 日本 😀."),
            stop(2),
            start(3, type="tool_use", id="toolu_A", name="read", input={}),
            delta(3, type="input_json_delta", partial_json=""),
            delta(3, type="input_json_delta", partial_json='{"p"'),
            delta(3, type="input_json_delta", partial_json=" : 1}"),
            stop(3),
            start(4, type="tool_use", id="toolu_B", name="now", input={}),
            stop(4),
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}},
        ),
        (
            ("thinking", "Let me see…", json.dumps(SIGNATURE, ensure_ascii=False)),
            ("thinking", "", '"c2VjcmV0+/=="'),
            ("text", "I look at 日本 😀."),
            ("call", "hist_tool_1", "read", '{"p" : 1}', '"toolu_A"'),
            ("call", "hist_tool_2", "now", "{}", '"toolu_B"'),
        ),
    ),
)


def said(message: Message) -> tuple[tuple[str, ...], ...]:
    """A model's message as plain strings: kind, words or id and name, arguments, seal."""
    return tuple(_said(block) for block in message.blocks)


def _said(block: object) -> tuple[str, ...]:
    match block:
        case Text():
            return "text", block.text
        case Thinking():
            return "thinking", block.text, block.seal.data.decode() if block.seal else ""
        case ToolCall():
            native = block.native.data.decode() if block.native else ""
            plain = ("call", block.id, block.name, block.json.decode(), native)
            return plain if block.raw is None else (*plain, block.raw)
        case _:
            raise AssertionError(block)


def run(decoder: Decoder, chunks: Sequence[bytes]) -> tuple[list[StreamEvent], Message | StreamFault]:
    """Feed everything and close. A fault is returned, anything else is raised."""
    events: list[StreamEvent] = []
    try:
        for piece in chunks:
            events += decoder.feed(piece)
        return events, decoder.close()
    except StreamFault as fault:
        return events, fault


def answer(profile: Dialect, stream: bytes) -> Message:
    """The message of a stream that must be good."""
    binding = OPENAI if profile is OPENAI_CHAT else CLAUDE
    _, message = run(decode(profile, binding), [stream])
    assert isinstance(message, Message), message
    return message


def body_answer(profile: Dialect, body: object) -> tuple[list[StreamEvent], Message]:
    """The events and the message of an answer that is not streamed."""
    decoder = decode_body(profile, OPENAI if profile is OPENAI_CHAT else CLAUDE)
    assert decoder.feed(dumped(body)) == []
    message = decoder.close()
    return decoder.late, message


def cut_at_random(data: bytes, random: Random) -> Iterator[bytes]:
    """The same bytes in pieces, most of them short."""
    while data:
        size = random.choice((0, 1, 1, 2, 3, 7, 20, 200))
        yield data[:size]
        data = data[size:]
