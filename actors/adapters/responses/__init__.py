"""OpenAI Responses, stateless."""

from actors.adapters.codec import Codec
from actors.adapters.responses.decode import ResponsesDecoder
from actors.adapters.responses.encode import ResponsesWriter, request
from actors.adapters.responses.importing import ItemsReading

CODEC = Codec(
    writer=ResponsesWriter, natives=True, request=request, decoder=ResponsesDecoder, reading=ItemsReading
)
