"""Adapters by wire family: how each provider says it.

An `Adapter` is pure: a rendered transcript to a request, an error to an action; `actors.adapters.decode` reads the
answers. It repairs nothing, retries nothing and opens nothing. What differs from family to family is in
`actors.adapters.codec`, and is imported when the first adapter is asked for.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from actors.adapters.failure import Failure
from actors.adapters.request import Request, Settings
from actors.adapters.settings import fit
from actors.core.dialect import Dialect
from actors.core.transcript import Encoder, TranscriptFacts


@dataclass(frozen=True, slots=True)
class Adapter:
    """One dialect's codec.

    Args:
        dialect: The profile it serves.
        encoder: Writes the array of messages.
        make: Makes a request; see `actors.adapters.codec.Codec`.
    """

    dialect: Dialect
    encoder: Encoder
    make: Callable[[Sequence[bytes], Settings, Dialect, TranscriptFacts], Request]

    def request(
        self, segments: Sequence[bytes], settings: Settings, facts: TranscriptFacts | None = None
    ) -> Request:
        """Return the request that sends a lane's segments.

        Args:
            segments: The lane's text, its last message closed.
            settings: As they were asked for, tools under their own names.
            facts: What the transcript shows (`Rendered.facts`).
        """
        fitted = fit(settings, self.dialect)
        made = self.make(segments, fitted.settings, self.dialect, facts or TranscriptFacts())
        if not fitted.names and not fitted.losses:
            return made
        return replace(made, names=fitted.names, losses=(*fitted.losses, *made.losses))

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
