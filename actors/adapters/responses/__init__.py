"""OpenAI Responses, stateless."""

from actors.adapters.codec import Codec
from actors.adapters.responses.decode import ItemsReading, ResponsesDecoder
from actors.adapters.responses.encode import ResponsesWriter, preamble

CODEC = Codec(writer=ResponsesWriter, preamble=preamble, decoder=ResponsesDecoder, reading=ItemsReading)
