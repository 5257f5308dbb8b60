"""Provide the codec of Anthropic Messages."""

from actors.adapters.anthropic.decode import MessagesDecoder, MessagesReader
from actors.adapters.anthropic.encode import AnthropicWriter, request_head
from actors.adapters.codec import Codec

CODEC = Codec(
    writer=AnthropicWriter, request_head=request_head, decoder=MessagesDecoder, reader=MessagesReader
)
