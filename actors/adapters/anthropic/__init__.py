"""Anthropic Messages."""

from actors.adapters.anthropic.decode import MessagesDecoder
from actors.adapters.anthropic.encode import AnthropicWriter, preamble
from actors.adapters.anthropic.importing import MessagesReading
from actors.adapters.codec import Codec
from actors.adapters.open_messages import CLOSING

CODEC = Codec(
    writer=AnthropicWriter,
    closing=CLOSING,
    natives=True,
    preamble=preamble,
    decoder=MessagesDecoder,
    reading=MessagesReading,
)
