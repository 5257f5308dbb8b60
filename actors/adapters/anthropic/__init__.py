"""Anthropic Messages."""

from actors.adapters.anthropic.decode import MessagesReader
from actors.adapters.anthropic.encode import AnthropicWriter, preamble
from actors.adapters.anthropic.importing import media, read
from actors.adapters.codec import Codec
from actors.core.dialect import AnthropicDialect

CODEC: Codec[AnthropicDialect] = Codec(
    writer=AnthropicWriter, preamble=preamble, reader=MessagesReader, read=read, media=media
)
