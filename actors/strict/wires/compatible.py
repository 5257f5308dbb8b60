"""Encode scripted turns for the vendors of the Chat Completions family: OpenAI's format with differences as data."""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from actors.strict.rules.base import CompatibleSettings, Json, ServerRefusal, dump
from actors.strict.rules.openrouter import sign
from actors.strict.rules.reasoning import signature
from actors.strict.script import Redacted, Think, Turn
from actors.strict.wire import OPENAI_FAILURES, OpenAIWire, failure_of, pieces, place
from actors.strict.wires import errors

_ALPHANUMERIC = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_INDEX = re.compile(r":(\d+)$")


@dataclass(frozen=True, slots=True)
class Manner:
    """The differences of a vendor's responses from OpenAI's.

    Args:
        reasoning: The field that contains reasoning; `details` is OpenRouter's list beside `reasoning`, `chunks` are
            Mistral's content chunks.
        ids: `openai` uses its prefix; `kimi` is `functions.name:index`, counted over the conversation, and
            `kimi_short` the same without `functions.`; `mistral` is nine alphanumerics.
        whole_calls: A call arrives in one delta.
        usage: Place of usage in a stream: in a separate chunk if requested (`asked`), in the chunk with the stop reason
            (`finish`), inside the `choice` of that chunk, or under the key `x_groq`.
        cached: Form of cached tokens: among the `details` of the prompt tokens, as `hits` and misses, or `flat`.
        comment: A keep-alive line sent before the first event and between events.
    """

    reasoning: Literal["reasoning_content", "reasoning", "details", "chunks"] = "reasoning_content"
    ids: Literal["openai", "kimi", "kimi_short", "mistral"] = "openai"
    whole_calls: bool = False
    usage: Literal["asked", "finish", "choice", "x_groq"] = "asked"
    cached: Literal["details", "hits", "flat"] = "details"
    comment: bytes = b""


MANNERS: Mapping[str, Manner] = {
    "mistral": Manner("chunks", "mistral", whole_calls=True, usage="finish"),
    "kimi": Manner(ids="kimi", usage="choice", cached="flat"),
    "deepseek": Manner(usage="finish", cached="hits", comment=b": keep-alive\n\n"),
    "openrouter": Manner("details", comment=b": OPENROUTER PROCESSING\n\n"),
    "groq": Manner("reasoning", usage="x_groq"),
    "vllm": Manner("reasoning"),
    "open_models": Manner("reasoning"),
    "ollama": Manner("reasoning", whole_calls=True),
}
"""By vendor. Other vendors use OpenAI's format with `reasoning_content`."""


@dataclass(frozen=True, slots=True)
class CompatibleWire(OpenAIWire):
    """Encodes responses in the format of one OpenAI-compatible vendor.

    Args:
        vendor: Name of the vendor's dialect.
        manner: Differences from OpenAI's format.
        settings: Returns the settings of the current request; the signatures of reasoning depend on them.
    """

    vendor: str = ""
    manner: Manner = field(default_factory=Manner)
    settings: Callable[[], CompatibleSettings] = CompatibleSettings

    def completion(self, turn: Turn, request: Json, number: int) -> Json:
        body = OpenAIWire.completion(self, turn, request, number)
        message = body["choices"][0]["message"]
        thought = message.pop("reasoning_content", None)
        match self.manner.reasoning:
            case "details":
                self._detail(message, thought, turn)
            case "chunks" if thought is not None:
                text = [] if message["content"] is None else [{"type": "text", "text": message["content"]}]
                message["content"] = [_chunk(thought), *text]
            case "chunks":
                message["content"] = message["content"] or ""
            case key:
                message |= {} if thought is None else {key: thought}
        body["usage"] = self._usage(body["usage"])
        if self.manner.reasoning == "chunks":
            del message["refusal"]
        return self._with_upstream_field(body)

    def _usage(self, usage: Json) -> Json:
        """Return usage with cached tokens in the form of this vendor."""
        details = usage.get("prompt_tokens_details")
        if details is None or self.manner.cached == "details":
            return usage
        rest = {key: value for key, value in usage.items() if key != "prompt_tokens_details"}
        read = details["cached_tokens"]
        if self.manner.cached == "flat":
            return {**rest, "cached_tokens": read}
        misses = usage["prompt_tokens"] - read
        return {**rest, "prompt_cache_hit_tokens": read, "prompt_cache_miss_tokens": misses}

    def _detail(self, message: Json, thought: str | None, turn: Turn) -> None:
        parts = [part for part in turn.parts if isinstance(part, Think | Redacted)]
        if parts:
            settings = self.settings()
            message["reasoning"] = thought
            message["reasoning_details"] = [
                _reasoning_detail(part, at, settings) for at, part in enumerate(parts)
            ]

    def chunks(self, turn: Turn, request: Json, number: int) -> list[Json]:
        events = [
            self._with_upstream_field(event) for event in OpenAIWire.chunks(self, turn, request, number)
        ]
        if events[-1].get("usage"):
            events[-1]["usage"] = self._usage(events[-1]["usage"])
        if self.manner.usage == "asked":
            return events
        asked = self._usage(OpenAIWire.completion(self, turn, request, number)["usage"])
        events = [
            {key: value for key, value in event.items() if key != "usage"}
            for event in events
            if event["choices"]
        ]
        last = events[-1]
        match self.manner.usage:
            case "finish":
                last["usage"] = asked
            case "choice":
                last["choices"][0]["usage"] = asked
            case "x_groq":
                last["x_groq"] = {"id": last["id"], "usage": asked}
        return events

    def events(self, turn: Turn, request: Json, number: int) -> list[bytes]:
        events = OpenAIWire.events(self, turn, request, number)
        comment = self.manner.comment
        return [comment, *events[:1], comment, *events[1:]] if comment else events

    def call(self, turn: Turn, request: Json, number: int, at: int) -> Json:
        made, settings = OpenAIWire.call(self, turn, request, number, at), self.settings()
        if at or settings.profile is None or not settings.profile.signed_calls:
            return made
        signed = {"thought_signature": signature(made, request["model"], settings)}
        return {**made, "extra_content": {"google": signed}}

    def call_id(self, turn: Turn, request: Json, number: int, at: int) -> str:
        call = turn.calls[at]
        if call.id is not None or turn.ids != "minted" or self.manner.ids == "openai":
            return OpenAIWire.call_id(self, turn, request, number, at)
        if self.manner.ids == "mistral":
            return _nine(f"{self.host}/{number}/{at}")
        prefix = "functions." if self.manner.ids == "kimi" else ""
        return f"{prefix}{call.name}:{_first_index(request) + at}"

    def thoughts(self, part: Think | Redacted, turn: Turn, at: int) -> Iterator[Json]:
        text = part.text if isinstance(part, Think) else ""
        match self.manner.reasoning:
            case "details":
                yield from self._detail_fragments(part, turn, at)
            case "chunks":
                yield from ({"content": [_chunk(piece)]} for piece in pieces(text, turn.fragment))
            case key:
                yield from ({key: piece} for piece in pieces(text, turn.fragment))

    def _detail_fragments(self, part: Think | Redacted, turn: Turn, at: int) -> Iterator[Json]:
        whole = _reasoning_detail(part, at, self.settings())
        if isinstance(part, Redacted):
            yield {"reasoning_details": [whole]}
            return
        common = {key: value for key, value in whole.items() if key not in ("text", "signature")}
        for piece in pieces(part.text, turn.fragment):
            yield {"reasoning": piece, "reasoning_details": [{**common, "text": piece}]}
        yield {"reasoning_details": [{**common, "signature": whole["signature"]}]}

    def fragments(self, turn: Turn, request: Json, number: int, at: int) -> Iterator[Json]:
        if not self.manner.whole_calls:
            return OpenAIWire.fragments(self, turn, request, number, at)
        return iter([{**place(turn, at), **self.call(turn, request, number, at)}])

    def error(self, refusal: ServerRefusal, number: int) -> bytes:
        return dump(errors.body(self.vendor, self._with_upstream(refusal)))

    def error_event(self, refusal: ServerRefusal, number: int) -> bytes:
        if self.vendor != "openrouter":
            return b"data: " + self.error(refusal, number) + b"\n\n"
        choice = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": "error"}
        error = {"code": refusal.status, "message": refusal.message}
        provider = self.settings().upstream
        opening = {"id": f"gen-{number}", "object": "chat.completion.chunk", "provider": provider}
        return b"data: " + dump({**opening, "error": error, "choices": [choice]}) + b"\n\n"

    def failure(self, status: int) -> ServerRefusal:
        return failure_of(status, errors.FAILURES.get(self.vendor, OPENAI_FAILURES))

    def _with_upstream(self, refusal: ServerRefusal) -> ServerRefusal:
        """Return a refusal with the name of the upstream, if an upstream caused it."""
        if self.vendor == "openrouter" and refusal.detail is not None:
            return replace(refusal, detail={**refusal.detail, "provider_name": self.settings().upstream})
        return refusal

    def _with_upstream_field(self, event: Json) -> Json:
        if self.vendor != "openrouter":
            return event
        return {**event, "provider": self.settings().upstream}


def _chunk(text: str) -> Json:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}


def _reasoning_detail(part: Think | Redacted, at: int, settings: CompatibleSettings) -> Json:
    """Return a reasoning detail, signed for its position."""
    common = {"format": "anthropic-claude-v1", "index": at}
    if isinstance(part, Redacted):
        return {"type": "reasoning.encrypted", "data": sign("", at, settings), **common}
    signature = sign(part.text, at, settings) if part.signature is None else part.signature
    return {"type": "reasoning.text", "text": part.text, "signature": signature, **common}


def _nine(seed: str) -> str:
    number = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "big")
    return "".join(_ALPHANUMERIC[number // 62**place % 62] for place in range(9))


def _first_index(request: Json) -> int:
    """Return the first unused call index; Kimi counts calls over the complete conversation."""
    calls = [call for message in request["messages"] for call in message.get("tool_calls") or ()]
    used = [int(found[1]) for call in calls if (found := _INDEX.search(call["id"]))]
    return max(len(calls), max(used, default=-1) + 1)
