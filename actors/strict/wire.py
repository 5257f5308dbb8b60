"""Encode scripted turns: as one JSON response, or as a list of server-sent events.

There is one class per dialect, all with the same methods. The output depends only on the turn, the request and the
number of the response, so equal conversations give equal bytes.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from actors.strict.rules.anthropic_thinking import sign
from actors.strict.rules.base import (
    AnthropicSettings,
    Json,
    Mode,
    ServerRefusal,
    dump,
    is_object,
    object_at,
)
from actors.strict.rules.reading import parse
from actors.strict.script import Builtin, Call, Redacted, Say, Think, Turn

_CREATED = 1_767_225_600  # seconds since 1970, fixed: responses do not depend on the clock


class Wire(Protocol):
    """The encoder of responses and errors of one dialect."""

    def response(self, turn: Turn, request: Json, number: int) -> bytes:
        """Return the body of a response that is not streamed."""
        ...

    def events(self, turn: Turn, request: Json, number: int) -> list[bytes]:
        """Return the encoded events of a streamed response."""
        ...

    def error(self, refusal: ServerRefusal, number: int) -> bytes:
        """Return an error body."""
        ...

    def error_event(self, refusal: ServerRefusal, number: int) -> bytes:
        """Return the event that reports an error inside a stream."""
        ...

    def failure(self, status: int) -> ServerRefusal:
        """Return the dialect's error for a status that no rule caused."""
        ...


def mint_id(prefix: str, host: str, number: int, at: int) -> str:
    """Return an id that is unique to the host, response and place, and deterministic."""
    return prefix + hashlib.sha256(f"{host}/{number}/{at}".encode()).hexdigest()[:24]


def _id(call: Call, turn: Turn, prefix: str, host: str, number: int, at: int) -> str:
    if call.id is not None:
        return call.id
    match turn.ids:
        case "minted":
            return mint_id(prefix, host, number, at)
        case "restart":
            return f"call_{at}"
        case "blank":
            return ""


def _arguments(call: Call) -> str:
    return dump(dict(call.arguments)).decode() if call.raw is None else call.raw


def free_text(call: Call) -> str:
    """Return the text argument of a free-form call: its `raw` text, or the argument `input`."""
    return str(call.arguments.get("input", "")) if call.raw is None else call.raw


def pieces(text: str, size: int) -> Iterator[str]:
    """Return `text` in pieces of `size` characters."""
    return (text[at : at + size] for at in range(0, len(text), size))


def failure_of(status: int, table: Mapping[int, tuple[str, str | None, str]]) -> ServerRefusal:
    """Return the entry of a failure table for a status."""
    fallback = table[500] if status >= 500 else ("invalid_request_error", None, f"Status {status}.")
    kind, code, message = table.get(status, fallback)
    return ServerRefusal("", status, kind, code, None, message)


OPENAI_FAILURES: Mapping[int, tuple[str, str | None, str]] = {
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    404: ("invalid_request_error", None, "Invalid URL."),
    405: ("invalid_request_error", "method_not_supported", "Not allowed to use this method on this URL."),
    413: ("invalid_request_error", None, "The request body is too large."),
    426: ("invalid_request_error", None, "Upgrade Required"),
    429: (
        "requests",
        "rate_limit_exceeded",
        "Rate limit reached on requests per min (RPM): Limit 3, Used 3, Requested 1. Please try again in 1s.",
    ),
    500: ("server_error", None, "The server had an error while processing your request."),
    503: ("server_error", None, "The engine is currently overloaded, please try again later."),
}


@dataclass(frozen=True, slots=True)
class OpenAIWire:
    """The encoder of OpenAI Chat Completions. `host` is part of generated ids."""

    host: str = ""

    def response(self, turn: Turn, request: Json, number: int) -> bytes:
        return dump(self.completion(turn, request, number))

    def events(self, turn: Turn, request: Json, number: int) -> list[bytes]:
        events = self.chunks(turn, request, number)
        return [b"data: " + dump(event) + b"\n\n" for event in events] + [b"data: [DONE]\n\n"]

    def completion(self, turn: Turn, request: Json, number: int) -> Json:
        """Return a response without streaming, as JSON."""
        message: Json = {"role": "assistant", "content": text_of(turn), "refusal": None, **turn.extra}
        if thought := "".join(part.text for part in turn.parts if isinstance(part, Think)):
            message["reasoning_content"] = thought
        if turn.calls:
            message["tool_calls"] = [self.call(turn, request, number, at) for at in range(len(turn.calls))]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _openai_stop(turn)}
        usage = {"usage": _openai_usage(turn)}
        return {**self._opening("chat.completion", request, number), "choices": [choice], **usage}

    def chunks(self, turn: Turn, request: Json, number: int) -> list[Json]:
        """Return the chunks of a streamed response, as JSON."""
        opening = self._opening("chat.completion.chunk", request, number)
        usage = bool(object_at(request, "stream_options").get("include_usage"))
        chunks: list[Json] = [{"role": "assistant", "content": None if turn.calls else "", "refusal": None}]
        chunks += self._deltas(turn, request, number)
        choices: list[tuple[Json, str | None]] = [
            *((delta, None) for delta in chunks),
            ({}, _openai_stop(turn)),
        ]
        events: list[Json] = [
            {
                **opening,
                **({"usage": None} if usage else {}),
                "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": stop}],
                **turn.extra,
            }
            for delta, stop in choices
        ]
        if usage:
            events.append({**opening, "choices": [], "usage": _openai_usage(turn)})
        return events

    def error(self, refusal: ServerRefusal, number: int) -> bytes:
        error = {"message": refusal.message, "type": refusal.type, "param": refusal.param}
        return dump({"error": {**error, "code": refusal.code}})

    def error_event(self, refusal: ServerRefusal, number: int) -> bytes:
        return b"data: " + self.error(refusal, number) + b"\n\n"

    def failure(self, status: int) -> ServerRefusal:
        return failure_of(status, OPENAI_FAILURES)

    def _opening(self, kind: str, request: Json, number: int) -> Json:
        name = mint_id("chatcmpl-", self.host, number, 0)
        return {"id": name, "object": kind, "created": _CREATED, "model": request["model"]}

    def call(self, turn: Turn, request: Json, number: int, at: int) -> Json:
        """Return one complete call of a response."""
        call = turn.calls[at]
        made = {"name": call.name, "arguments": _arguments(call)}
        call_id = self.call_id(turn, request, number, at)
        return {"id": call_id, "type": "function", "function": made, **turn.extra}

    def call_id(self, turn: Turn, request: Json, number: int, at: int) -> str:
        """Return the id of one call of a response."""
        return _id(turn.calls[at], turn, "call_", self.host, number, at)

    def thoughts(self, part: Think | Redacted, turn: Turn, at: int) -> Iterator[Json]:
        """Yield the deltas of one piece of reasoning, the `at`th of its turn."""
        if isinstance(part, Think):
            yield from ({"reasoning_content": piece} for piece in pieces(part.text, turn.fragment))

    def _deltas(self, turn: Turn, request: Json, number: int) -> Iterator[Json]:
        at = thought = 0
        for part in turn.parts:
            match part:
                case Say(text=text):
                    yield from ({"content": piece} for piece in pieces(text, turn.fragment))
                case Think() | Redacted():
                    yield from self.thoughts(part, turn, thought)
                    thought += 1
                case Call():
                    fragments = self.fragments(turn, request, number, at)
                    yield from ({"tool_calls": [delta]} for delta in fragments)
                    at += 1
                case Builtin():
                    raise ValueError("Chat Completions has no parts of the provider's own")

    def fragments(self, turn: Turn, request: Json, number: int, at: int) -> Iterator[Json]:
        """Yield one call of a streamed response in fragments."""
        whole = self.call(turn, request, number, at)
        index = place(turn, at)
        if turn.whole_calls:
            yield {**index, **whole}
            return
        name, text = whole["function"]["name"], whole["function"]["arguments"]
        yield {**index, **whole, "function": {"name": name, "arguments": ""}}
        for piece in pieces(text, turn.fragment):
            if turn.repeat_id:
                yield {**index, **whole, "function": {"name": name, "arguments": piece}}
            else:
                yield {**index, "function": {"arguments": piece}}


def place(turn: Turn, at: int) -> Json:
    """Return the `index` field of a streamed fragment of the `at`th call."""
    return {} if turn.index == "missing" else {"index": at if turn.index == "counted" else 0}


def text_of(turn: Turn) -> str | None:
    """Return the text of a turn, or None if it has none."""
    texts = [part.text for part in turn.parts if isinstance(part, Say)]
    return "".join(texts) if texts else None


def _openai_stop(turn: Turn) -> str:
    return turn.stop or ("tool_calls" if turn.calls else "stop")


def _openai_usage(turn: Turn) -> Json:
    read, written = turn.usage
    usage: Json = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    if any(turn.cached):
        usage["prompt_tokens_details"] = {
            "cached_tokens": turn.cached[0],
            "cache_write_tokens": turn.cached[1],
        }
    return usage


_ANTHROPIC_FAILURES: Mapping[int, tuple[str, str | None, str]] = {
    401: ("authentication_error", None, "invalid x-api-key"),
    402: ("billing_error", None, "Your credit balance is too low to access the API."),
    403: ("permission_error", None, "Your API key does not have permission to use the specified resource."),
    404: ("not_found_error", None, "Not found"),
    405: ("invalid_request_error", None, "Method Not Allowed"),
    409: ("conflict", None, "The request conflicts with another."),
    413: ("request_too_large", None, "Request exceeds the maximum size"),
    429: (
        "rate_limit_error",
        None,
        "This request would exceed your organization's rate limit of 30,000 input tokens per minute",
    ),
    500: ("api_error", None, "Internal server error"),
    504: ("timeout_error", None, "Request timed out"),
    529: ("overloaded_error", None, "Overloaded"),
}


@dataclass(frozen=True, slots=True)
class AnthropicWire:
    """The encoder of Anthropic Messages. Thinking is signed for the request that it answers."""

    settings: AnthropicSettings
    mode: Mode = "strict"
    host: str = ""

    def response(self, turn: Turn, request: Json, number: int) -> bytes:
        blocks = self._blocks(turn, request, number)
        message = self._message(turn, request, number)
        return dump({**message, "content": blocks, "stop_reason": _anthropic_stop(turn), **turn.extra})

    def events(self, turn: Turn, request: Json, number: int) -> list[bytes]:
        return [_event(payload) for payload in self.payloads(turn, request, number)]

    def payloads(self, turn: Turn, request: Json, number: int) -> list[Json]:
        """Return the events of a stream, before they are framed."""
        message = self._message(turn, request, number)
        events: list[Json] = [{"type": "message_start", "message": message}]
        for at, (part, block) in enumerate(zip(turn.parts, self._blocks(turn, request, number), strict=True)):
            events.extend(_block_events(part, block, at, turn))
        events.insert(2, {"type": "ping"})
        delta = {"stop_reason": _anthropic_stop(turn), "stop_sequence": None}
        usage = {"output_tokens": turn.usage[1]}
        events += [{"type": "message_delta", "delta": delta, "usage": usage}, {"type": "message_stop"}]
        return [{**event, **turn.extra} for event in events]

    def error(self, refusal: ServerRefusal, number: int) -> bytes:
        error: Json = {"type": refusal.type, "message": refusal.message}
        if refusal.code is not None:
            error["details"] = {"error_code": refusal.code}
        return dump({"type": "error", "error": error, "request_id": f"req_{number}"})

    def error_event(self, refusal: ServerRefusal, number: int) -> bytes:
        error = {"type": refusal.type, "message": refusal.message}
        return _event({"type": "error", "error": error})

    def failure(self, status: int) -> ServerRefusal:
        return failure_of(status, _ANTHROPIC_FAILURES)

    def _message(self, turn: Turn, request: Json, number: int) -> Json:
        cached = {
            "cache_creation_input_tokens": turn.cached[1],
            "cache_read_input_tokens": turn.cached[0],
        }
        fresh = turn.usage[0] - sum(turn.cached)
        edits: Json = {} if request.get("context_management") is None else _NO_EDITS
        return {
            **edits,
            "id": mint_id("msg_", self.host, number, 0),
            "type": "message",
            "role": "assistant",
            "model": request["model"],
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": fresh, "output_tokens": turn.usage[1], **cached},
        }

    def _blocks(self, turn: Turn, request: Json, number: int) -> list[Json]:
        blocks: list[Json] = []
        calls = 0
        for part in turn.parts:
            match part:
                case Say(text=text, cited=cited):
                    citations = {"citations": list(cited)} if cited else {}
                    blocks.append({"type": "text", "text": text, **citations})
                case Builtin(value=value):
                    blocks.append(dict(value))
                case Think(text=text, signature=signature):
                    if signature is None:
                        signature = sign(request, blocks, text, self.settings, self.mode)
                    blocks.append({"type": "thinking", "thinking": text, "signature": signature})
                case Redacted():
                    data = sign(request, blocks, "", self.settings, self.mode)
                    blocks.append({"type": "redacted_thinking", "data": data})
                case Call(name=name):
                    call_id = _id(part, turn, "toolu_", self.host, number, calls)
                    blocks.append({"type": "tool_use", "id": call_id, "name": name, "input": _input(part)})
                    calls += 1
        return blocks


_NO_EDITS: Json = {"context_management": {"applied_edits": []}}


def _input(call: Call) -> Json:
    try:
        value = parse(_arguments(call).encode())
    except ValueError:
        return {}
    return value if is_object(value) else {}


def _anthropic_stop(turn: Turn) -> str:
    return turn.stop or ("tool_use" if turn.calls else "end_turn")


def _block_events(part: object, block: Json, at: int, turn: Turn) -> Iterator[Json]:
    deltas: Iterable[Json]
    match part:
        case Say(text=text, cited=cited):
            start: Json = {"type": "text", "text": ""}
            words = [{"type": "text_delta", "text": piece} for piece in pieces(text, turn.fragment)]
            deltas = [*words, *({"type": "citations_delta", "citation": citation} for citation in cited)]
        case Builtin() if "input" in block:
            start = {**block, "input": {}}
            cut = list(pieces(dump(block["input"]).decode(), turn.fragment))
            deltas = ({"type": "input_json_delta", "partial_json": piece} for piece in cut)
        case Think(text=text):
            start = {"type": "thinking", "thinking": "", "signature": ""}
            thoughts = [
                {"type": "thinking_delta", "thinking": piece} for piece in pieces(text, turn.fragment)
            ]
            deltas = [*thoughts, {"type": "signature_delta", "signature": block["signature"]}]
        case Call():
            start = {**block, "input": {}}
            size = max(len(_arguments(part)), 1) if turn.whole_calls else turn.fragment
            cut = ["", *pieces(_arguments(part), size)]
            deltas = ({"type": "input_json_delta", "partial_json": piece} for piece in cut)
        case _:
            start, deltas = block, ()
    yield {"type": "content_block_start", "index": at, "content_block": start}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": at, "delta": delta}
    yield {"type": "content_block_stop", "index": at}


def _event(event: Json) -> bytes:
    name: str = event["type"]
    return b"event: " + name.encode() + b"\ndata: " + dump(event) + b"\n\n"
