"""Encode a rendered transcript and its settings as a request, following a dialect's rules.

The provider actor and `actors.transcripts.encode` call `adapter`. Each wire family has a `Codec`
(`actors.adapters.codec`), which is imported with the family's first adapter. The codec's decoder decodes the answers,
and `actors.adapters.classify` classifies errors.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache, partial

from msgspec import Struct

from actors.adapters.request import Request, Settings
from actors.adapters.settings import fit_settings
from actors.adapters.writing import RequestHead, add_marks, routing_keys
from actors.core.data.persistent import Segments
from actors.core.dialects.dialect import Dialect
from actors.core.dialects.narrow import for_model
from actors.core.transcript.transcript import NO_FACTS, Encoder, TranscriptFacts


class PreparedRequest(Struct, frozen=True):
    """The part of a request that depends only on its settings, so it can be cached together with them.

    Args:
        closing: Bytes that close the last message.
        request_head: The path, the headers, and the bytes before the messages.
        names, keys, losses, tools: As in `Request`.
    """

    settings: Settings
    dialect: Dialect
    closing: bytes
    request_head: RequestHead
    names: Mapping[str, str]
    keys: Mapping[str, Mapping[str, str]]
    losses: tuple[str, ...]
    tools: frozenset[str]

    def request(self, segments: Segments, facts: TranscriptFacts) -> Request:
        """Return the request that sends `segments`, the encoded messages of a transcript, and closes the last message.
        `facts` is `Rendered.facts`.
        """
        begun, dialect = self.request_head, self.dialect
        ends, said = add_marks(segments, self.settings, dialect, facts, self.closing)
        routing = ends + routing_keys(self.settings, dialect, facts)
        body = said.prepend(begun.before, routing, begun.after).append_unjoined(b"]}")
        left_out = tuple([name for name in self.settings.omitted if name in self.losses])
        about = (self.losses, self.names, self.keys, begun.assumed, self.tools, left_out)
        return Request(begun.path, begun.headers, body, *about)


class Adapter(Struct, frozen=True):
    """Encodes requests for one dialect: the messages of a request, and the fields before them."""

    dialect: Dialect
    encoder: Encoder
    request_head: Callable[[Settings, Dialect, frozenset[str]], RequestHead]

    def prepare(self, settings: Settings, called_tools: frozenset[str] = NO_FACTS.tools) -> PreparedRequest:
        """Return the part of a request that depends only on the settings. `settings` contains the tools' own names.

        `called_tools` contains the names of the tools that the transcript calls. They are used only if the settings
        declare no tools. So a tool name that a model invented never changes the tool declarations, to which reasoning
        is bound (ANT-44).
        """
        dialect = for_model(self.dialect, settings.model)
        asked, names, keys, losses = fit_settings(settings, dialect)
        begun = self.request_head(asked, dialect, NO_FACTS.tools if asked.tools else called_tools)
        told = (*losses, *begun.losses)
        tools = frozenset(tool.name for tool in asked.tools)
        return PreparedRequest(asked, dialect, self.encoder.closing, begun, names, keys, told, tools)

    def request(self, segments: Segments, settings: Settings, facts: TranscriptFacts = NO_FACTS) -> Request:
        """Return the request that sends `segments`, the encoded messages of a transcript, with these settings."""
        return self.prepare(settings, facts.tools).request(segments, facts)


@lru_cache(maxsize=256)
def adapter(dialect: Dialect) -> Adapter:
    """Return the adapter for a dialect. Adapters are cached, and a wire family's code is imported on first use."""
    from actors.adapters.codec import codec

    family = codec(dialect.family)
    encoder = Encoder(partial(family.writer, dialect), family.writer.closing, family.writer.natives)
    return Adapter(dialect, encoder, family.request_head)
