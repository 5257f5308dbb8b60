"""Anthropic Messages."""

from actors.adapters.anthropic.decode import MessagesDecoder, MessagesReading
from actors.adapters.anthropic.encode import AnthropicWriter, preamble
from actors.adapters.codec import Codec

CODEC = Codec(writer=AnthropicWriter, preamble=preamble, decoder=MessagesDecoder, reading=MessagesReading)
