"""Provide the codec of OpenAI Responses. It does not use the API's storage."""

from actors.adapters.codec import Codec
from actors.adapters.responses.decode import ItemsReader, ResponsesDecoder
from actors.adapters.responses.encode import ResponsesWriter, request_head

CODEC = Codec(writer=ResponsesWriter, request_head=request_head, decoder=ResponsesDecoder, reader=ItemsReader)
