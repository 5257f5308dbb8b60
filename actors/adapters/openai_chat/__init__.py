"""Provide the codec of OpenAI Chat Completions and compatible hosts."""

from actors.adapters.codec import Codec
from actors.adapters.openai_chat.decode import ChatDecoder, ChatReader
from actors.adapters.openai_chat.encode import OpenAIChatWriter, request_head

CODEC = Codec(writer=OpenAIChatWriter, request_head=request_head, decoder=ChatDecoder, reader=ChatReader)
