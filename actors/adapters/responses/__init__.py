"""OpenAI Responses, stateless."""

from actors.adapters.codec import Codec
from actors.adapters.responses.decode import ItemsReading, ResponsesDecoder
from actors.adapters.responses.encode import ResponsesWriter, request_head

CODEC = Codec(
    writer=ResponsesWriter, request_head=request_head, decoder=ResponsesDecoder, reading=ItemsReading
)
