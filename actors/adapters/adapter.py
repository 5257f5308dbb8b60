"""Adapters by wire family: how each provider says it.

An `Adapter` is pure: a rendered transcript to a request, bytes to events, an error to an action. It repairs
nothing, retries nothing and opens nothing. A family's modules are imported when its first adapter is asked for, what
reads answers with the first of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Protocol, assert_never

from actors.adapters.failure import Failure
from actors.adapters.open_messages import CLOSING
from actors.adapters.request import Request, Settings
from actors.adapters.settings import fit
from actors.core.dialect import (
    AnthropicDialect,
    ChatDialect,
    ConverseDialect,
    Dialect,
    GeminiDialect,
    ResponsesDialect,
)
from actors.core.identity import Binding
from actors.core.stream import Decoder
from actors.core.transcript import Encoder, TranscriptFacts


class MakesRequest(Protocol):
    """Makes the request that sends a lane's segments."""

    def __call__(self, segments: Sequence[bytes], settings: Settings, *, facts: TranscriptFacts) -> Request:
        """Return the request.

        Args:
            segments: The lane's text, its last message closed.
            settings: What the request says besides. What the dialect does not take is left out, and named in
                the request's `losses`.
            facts: What the transcript shows: some providers want the tools declared that were called in it
                (BED-03), or marks where it was cut before.
        """


@dataclass(frozen=True, slots=True)
class Adapter:
    """One dialect's codec.

    Args:
        dialect: The profile it serves.
        encoder: Writes the array of messages.
        make: Makes a request; see `request`.
    """

    dialect: Dialect
    encoder: Encoder
    make: MakesRequest

    def request(
        self, segments: Sequence[bytes], settings: Settings, facts: TranscriptFacts | None = None
    ) -> Request:
        """Return the request that sends a lane's segments.

        Args:
            segments: The lane's text, its last message closed.
            settings: As they were asked for, tools under their own names.
            facts: What the transcript shows (`Rendered.facts`).
        """
        facts = facts or TranscriptFacts()
        fitted = fit(settings, self.dialect)
        losses = fitted.losses
        if settings.thinking == "manual" and not facts.thought:
            fitted = fit(replace(settings, thinking="default", thinking_tokens=None), self.dialect)
            losses = (*fitted.losses, "thinking")
        made = self.make(segments, fitted.settings, facts=facts)
        if not fitted.names and not losses:
            return made
        return replace(made, names=fitted.names, losses=(*losses, *made.losses))

    def decoder(
        self,
        binding: Binding,
        first_call: int,
        turn: int,
        *,
        stream: bool,
        names: Mapping[str, str] | None = None,
    ) -> Decoder:
        """Return a decoder for one answer; see `actors.adapters.decode`."""
        from actors.adapters.decode import decode, decode_body

        make = decode if stream else decode_body
        return make(self.dialect, binding, first_call=first_call, turn=turn, names=names)

    def classify(self, status: int, headers: Mapping[str, str], body: bytes, now: float) -> Failure:
        """Return what an error response means; `now` is Unix time, for a Retry-After that is a date."""
        from actors.adapters.classify import classify

        return classify(status, headers, body, self.dialect, now=now)


@lru_cache(maxsize=256)
def adapter(dialect: Dialect) -> Adapter:
    """Return the adapter of a dialect."""
    match dialect:
        case ChatDialect():
            from actors.adapters.openai_chat import encode as openai_chat

            encoder = Encoder(partial(openai_chat.OpenAIChatWriter, dialect))
            return Adapter(dialect, encoder, partial(openai_chat.request, dialect=dialect))
        case AnthropicDialect():
            from actors.adapters.anthropic import encode as anthropic

            encoder = Encoder(partial(anthropic.AnthropicWriter, dialect), CLOSING, natives=True)
            return Adapter(dialect, encoder, partial(anthropic.request, dialect=dialect))
        case ResponsesDialect():
            from actors.adapters.responses import encode as responses

            encoder = Encoder(partial(responses.ResponsesWriter, dialect), natives=True)
            return Adapter(dialect, encoder, partial(responses.request, dialect=dialect))
        case GeminiDialect():
            from actors.adapters.gemini import encode as gemini

            encoder = Encoder(partial(gemini.GeminiWriter, dialect), CLOSING, natives=True)
            return Adapter(dialect, encoder, partial(gemini.request, dialect=dialect))
        case ConverseDialect():
            from actors.adapters.converse import encode as converse

            encoder = Encoder(partial(converse.ConverseWriter, dialect), CLOSING)
            return Adapter(dialect, encoder, partial(converse.request, dialect=dialect))
        case _:
            assert_never(dialect)
