"""Google's generateContent."""

from actors.adapters.codec import Codec
from actors.adapters.gemini.decode import GenerateContentDecoder
from actors.adapters.gemini.encode import GeminiWriter, preamble
from actors.adapters.gemini.importing import ContentsReading

CODEC = Codec(writer=GeminiWriter, preamble=preamble, decoder=GenerateContentDecoder, reading=ContentsReading)
