"""Google's generateContent."""

from actors.adapters.codec import Codec
from actors.adapters.gemini.decode import GenerateContentDecoder
from actors.adapters.gemini.encode import GeminiWriter, preamble
from actors.adapters.gemini.importing import ContentsReading
from actors.adapters.open_messages import CLOSING

CODEC = Codec(
    writer=GeminiWriter,
    closing=CLOSING,
    natives=True,
    preamble=preamble,
    decoder=GenerateContentDecoder,
    reading=ContentsReading,
)
