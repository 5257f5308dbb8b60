"""OpenAI Chat Completions."""

from actors.adapters.codec import Codec
from actors.adapters.openai_chat.decode import ChatDecoder, ChatReading
from actors.adapters.openai_chat.encode import OpenAIChatWriter, preamble

CODEC = Codec(writer=OpenAIChatWriter, preamble=preamble, decoder=ChatDecoder, reading=ChatReading)
