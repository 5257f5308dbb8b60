"""Choose the adapter of a dialect: the pure code that turns a rendered transcript into a request.

The provider actor and `actors.encode` use it. `actors.adapters.codec` holds the parts that differ by family, imported
with the first adapter, and reads the answers; `actors.adapters.classify` reads the errors.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache, partial

from msgspec import Struct

from actors.adapters.marks import add_marks, routing_keys
from actors.adapters.request import Request, Settings
from actors.adapters.request_head import RequestHead
from actors.adapters.settings import fit_settings
from actors.core.data.segments import Segments
from actors.core.dialects.dialect import Dialect
from actors.core.dialects.narrow import for_model
from actors.core.transcript.transcript import NO_FACTS, Encoder, TranscriptFacts


class Prepared(Struct, frozen=True):
    """The part of a request that its settings decide. The owner of the settings caches it."""

    settings: Settings
    dialect: Dialect
    closing: bytes
    request_head: RequestHead
    names: Mapping[str, str]
    keys: Mapping[str, Mapping[str, str]]
    losses: tuple[str, ...]
    tools: frozenset[str]

    def request(self, segments: Segments, facts: TranscriptFacts) -> Request:
        """Return the request for a lane's segments, with the last message closed. `facts` is `Rendered.facts`."""
        begun, dialect = self.request_head, self.dialect
        ends, said = add_marks(segments, self.settings, dialect, facts, self.closing)
        opening = begun.before + ends + routing_keys(self.settings, dialect, facts) + begun.after
        body = said.prepend(opening).append_unjoined(b"]}")
        left_out = tuple([name for name in self.settings.omitted if name in self.losses])
        about = (self.losses, self.names, self.keys, begun.assumed, self.tools, left_out)
        return Request(begun.path, begun.headers, body, *about)


class Adapter(Struct, frozen=True):
    """The encoder of one dialect. It writes the messages of a request, and the head before them."""

    dialect: Dialect
    encoder: Encoder
    request_head: Callable[[Settings, Dialect, frozenset[str]], RequestHead]

    def prepare(self, settings: Settings, called: frozenset[str] = NO_FACTS.tools) -> Prepared:
        """Return the part of a request that the settings decide. Tools have their own names here.

        `called` are the tools in the transcript, for settings that declare none. If the settings declare tools, a
        name that a model invented must not change them: reasoning is bound to the tools (ANT-44).
        """
        dialect = for_model(self.dialect, settings.model)
        asked, names, keys, losses = fit_settings(settings, dialect)
        begun = self.request_head(asked, dialect, NO_FACTS.tools if asked.tools else called)
        told = (*losses, *begun.losses)
        tools = frozenset(tool.name for tool in asked.tools)
        return Prepared(asked, dialect, self.encoder.closing, begun, names, keys, told, tools)

    def request(self, segments: Segments, settings: Settings, facts: TranscriptFacts = NO_FACTS) -> Request:
        """Return the request that sends a lane's segments with these settings; see `prepare`."""
        return self.prepare(settings, facts.tools).request(segments, facts)


@lru_cache(maxsize=256)
def adapter(dialect: Dialect) -> Adapter:
    from actors.adapters.codec import codec

    family = codec(dialect.family)
    encoder = Encoder(partial(family.writer, dialect), family.writer.closing, family.writer.natives)
    return Adapter(dialect, encoder, family.request_head)
