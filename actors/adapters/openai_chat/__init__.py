"""OpenAI Chat Completions."""

from actors.adapters.codec import Codec
from actors.adapters.openai_chat.decode import ChatReader
from actors.adapters.openai_chat.encode import OpenAIChatWriter, preamble
from actors.adapters.openai_chat.importing import media, read

CODEC = Codec(writer=OpenAIChatWriter, preamble=preamble, reader=ChatReader, read=read, media=media)
