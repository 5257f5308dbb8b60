"""Answers as the providers send them, written out by hand from the wire rules."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from actors.adapters.base import Decoder
from actors.adapters.codec import decode
from actors.core.dialects.dialect import Dialect
from actors.core.dialects.profiles import ANTHROPIC, GEMINI, OPENAI_CHAT, OPENAI_RESPONSES
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


def responses_stream(*events: Fields, done: bool = True) -> bytes:
    """A stream of named events, each with its number."""
    ended = ({"type": "response.completed", "response": {"status": "completed"}},) if done else ()
    numbered = [{**event, "sequence_number": at} for at, event in enumerate((*events, *ended))]
    return b"".join(b"event: %b\ndata: %b\n\n" % (str(e["type"]).encode(), dumped(e)) for e in numbered)


def added(index: int, **item: object) -> Fields:
    """A `response.output_item.added`."""
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def finished(index: int, **item: object) -> Fields:
    """A `response.output_item.done`."""
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def told(kind: str, index: int, item_id: str, piece: str, **more: object) -> Fields:
    """A delta of an item: `told("output_text", ...)`."""
    place = {"output_index": index, "item_id": item_id}
    return {"type": f"response.{kind}.delta", **place, "delta": piece, **more}


def function_call(item_id: str, call_id: str, name: str, arguments: str, status: str = "completed") -> Fields:
    """A `function_call` item."""
    named = {"type": "function_call", "id": item_id, "call_id": call_id, "name": name}
    return {**named, "arguments": arguments, "status": status}


def gemini_chunk(*parts: Fields, finish: str | None = None, **more: object) -> dict[str, object]:
    """One GenerateContentResponse with the parts that are new."""
    candidate: dict[str, object] = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "modelVersion": "gemini-3-pro", "responseId": "r1", **more}


def gemini_stream(*chunks: object) -> bytes:
    """A stream of `data:` lines, ended as the provider ends them."""
    return b"".join(b"data: " + dumped(item) + b"\r\n\r\n" for item in chunks)


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


SUMMARY = [{"type": "summary_text", "text": "Let me see…"}, {"type": "summary_text", "text": "Yes."}]
REASONING = json.dumps(
    {"type": "reasoning", "id": "rs_1", "summary": SUMMARY, "encrypted_content": "gAAA+/==é"},
    ensure_ascii=False,
    separators=(",", ":"),
)
"""The reasoning item as it is sent again."""

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
    Recording(
        "responses: reasoning, a phased message, two interleaved calls",
        OPENAI_RESPONSES,
        RESPONSES,
        responses_stream(
            {"type": "response.created", "response": {"status": "in_progress", "output": []}},
            added(0, type="reasoning", id="rs_1", summary=[], encrypted_content="part"),
            told("reasoning_summary_text", 0, "rs_1", "Let me ", summary_index=0),
            told("reasoning_summary_text", 0, "rs_1", "see…", summary_index=0),
            told("reasoning_summary_text", 0, "rs_1", "Yes.", summary_index=1),
            finished(0, type="reasoning", id="rs_1", summary=SUMMARY, encrypted_content="gAAA+/==é"),
            added(1, type="message", id="msg_1", role="assistant", content=[], phase="commentary"),
            {"type": "response.content_part.added", "output_index": 1, "item_id": "msg_1", "part": {}},
            told("output_text", 1, "msg_1", "I look "),
            told("output_text", 1, "msg_1", "at 日本 😀."),
            finished(
                1,
                type="message",
                id="msg_1",
                role="assistant",
                phase="commentary",
                content=[{"type": "output_text", "text": "I look at 日本 😀."}],
            ),
            added(2, **function_call("fc_1", "call_A", "read", "", "in_progress")),
            added(3, **function_call("fc_2", "call_B", "run", "", "in_progress")),
            told("function_call_arguments", 2, "fc_1", '{"p" :'),
            told("function_call_arguments", 3, "fc_2", '{"c":"é'),
            told("function_call_arguments", 3, "fc_2", '"}'),
            told("function_call_arguments", 2, "fc_1", " 1}"),
            {
                "type": "response.function_call_arguments.done",
                "output_index": 2,
                "item_id": "fc_1",
                "arguments": '{"p" : 1}',
            },
            finished(3, **function_call("fc_2", "call_B", "run", '{"c":"é"}')),
            finished(2, **function_call("fc_1", "call_A", "read", '{"p" : 1}')),
        ),
        (
            ("thinking", "Let me see…\n\nYes.", json.dumps(REASONING, ensure_ascii=False)),
            ("thinking", "", '"commentary"'),
            ("text", "I look at 日本 😀."),
            ("call", "hist_tool_1", "read", '{"p" : 1}', '"call_A"'),
            ("call", "hist_tool_2", "run", '{"c":"é"}', '"call_B"'),
        ),
    ),
    Recording(
        "gemini: thought, text, a signed and an unsigned call, a signature at the end",
        GEMINI,
        GOOGLE,
        gemini_stream(
            gemini_chunk({"text": "Let me ", "thought": True}),
            gemini_chunk({"text": "see…", "thought": True}),
            gemini_chunk({"text": "I look "}, usageMetadata={"promptTokenCount": 5}),
            gemini_chunk({"text": "at 日本 😀."}),
            gemini_chunk(
                {"functionCall": {"id": "a1", "name": "read", "args": {"p": 1}}, "thoughtSignature": "c2ln"},
                {"functionCall": {"name": "now", "args": {}}},
            ),
            gemini_chunk(
                {"text": "", "thoughtSignature": "ZW5k"},
                finish="STOP",
                usageMetadata={"promptTokenCount": 5, "candidatesTokenCount": 7},
            ),
        ),
        (
            ("thinking", "Let me see…", ""),
            ("text", "I look at 日本 😀."),
            ("thinking", "", '"c2ln"'),
            ("call", "hist_tool_1", "read", '{"p":1}', '"a1"'),
            ("call", "hist_tool_2", "now", "{}", ""),
            ("thinking", "", '"ZW5k"'),
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
        case ProviderBlock():
            return "native", block.name, block.seal.kind
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
    _, message = run(decode(profile, BINDINGS[profile.name]), [stream])
    assert isinstance(message, Message), message
    return message


def body_answer(profile: Dialect, body: object) -> tuple[list[StreamEvent], Message]:
    """The events and the message of an answer that is not streamed."""
    decoder = decode(profile, BINDINGS[profile.name], stream=False)
    assert decoder.feed(dumped(body)) == []
    message = decoder.close()
    return list(decoder.late), message


def cut_at_random(data: bytes, random: Random) -> Iterator[bytes]:
    """The same bytes in pieces, most of them short."""
    while data:
        size = random.choice((0, 1, 1, 2, 3, 7, 20, 200))
        yield data[:size]
        data = data[size:]
