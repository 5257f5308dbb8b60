"""Google's generateContent."""

from actors.adapters.codec import Codec
from actors.adapters.gemini.decode import GenerateContentReader
from actors.adapters.gemini.encode import GeminiWriter, preamble
from actors.adapters.gemini.importing import media, read

CODEC = Codec(writer=GeminiWriter, preamble=preamble, reader=GenerateContentReader, read=read, media=media)
