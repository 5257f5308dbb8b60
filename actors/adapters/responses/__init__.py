"""OpenAI Responses, stateless."""

from actors.adapters.codec import Codec
from actors.adapters.responses.decode import ResponsesDecoder
from actors.adapters.responses.encode import ResponsesWriter, preamble
from actors.adapters.responses.importing import ItemsReading

CODEC = Codec(writer=ResponsesWriter, preamble=preamble, decoder=ResponsesDecoder, reading=ItemsReading)
