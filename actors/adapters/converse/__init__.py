"""AWS Bedrock Converse."""

from actors.adapters.codec import Codec
from actors.adapters.converse.decode import ConverseReader
from actors.adapters.converse.encode import ConverseWriter, preamble
from actors.adapters.converse.frames import FrameParser
from actors.adapters.converse.importing import media, read

CODEC = Codec(
    writer=ConverseWriter,
    preamble=preamble,
    reader=ConverseReader,
    frames=FrameParser,
    read=read,
    media=media,
)
