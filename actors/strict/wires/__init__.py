"""Encode scripted turns as responses: one JSON document, or a list of server-sent events.

There is one encoder class per dialect, which implements `Wire`. This module encodes OpenAI Chat Completions and
Anthropic Messages; each other wire family has a module of its own. The output depends only on the turn, the request and
the request number, so equal conversations get equal bytes.

Servers list their models in the format of their API. A server whose settings name no models accepts any model name, and
lists one example.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from actors.strict.rules.anthropic_thinking import sign
from actors.strict.rules.base import AnthropicSettings, Json, Mode, ServerRefusal, dump, is_object, object_at
from actors.strict.rules.reading import parse
from actors.strict.script import Builtin, Call, Redacted, Say, Think, Turn

_CREATED = 1_767_225_600  # seconds since 1970; constant, so that responses do not depend on the clock
_DAY = "2026-01-01T00:00:00Z"
_ANY = ("model-1",)


class Wire(Protocol):
    """The response encoder of one dialect. `request_number` counts the requests of a server from 0."""

    def encode_response(self, turn: Turn, request: Json, request_number: int) -> bytes:
        """Return the body of a response that is not streamed."""
        ...

    def encode_events(self, turn: Turn, request: Json, request_number: int) -> list[bytes]:
        """Return the encoded events of a streamed response."""
        ...

    def encode_error(self, refusal: ServerRefusal, request_number: int) -> bytes:
        """Return the body of an error response for a refusal."""
        ...

    def encode_error_event(self, refusal: ServerRefusal, request_number: int) -> bytes:
        """Return the event that reports a refusal inside a stream."""
        ...

    def status_error(self, status: int) -> ServerRefusal:
        """Return the dialect's error for an HTTP status that no broken rule has caused, such as 401 or 500."""
        ...


def mint_id(prefix: str, host: str, request_number: int, position: int) -> str:
    """Return an id that depends only on the arguments. `position` distinguishes the ids of one response."""
    return prefix + hashlib.sha256(f"{host}/{request_number}/{position}".encode()).hexdigest()[:24]


def _call_id(call: Call, turn: Turn, prefix: str, host: str, request_number: int, position: int) -> str:
    if call.id is not None:
        return call.id
    match turn.ids:
        case "minted":
            return mint_id(prefix, host, request_number, position)
        case "restart":
            return f"call_{position}"
        case "blank":
            return ""


def _arguments_text(call: Call) -> str:
    return dump(dict(call.arguments)).decode() if call.raw is None else call.raw


def free_text(call: Call) -> str:
    """Return the text of a free-form call: its `raw` text if there is one, otherwise its argument `input`."""
    return str(call.arguments.get("input", "")) if call.raw is None else call.raw


def split_text(text: str, size: int) -> Iterator[str]:
    """Yield `text` in pieces of `size` characters."""
    return (text[at : at + size] for at in range(0, len(text), size))


def find_error(status: int, table: Mapping[int, tuple[str, str | None, str]]) -> ServerRefusal:
    """Return the error for a status. `table` maps a status to type, code and message.

    A status that is not in the table gets a general error.
    """
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
    """The response encoder for OpenAI Chat Completions. Generated ids depend on `host`."""

    host: str = ""

    def encode_response(self, turn: Turn, request: Json, request_number: int) -> bytes:
        return dump(self.completion(turn, request, request_number))

    def encode_events(self, turn: Turn, request: Json, request_number: int) -> list[bytes]:
        events = self.chunks(turn, request, request_number)
        return [b"data: " + dump(event) + b"\n\n" for event in events] + [b"data: [DONE]\n\n"]

    def completion(self, turn: Turn, request: Json, request_number: int) -> Json:
        """Return the JSON of a response that is not streamed."""
        message: Json = {"role": "assistant", "content": joined_text(turn), "refusal": None, **turn.extra}
        if thought := "".join(part.text for part in turn.parts if isinstance(part, Think)):
            message["reasoning_content"] = thought
        if turn.calls:
            message["tool_calls"] = [
                self.encode_call(turn, request, request_number, at) for at in range(len(turn.calls))
            ]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _openai_stop(turn)}
        usage = {"usage": _openai_usage(turn)}
        return {
            **self._first_fields("chat.completion", request, request_number),
            "choices": [choice],
            **usage,
        }

    def chunks(self, turn: Turn, request: Json, request_number: int) -> list[Json]:
        """Return the JSON of each chunk of a streamed response."""
        opening = self._first_fields("chat.completion.chunk", request, request_number)
        usage = bool(object_at(request, "stream_options").get("include_usage"))
        chunks: list[Json] = [{"role": "assistant", "content": None if turn.calls else "", "refusal": None}]
        chunks += self._encode_deltas(turn, request, request_number)
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

    def encode_error(self, refusal: ServerRefusal, request_number: int) -> bytes:
        error = {"message": refusal.message, "type": refusal.type, "param": refusal.param}
        return dump({"error": {**error, "code": refusal.code}})

    def encode_error_event(self, refusal: ServerRefusal, request_number: int) -> bytes:
        return b"data: " + self.encode_error(refusal, request_number) + b"\n\n"

    def status_error(self, status: int) -> ServerRefusal:
        return find_error(status, OPENAI_FAILURES)

    def _first_fields(self, object_type: str, request: Json, request_number: int) -> Json:
        name = mint_id("chatcmpl-", self.host, request_number, 0)
        return {"id": name, "object": object_type, "created": _CREATED, "model": request["model"]}

    def encode_call(self, turn: Turn, request: Json, request_number: int, position: int) -> Json:
        """Return the JSON of the complete call at `position` in the turn."""
        call = turn.calls[position]
        made = {"name": call.name, "arguments": _arguments_text(call)}
        call_id = self.call_id(turn, request, request_number, position)
        return {"id": call_id, "type": "function", "function": made, **turn.extra}

    def call_id(self, turn: Turn, request: Json, request_number: int, position: int) -> str:
        """Return the id of the call at `position` in the turn."""
        return _call_id(turn.calls[position], turn, "call_", self.host, request_number, position)

    def encode_thinking(self, part: Think | Redacted, turn: Turn, position: int) -> Iterator[Json]:
        """Yield the deltas of a thinking part. `position` counts the thinking parts of the turn from 0."""
        if isinstance(part, Think):
            yield from ({"reasoning_content": piece} for piece in split_text(part.text, turn.fragment))

    def _encode_deltas(self, turn: Turn, request: Json, request_number: int) -> Iterator[Json]:
        at = thought = 0
        for part in turn.parts:
            match part:
                case Say(text=text):
                    yield from ({"content": piece} for piece in split_text(text, turn.fragment))
                case Think() | Redacted():
                    yield from self.encode_thinking(part, turn, thought)
                    thought += 1
                case Call():
                    fragments = self.encode_call_fragments(turn, request, request_number, at)
                    yield from ({"tool_calls": [delta]} for delta in fragments)
                    at += 1
                case Builtin():
                    raise ValueError("Chat Completions cannot send a `Builtin`; remove it from the script")

    def encode_call_fragments(
        self, turn: Turn, request: Json, request_number: int, position: int
    ) -> Iterator[Json]:
        """Yield the deltas that a stream contains for the call at `position` in the turn."""
        whole = self.encode_call(turn, request, request_number, position)
        index = index_field(turn, position)
        if turn.whole_calls:
            yield {**index, **whole}
            return
        name, text = whole["function"]["name"], whole["function"]["arguments"]
        yield {**index, **whole, "function": {"name": name, "arguments": ""}}
        for piece in split_text(text, turn.fragment):
            if turn.repeat_id:
                yield {**index, **whole, "function": {"name": name, "arguments": piece}}
            else:
                yield {**index, "function": {"arguments": piece}}


def index_field(turn: Turn, position: int) -> Json:
    """Return the `index` field of a call's deltas, as the turn's option `index` selects it; {} if it is missing."""
    return {} if turn.index == "missing" else {"index": position if turn.index == "counted" else 0}


def joined_text(turn: Turn) -> str | None:
    """Return the joined text of a turn; None if the turn has no text."""
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
    """The response encoder for Anthropic Messages. The signature of thinking depends on the request."""

    settings: AnthropicSettings
    mode: Mode = "strict"
    host: str = ""

    def encode_response(self, turn: Turn, request: Json, request_number: int) -> bytes:
        blocks = self._encode_blocks(turn, request, request_number)
        message = self._message_json(turn, request, request_number)
        return dump({**message, "content": blocks, "stop_reason": _anthropic_stop(turn), **turn.extra})

    def encode_events(self, turn: Turn, request: Json, request_number: int) -> list[bytes]:
        return [_encode_event(payload) for payload in self.payloads(turn, request, request_number)]

    def payloads(self, turn: Turn, request: Json, request_number: int) -> list[Json]:
        """Return the JSON of each event of a stream, without framing."""
        message = self._message_json(turn, request, request_number)
        events: list[Json] = [{"type": "message_start", "message": message}]
        for at, (part, block) in enumerate(
            zip(turn.parts, self._encode_blocks(turn, request, request_number), strict=True)
        ):
            events.extend(_block_events(part, block, at, turn))
        events.insert(2, {"type": "ping"})  # the API sends a ping after the start of the first block
        delta = {"stop_reason": _anthropic_stop(turn), "stop_sequence": None}
        usage = {"output_tokens": turn.usage[1]}
        events += [{"type": "message_delta", "delta": delta, "usage": usage}, {"type": "message_stop"}]
        return [{**event, **turn.extra} for event in events]

    def encode_error(self, refusal: ServerRefusal, request_number: int) -> bytes:
        error: Json = {"type": refusal.type, "message": refusal.message}
        if refusal.code is not None:
            error["details"] = {"error_code": refusal.code}
        return dump({"type": "error", "error": error, "request_id": f"req_{request_number}"})

    def encode_error_event(self, refusal: ServerRefusal, request_number: int) -> bytes:
        error = {"type": refusal.type, "message": refusal.message}
        return _encode_event({"type": "error", "error": error})

    def status_error(self, status: int) -> ServerRefusal:
        return find_error(status, _ANTHROPIC_FAILURES)

    def _message_json(self, turn: Turn, request: Json, request_number: int) -> Json:
        cached = {
            "cache_creation_input_tokens": turn.cached[1],
            "cache_read_input_tokens": turn.cached[0],
        }
        fresh = turn.usage[0] - sum(turn.cached)
        edits: Json = {} if request.get("context_management") is None else _NO_EDITS
        return {
            **edits,
            "id": mint_id("msg_", self.host, request_number, 0),
            "type": "message",
            "role": "assistant",
            "model": request["model"],
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": fresh, "output_tokens": turn.usage[1], **cached},
        }

    def _encode_blocks(self, turn: Turn, request: Json, request_number: int) -> list[Json]:
        blocks: list[Json] = []
        calls = 0
        for part in turn.parts:
            match part:
                case Say(text=text, citations=cited):
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
                    call_id = _call_id(part, turn, "toolu_", self.host, request_number, calls)
                    blocks.append(
                        {"type": "tool_use", "id": call_id, "name": name, "input": _arguments_object(part)}
                    )
                    calls += 1
        return blocks


_NO_EDITS: Json = {"context_management": {"applied_edits": []}}


def _arguments_object(call: Call) -> Json:
    try:
        value = parse(_arguments_text(call).encode())
    except ValueError:
        return {}
    return value if is_object(value) else {}


def _anthropic_stop(turn: Turn) -> str:
    return turn.stop or ("tool_use" if turn.calls else "end_turn")


def _block_events(scripted_part: object, wire_block: Json, position: int, turn: Turn) -> Iterator[Json]:
    """Yield the events of one block of a stream."""
    deltas: Iterable[Json]
    match scripted_part:
        case Say(text=text, citations=cited):
            start: Json = {"type": "text", "text": ""}
            words = [{"type": "text_delta", "text": piece} for piece in split_text(text, turn.fragment)]
            deltas = [*words, *({"type": "citations_delta", "citation": citation} for citation in cited)]
        case Builtin() if "input" in wire_block:
            start = {**wire_block, "input": {}}
            cut = list(split_text(dump(wire_block["input"]).decode(), turn.fragment))
            deltas = ({"type": "input_json_delta", "partial_json": piece} for piece in cut)
        case Think(text=text):
            start = {"type": "thinking", "thinking": "", "signature": ""}
            thoughts = [
                {"type": "thinking_delta", "thinking": piece} for piece in split_text(text, turn.fragment)
            ]
            deltas = [*thoughts, {"type": "signature_delta", "signature": wire_block["signature"]}]
        case Call():
            start = {**wire_block, "input": {}}
            size = max(len(_arguments_text(scripted_part)), 1) if turn.whole_calls else turn.fragment
            cut = ["", *split_text(_arguments_text(scripted_part), size)]
            deltas = ({"type": "input_json_delta", "partial_json": piece} for piece in cut)
        case _:
            start, deltas = wire_block, ()
    yield {"type": "content_block_start", "index": position, "content_block": start}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": position, "delta": delta}
    yield {"type": "content_block_stop", "index": position}


def _encode_event(event: Json) -> bytes:
    name: str = event["type"]
    return b"event: " + name.encode() + b"\ndata: " + dump(event) + b"\n\n"


def openai_models(models: Iterable[str] | None) -> Json:
    """Return the answer to `GET /models` in the format of the Chat Completions family and of Responses."""
    listed = [
        {"id": name, "object": "model", "created": _CREATED, "owned_by": "actors"} for name in models or _ANY
    ]
    return {"object": "list", "data": listed}


def anthropic_models(models: Iterable[str] | None) -> Json:
    """Return the answer to `GET /v1/models` in Anthropic's format."""
    names = list(models or _ANY)
    listed = [{"type": "model", "id": name, "display_name": name, "created_at": _DAY} for name in names]
    return {"data": listed, "has_more": False, "first_id": names[0], "last_id": names[-1]}


def gemini_models(models: Iterable[str] | None) -> Json:
    """Return the answer to `GET /v1beta/models` in the Gemini API's format."""
    methods = ["generateContent", "countTokens"]
    listed = [{"name": f"models/{name}", "supportedGenerationMethods": methods} for name in models or _ANY]
    return {"models": listed}
