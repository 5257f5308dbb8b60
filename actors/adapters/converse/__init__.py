"""AWS Bedrock Converse."""

from actors.adapters.codec import Codec
from actors.adapters.converse.decode import ConverseReader
from actors.adapters.converse.encode import ConverseWriter, request
from actors.adapters.converse.frames import FrameParser
from actors.adapters.converse.importing import ConverseReading
from actors.adapters.open_messages import CLOSING

CODEC = Codec(
    writer=ConverseWriter,
    closing=CLOSING,
    request=request,
    reader=ConverseReader,
    frames=FrameParser,
    reading=ConverseReading,
)
