"""Adapters by wire family: how each provider says it.

An `Adapter` is pure: a rendered transcript to a request. `actors.adapters.codec` has what differs by family, imported
when the first adapter is asked for, and reads the answers; `actors.adapters.classify` reads the errors.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

from actors.adapters.marks import marked, routed
from actors.adapters.preamble import Preamble
from actors.adapters.request import Request, Settings
from actors.adapters.settings import fit
from actors.core.dialect import Dialect
from actors.core.segments import Segments
from actors.core.transcript import NO_FACTS, Encoder, TranscriptFacts


@dataclass(frozen=True, slots=True)
class Adapter:
    """One dialect's codec: what writes the array of messages, and what makes the preamble of a request."""

    dialect: Dialect
    encoder: Encoder
    preamble: Callable[[Settings, Dialect, frozenset[str]], Preamble]

    def request(self, segments: Segments, settings: Settings, facts: TranscriptFacts = NO_FACTS) -> Request:
        """Return the request that sends a lane's segments, its last message closed.

        Settings are given as they were asked for, tools under their own names; `facts` is `Rendered.facts`.
        """
        asked, names, losses = fit(settings, self.dialect)
        # What a model invented must not change the tools of the settings: reasoning is bound to them (ANT-44).
        called = frozenset[str]() if asked.tools else facts.tools
        begun = self.preamble(asked, self.dialect, called)
        ends, said = marked(segments, asked, self.dialect, facts, self.encoder.closing)
        opening = begun.before + ends + routed(asked, self.dialect, facts) + begun.after
        told = (*losses, *begun.losses)
        body = said.begun(opening).ended(b"]}")
        return Request(begun.path, begun.headers, body, told, names, begun.assumed)


@lru_cache(maxsize=256)
def adapter(dialect: Dialect) -> Adapter:
    from actors.adapters.codec import codec

    family = codec(dialect.family)
    encoder = Encoder(partial(family.writer, dialect), family.writer.closing, family.writer.natives)
    preamble = lru_cache(maxsize=256)(family.preamble)  # a session says the same in every request
    return Adapter(dialect, encoder, preamble)
