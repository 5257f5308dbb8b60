"""Adapters by wire family: how each provider says it.

An `Adapter` is pure: a rendered transcript to a request, bytes to events, an error to an action. It repairs
nothing, retries nothing and opens nothing. A family's modules are imported when its first adapter is asked for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol, assert_never

from actors.adapters.classify import classify
from actors.adapters.decode import decode, decode_body
from actors.adapters.failure import Failure
from actors.adapters.request import Request, Settings
from actors.adapters.settings import fit
from actors.core.dialect import Dialect
from actors.core.identity import Binding
from actors.core.stream import Decoder
from actors.core.transcript import Encoder, Shown


class MakesRequest(Protocol):
    """Makes the request that sends a lane's segments."""

    def __call__(
        self, segments: Sequence[bytes], settings: Settings, dialect: Dialect, shown: Shown
    ) -> Request:
        """Return the request.

        Args:
            segments: The lane's text, its last message closed.
            settings: What the request says besides. What the dialect does not take is left out, and named in
                the request's `losses`.
            dialect: The profile.
            shown: What the transcript shows: some providers want the tools declared that were called in it
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

    def request(self, segments: Sequence[bytes], settings: Settings, shown: Shown | None = None) -> Request:
        """Return the request that sends a lane's segments.

        Args:
            segments: The lane's text, its last message closed.
            settings: As they were asked for, tools under their own names.
            shown: What the transcript shows (`Rendered.shown`).
        """
        shown = shown or Shown()
        fitted = fit(settings, self.dialect)
        losses = fitted.losses
        if settings.thinking == "manual" and not shown.thought:
            fitted = fit(replace(settings, thinking="default", thinking_tokens=None), self.dialect)
            losses = (*fitted.losses, "thinking")
        made = self.make(segments, fitted.settings, self.dialect, shown)
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
        make = decode if stream else decode_body
        return make(self.dialect, binding, first_call=first_call, turn=turn, names=names)

    def classify(self, status: int, headers: Mapping[str, str], body: bytes, now: float) -> Failure:
        """Return what an error response means; `now` is Unix time, for a Retry-After that is a date."""
        return classify(status, headers, body, self.dialect, now=now)


@lru_cache(maxsize=256)
def adapter(dialect: Dialect) -> Adapter:
    """Return the adapter of a dialect."""
    match dialect.family:
        case "openai_chat":
            from actors.adapters.openai_chat import encode as openai_chat

            return Adapter(dialect, openai_chat.ENCODER, openai_chat.request)
        case "anthropic":
            from actors.adapters.anthropic import encode as anthropic

            return Adapter(dialect, anthropic.ENCODER, anthropic.request)
        case "responses":
            from actors.adapters.responses import encode as responses

            return Adapter(dialect, responses.ENCODER, responses.request)
        case "gemini":
            from actors.adapters.gemini import encode as gemini

            return Adapter(dialect, gemini.ENCODER, gemini.request)
        case "converse":
            from actors.adapters.converse import encode as converse

            return Adapter(dialect, converse.ENCODER, converse.request)
        case _:
            assert_never(dialect.family)
