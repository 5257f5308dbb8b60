"""Adapters by wire family: how each provider says it.

An `Adapter` is pure: a rendered transcript to a request, an error to an action; `actors.adapters.decode` reads the
answers. It repairs, retries and opens nothing. What differs by family is in `actors.adapters.codec`, imported when the
first adapter is asked for.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

from actors.adapters.failure import Failure
from actors.adapters.marks import marked, routed
from actors.adapters.preamble import Preamble
from actors.adapters.request import Request, Settings
from actors.adapters.settings import fit
from actors.core.dialect import Dialect
from actors.core.transcript import NO_FACTS, Encoder, TranscriptFacts


@dataclass(frozen=True, slots=True)
class Adapter:
    """One dialect's codec: what writes the array of messages, and what makes the preamble of a request."""

    dialect: Dialect
    encoder: Encoder
    preamble: Callable[[Settings, Dialect, frozenset[str]], Preamble]

    def request(
        self, segments: Sequence[bytes], settings: Settings, facts: TranscriptFacts = NO_FACTS
    ) -> Request:
        """Return the request that sends a lane's segments, its last message closed.

        Args:
            settings: As they were asked for, tools under their own names.
            facts: What the transcript shows (`Rendered.facts`).
        """
        asked, names, losses = fit(settings, self.dialect)
        begun = _begun(self.preamble, asked, self.dialect, frozenset() if asked.tools else facts.tools)
        ends, said = marked(segments, asked, self.dialect, facts.before, self.encoder.closing)
        opening = begun.before + ends + routed(asked, self.dialect, facts) + begun.after
        told = (*losses, *begun.losses)
        return Request(begun.path, begun.headers, (opening, *said, b"]}"), told, names, begun.assumed)

    def classify(self, status: int, headers: Mapping[str, str], body: bytes, now: float) -> Failure:
        """Return what an error response means; `now` is Unix time, for a Retry-After that is a date."""
        from actors.adapters.classify import classify

        return classify(status, headers, body, self.dialect, now=now)


@lru_cache(maxsize=256)  # a session says the same in every request
def _begun(
    make: Callable[[Settings, Dialect, frozenset[str]], Preamble],
    settings: Settings,
    dialect: Dialect,
    called: frozenset[str],
) -> Preamble:
    return make(settings, dialect, called)


@lru_cache(maxsize=256)
def adapter(dialect: Dialect) -> Adapter:
    """Return the adapter of a dialect."""
    from actors.adapters.codec import codec

    family = codec(dialect.family)
    writer = family.writer
    encoder = Encoder(partial(writer, dialect), writer.closing, writer.natives)
    return Adapter(dialect, encoder, family.preamble)
