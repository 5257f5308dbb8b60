"""OpenAI Chat Completions."""

from actors.adapters.codec import Codec
from actors.adapters.openai_chat.decode import ChatDecoder, ChatReading
from actors.adapters.openai_chat.encode import OpenAIChatWriter, request_head

CODEC = Codec(writer=OpenAIChatWriter, request_head=request_head, decoder=ChatDecoder, reading=ChatReading)
