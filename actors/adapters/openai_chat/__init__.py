"""OpenAI Chat Completions."""

from actors.adapters.codec import Codec
from actors.adapters.openai_chat.decode import ChatDecoder
from actors.adapters.openai_chat.encode import OpenAIChatWriter, request
from actors.adapters.openai_chat.importing import media, read

CODEC = Codec(writer=OpenAIChatWriter, request=request, decoder=ChatDecoder, read=read, media=media)
