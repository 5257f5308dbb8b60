"""OpenAI Chat Completions."""

from actors.adapters.codec import Codec
from actors.adapters.openai_chat.decode import ChatDecoder
from actors.adapters.openai_chat.encode import OpenAIChatWriter, preamble
from actors.adapters.openai_chat.importing import ChatReading

CODEC = Codec(writer=OpenAIChatWriter, preamble=preamble, decoder=ChatDecoder, reading=ChatReading)
