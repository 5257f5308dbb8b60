"""Adapters by wire family: how each provider says it.

An `Adapter` is pure: a rendered transcript to a request, bytes to events, an error to an action. It repairs, retries
and opens nothing. What differs by family is in `actors.adapters.codec`, imported when the first adapter is asked for.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from actors.adapters.failure import Failure
from actors.adapters.request import Request, Settings
from actors.adapters.settings import fit
from actors.core.dialect import Dialect
from actors.core.identity import Binding
from actors.core.stream import Decoder
from actors.core.transcript import Encoder, TranscriptFacts


@dataclass(frozen=True, slots=True)
class Adapter:
    """One dialect's codec: what writes the array of messages, and what makes a request of it."""

    dialect: Dialect
    encoder: Encoder
    make: Callable[[Sequence[bytes], Settings, Dialect, TranscriptFacts], Request]

    def request(
        self, segments: Sequence[bytes], settings: Settings, facts: TranscriptFacts | None = None
    ) -> Request:
        """Return the request that sends a lane's segments, its last message closed.

        Args:
            settings: As they were asked for, tools under their own names.
            facts: What the transcript shows (`Rendered.facts`).
        """
        fitted, names, losses = fit(settings, self.dialect)
        made = self.make(segments, fitted, self.dialect, facts or TranscriptFacts())
        return replace(made, names=names, losses=(*losses, *made.losses)) if names or losses else made

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
        from actors.adapters.decode import decode

        return decode(self.dialect, binding, first_call=first_call, turn=turn, names=names, stream=stream)

    def classify(self, status: int, headers: Mapping[str, str], body: bytes, now: float) -> Failure:
        """Return what an error response means; `now` is Unix time, for a Retry-After that is a date."""
        from actors.adapters.classify import classify

        return classify(status, headers, body, self.dialect, now=now)


@lru_cache(maxsize=256)
def adapter(dialect: Dialect) -> Adapter:
    """Return the adapter of a dialect."""
    from actors.adapters.codec import codec

    family = codec(dialect.family)
    encoder = Encoder(partial(family.writer, dialect), family.closing, family.natives)
    return Adapter(dialect, encoder, family.request)
