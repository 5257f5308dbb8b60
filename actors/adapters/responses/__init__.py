"""OpenAI Responses, stateless."""

from actors.adapters.codec import Codec
from actors.adapters.responses.decode import ResponsesReader
from actors.adapters.responses.encode import ResponsesWriter, preamble
from actors.adapters.responses.importing import media, read

CODEC = Codec(writer=ResponsesWriter, preamble=preamble, reader=ResponsesReader, read=read, media=media)
