"""AWS Bedrock Converse."""

from actors.adapters.codec import Codec
from actors.adapters.converse.decode import ConverseDecoder
from actors.adapters.converse.encode import ConverseWriter, preamble
from actors.adapters.converse.importing import ConverseReading

CODEC = Codec(writer=ConverseWriter, preamble=preamble, decoder=ConverseDecoder, reading=ConverseReading)
