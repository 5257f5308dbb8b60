"""Encode scripted turns and error bodies for the vendors of the Chat Completions family.

All vendors use OpenAI's format. A `VendorFormat` lists a vendor's differences from it.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from actors.strict.rules.base import CompatibleSettings, Json, ServerRefusal, dump
from actors.strict.rules.host import signature
from actors.strict.rules.openrouter import sign
from actors.strict.script import Redacted, Think, Turn
from actors.strict.wires import OPENAI_FAILURES, OpenAIWire, find_error, index_field, split_text

_ALPHANUMERIC = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_INDEX = re.compile(r":(\d+)$")
Failures = Mapping[int, tuple[str, str | None, str]]


@dataclass(frozen=True, slots=True)
class VendorFormat:
    """The differences between a vendor's responses and OpenAI's.

    Args:
        reasoning: The field that contains reasoning. `details` is OpenRouter's list `reasoning_details` in addition to
            the field `reasoning`. `chunks` are Mistral's content chunks.
        ids: The form of call ids. `openai` is OpenAI's prefix with a unique suffix. `kimi` is `functions.name:index`,
            where the index counts the calls of the conversation. `kimi_short` is `name:index`, and `mistral` is nine
            alphanumeric characters.
        whole_calls: Whether a call arrives in one delta.
        usage: Where a stream contains the token counts: in a separate chunk if requested (`asked`), in the chunk with
            the stop reason (`finish`), inside the `choice` of that chunk, or under the key `x_groq`.
        cached: Where the number of cached tokens is: in the `details` of the prompt tokens, in two fields for `hits`
            and misses, or in a separate field (`flat`).
        comment: A keep-alive comment that is sent before and after the first event.
    """

    reasoning: Literal["reasoning_content", "reasoning", "details", "chunks"] = "reasoning_content"
    ids: Literal["openai", "kimi", "kimi_short", "mistral"] = "openai"
    whole_calls: bool = False
    usage: Literal["asked", "finish", "choice", "x_groq"] = "asked"
    cached: Literal["details", "hits", "flat"] = "details"
    comment: bytes = b""


VENDOR_FORMATS: Mapping[str, VendorFormat] = {
    "mistral": VendorFormat("chunks", "mistral", whole_calls=True, usage="finish"),
    "kimi": VendorFormat(ids="kimi", usage="choice", cached="flat"),
    "deepseek": VendorFormat(usage="finish", cached="hits", comment=b": keep-alive\n\n"),
    "openrouter": VendorFormat("details", comment=b": OPENROUTER PROCESSING\n\n"),
    "groq": VendorFormat("reasoning", usage="x_groq"),
    "vllm": VendorFormat("reasoning"),
    "open_models": VendorFormat("reasoning"),
    "ollama": VendorFormat("reasoning", whole_calls=True),
}
"""Each vendor's differences from OpenAI's format. Vendors that are not listed use OpenAI's format with
`reasoning_content`.
"""


@dataclass(frozen=True, slots=True)
class CompatibleWire(OpenAIWire):
    """The response encoder for one OpenAI-compatible vendor.

    Args:
        vendor: Name of the vendor's dialect.
        vendor_format: The vendor's differences from OpenAI's format.
        settings: Returns the settings of the current request; the signatures of reasoning depend on them.
    """

    vendor: str = ""
    vendor_format: VendorFormat = field(default_factory=VendorFormat)
    settings: Callable[[], CompatibleSettings] = CompatibleSettings

    def completion(self, turn: Turn, request: Json, request_number: int) -> Json:
        body = OpenAIWire.completion(self, turn, request, request_number)
        message = body["choices"][0]["message"]
        thought = message.pop("reasoning_content", None)
        match self.vendor_format.reasoning:
            case "details":
                self._add_reasoning_details(message, thought, turn)
            case "chunks" if thought is not None:
                text = [] if message["content"] is None else [{"type": "text", "text": message["content"]}]
                message["content"] = [_thinking_chunk(thought), *text]
            case "chunks":
                message["content"] = message["content"] or ""
            case key:
                message |= {} if thought is None else {key: thought}
        body["usage"] = self._vendor_usage(body["usage"])
        if self.vendor_format.reasoning == "chunks":
            del message["refusal"]
        return self._with_upstream_field(body)

    def _vendor_usage(self, usage: Json) -> Json:
        """Return the token counts `usage`, with the number of cached tokens in this vendor's format."""
        details = usage.get("prompt_tokens_details")
        if details is None or self.vendor_format.cached == "details":
            return usage
        rest = {key: value for key, value in usage.items() if key != "prompt_tokens_details"}
        read = details["cached_tokens"]
        if self.vendor_format.cached == "flat":
            return {**rest, "cached_tokens": read}
        misses = usage["prompt_tokens"] - read
        return {**rest, "prompt_cache_hit_tokens": read, "prompt_cache_miss_tokens": misses}

    def _add_reasoning_details(self, message: Json, thought: str | None, turn: Turn) -> None:
        parts = [part for part in turn.parts if isinstance(part, Think | Redacted)]
        if parts:
            settings = self.settings()
            message["reasoning"] = thought
            message["reasoning_details"] = [
                _reasoning_detail(part, at, settings) for at, part in enumerate(parts)
            ]

    def chunks(self, turn: Turn, request: Json, request_number: int) -> list[Json]:
        events = [
            self._with_upstream_field(event)
            for event in OpenAIWire.chunks(self, turn, request, request_number)
        ]
        if events[-1].get("usage"):
            events[-1]["usage"] = self._vendor_usage(events[-1]["usage"])
        if self.vendor_format.usage == "asked":
            return events
        asked = self._vendor_usage(OpenAIWire.completion(self, turn, request, request_number)["usage"])
        events = [
            {key: value for key, value in event.items() if key != "usage"}
            for event in events
            if event["choices"]
        ]
        last = events[-1]
        match self.vendor_format.usage:
            case "finish":
                last["usage"] = asked
            case "choice":
                last["choices"][0]["usage"] = asked
            case "x_groq":
                last["x_groq"] = {"id": last["id"], "usage": asked}
        return events

    def encode_events(self, turn: Turn, request: Json, request_number: int) -> list[bytes]:
        events = OpenAIWire.encode_events(self, turn, request, request_number)
        comment = self.vendor_format.comment
        return [comment, *events[:1], comment, *events[1:]] if comment else events

    def encode_call(self, turn: Turn, request: Json, request_number: int, position: int) -> Json:
        made, settings = (
            OpenAIWire.encode_call(self, turn, request, request_number, position),
            self.settings(),
        )
        if position or settings.profile is None or not settings.profile.signed_calls:
            return made
        signed = {"thought_signature": signature(made, request["model"], settings)}
        return {**made, "extra_content": {"google": signed}}

    def call_id(self, turn: Turn, request: Json, request_number: int, position: int) -> str:
        call = turn.calls[position]
        if call.id is not None or turn.ids != "minted" or self.vendor_format.ids == "openai":
            return OpenAIWire.call_id(self, turn, request, request_number, position)
        if self.vendor_format.ids == "mistral":
            return _alphanumeric_id(f"{self.host}/{request_number}/{position}")
        prefix = "functions." if self.vendor_format.ids == "kimi" else ""
        return f"{prefix}{call.name}:{_first_call_index(request) + position}"

    def encode_thinking(self, part: Think | Redacted, turn: Turn, position: int) -> Iterator[Json]:
        text = part.text if isinstance(part, Think) else ""
        match self.vendor_format.reasoning:
            case "details":
                yield from self._detail_fragments(part, turn, position)
            case "chunks":
                yield from (
                    {"content": [_thinking_chunk(piece)]} for piece in split_text(text, turn.fragment)
                )
            case key:
                yield from ({key: piece} for piece in split_text(text, turn.fragment))

    def _detail_fragments(self, part: Think | Redacted, turn: Turn, position: int) -> Iterator[Json]:
        whole = _reasoning_detail(part, position, self.settings())
        if isinstance(part, Redacted):
            yield {"reasoning_details": [whole]}
            return
        common = {key: value for key, value in whole.items() if key not in ("text", "signature")}
        for piece in split_text(part.text, turn.fragment):
            yield {"reasoning": piece, "reasoning_details": [{**common, "text": piece}]}
        yield {"reasoning_details": [{**common, "signature": whole["signature"]}]}

    def encode_call_fragments(
        self, turn: Turn, request: Json, request_number: int, position: int
    ) -> Iterator[Json]:
        if not self.vendor_format.whole_calls:
            return OpenAIWire.encode_call_fragments(self, turn, request, request_number, position)
        return iter(
            [{**index_field(turn, position), **self.encode_call(turn, request, request_number, position)}]
        )

    def encode_error(self, refusal: ServerRefusal, request_number: int) -> bytes:
        return dump(error_body(self.vendor, self._with_upstream(refusal)))

    def encode_error_event(self, refusal: ServerRefusal, request_number: int) -> bytes:
        if self.vendor != "openrouter":
            return b"data: " + self.encode_error(refusal, request_number) + b"\n\n"
        choice = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": "error"}
        error = {"code": refusal.status, "message": refusal.message}
        provider = self.settings().upstream
        opening = {"id": f"gen-{request_number}", "object": "chat.completion.chunk", "provider": provider}
        return b"data: " + dump({**opening, "error": error, "choices": [choice]}) + b"\n\n"

    def status_error(self, status: int) -> ServerRefusal:
        return find_error(status, FAILURES.get(self.vendor, OPENAI_FAILURES))

    def _with_upstream(self, refusal: ServerRefusal) -> ServerRefusal:
        """Add the upstream's name to a refusal by OpenRouter's upstream. Return other refusals unchanged."""
        if self.vendor == "openrouter" and refusal.detail is not None:
            return replace(refusal, detail={**refusal.detail, "provider_name": self.settings().upstream})
        return refusal

    def _with_upstream_field(self, event: Json) -> Json:
        if self.vendor != "openrouter":
            return event
        return {**event, "provider": self.settings().upstream}


def _thinking_chunk(text: str) -> Json:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}


def _reasoning_detail(part: Think | Redacted, position: int, settings: CompatibleSettings) -> Json:
    """Return an entry of `reasoning_details`, signed for its position."""
    common = {"format": "anthropic-claude-v1", "index": position}
    if isinstance(part, Redacted):
        return {"type": "reasoning.encrypted", "data": sign("", position, settings), **common}
    signature = sign(part.text, position, settings) if part.signature is None else part.signature
    return {"type": "reasoning.text", "text": part.text, "signature": signature, **common}


def _alphanumeric_id(seed: str) -> str:
    number = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "big")
    return "".join(_ALPHANUMERIC[number // 62**place % 62] for place in range(9))


def _first_call_index(request: Json) -> int:
    """Return the first unused call index of a request. Kimi counts calls over the complete conversation."""
    calls = [call for message in request["messages"] for call in message.get("tool_calls") or ()]
    used = [int(found[1]) for call in calls if (found := _INDEX.search(call["id"]))]
    return max(len(calls), max(used, default=-1) + 1)


def error_body(vendor: str, refusal: ServerRefusal) -> Json:
    """Return the JSON of a vendor's error body. Vendors without their own format use OpenAI's."""
    return _BODIES.get(vendor, _openai_body)(refusal)


def _openai_body(refusal: ServerRefusal) -> Json:
    error = {"message": refusal.message, "type": refusal.type, "param": refusal.param, "code": refusal.code}
    return {"error": error}


def _mistral_body(refusal: ServerRefusal) -> Json:
    if refusal.status == 422:
        place = refusal.detail or {"loc": ["body"], "input": None}
        return {
            "detail": [
                {"type": refusal.type, "loc": place["loc"], "msg": refusal.message, "input": place["input"]}
            ]
        }
    error = {"object": "error", "message": refusal.message, "type": refusal.type, "param": None}
    return {**error, "code": refusal.code, "raw_status_code": refusal.status}


def _kimi_body(refusal: ServerRefusal) -> Json:
    return {"error": {"message": refusal.message, "type": refusal.type}}


def _deepseek_body(refusal: ServerRefusal) -> Json:
    error = {"message": refusal.message, "type": refusal.type, "param": None, "code": refusal.code}
    return {"error": error}


def _anthropic_body(refusal: ServerRefusal) -> Json:
    return {"type": "error", "error": {"type": refusal.type, "message": refusal.message}}


def _openrouter_body(refusal: ServerRefusal) -> Json:
    detail = refusal.detail
    if detail is None:
        return {"error": {"code": refusal.status, "message": refusal.message}, "user_id": "user_1"}
    raw = dump(error_body(detail["vendor"], refusal)).decode()
    metadata = {"provider_name": detail.get("provider_name", ""), "raw": raw}
    error = {"code": refusal.status, "message": "Provider returned error", "metadata": metadata}
    return {"error": error, "user_id": "user_1"}


def _xai_body(refusal: ServerRefusal) -> Json:
    return {"code": refusal.code, "error": refusal.message}


def _glm_body(refusal: ServerRefusal) -> Json:
    return {"error": {"code": refusal.code, "message": refusal.message}}


def _groq_body(refusal: ServerRefusal) -> Json:
    said: Json = _openai_body(refusal)
    said["error"].update(refusal.detail or {})
    return said


def _vllm_body(refusal: ServerRefusal) -> Json:
    error = {"object": "error", "message": refusal.message, "type": refusal.type, "param": None}
    return {**error, "code": refusal.status}


def _llama_cpp_body(refusal: ServerRefusal) -> Json:
    error: dict[str, Json] = {"code": refusal.status, "message": refusal.message, "type": refusal.type}
    return {"error": error | dict(refusal.detail or dict[str, Json]())}


_BODIES: Mapping[str, Callable[[ServerRefusal], Json]] = {
    "anthropic": _anthropic_body,
    "mistral": _mistral_body,
    "kimi": _kimi_body,
    "deepseek": _deepseek_body,
    "openrouter": _openrouter_body,
    "xai": _xai_body,
    "glm": _glm_body,
    "groq": _groq_body,
    "vllm": _vllm_body,
    "open_models": _vllm_body,
    "llama_cpp": _llama_cpp_body,
}

FAILURES: Mapping[str, Failures] = {
    "mistral": {
        **OPENAI_FAILURES,
        401: ("invalid_request_error", None, "Unauthorized"),
        429: ("rate_limited", "1300", "Requests rate limit exceeded"),
        503: ("service_unavailable", "3505", "Service unavailable."),
    },
    "kimi": {
        **OPENAI_FAILURES,
        401: ("invalid_authentication_error", None, "Invalid Authentication"),
        429: (
            "rate_limit_reached_error",
            None,
            "Your account request reached max request: 3, please try again later",
        ),
        503: ("engine_overloaded_error", None, "The engine is currently overloaded, please try again later"),
    },
    "deepseek": {
        **OPENAI_FAILURES,
        401: ("authentication_error", "invalid_request_error", "Authentication Fails (no such user)"),
        402: ("unknown_error", "invalid_request_error", "Insufficient Balance"),
    },
    "openrouter": {
        **OPENAI_FAILURES,
        401: ("", None, "No auth credentials found"),
        402: ("", None, "Insufficient credits"),
        429: ("", None, "Provider returned error"),
        502: ("", None, "Provider returned error"),
    },
    "xai": {
        **OPENAI_FAILURES,
        401: ("", "unauthenticated:bad-credentials", "Incorrect API key provided."),
        429: ("", "Some resource has been exhausted", "Too many requests"),
    },
    "glm": {
        **OPENAI_FAILURES,
        401: ("", "1000", "身份验证失败"),
        429: ("", "1302", "您当前使用该API的并发数过高"),
    },
}
"""Type, code and message of each error, by vendor and status. Vendors that are not listed use OpenAI's errors."""
