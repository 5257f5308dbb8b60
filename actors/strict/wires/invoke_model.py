"""Encode scripted turns for Bedrock's InvokeModel API, which sends each Anthropic event in a binary frame."""

from base64 import b64encode
from dataclasses import dataclass

from actors.strict.rules.base import Json, ServerRefusal, dump
from actors.strict.script import Turn
from actors.strict.wire import AnthropicWire
from actors.strict.wires.bedrock import BedrockWire, encode_frame

_CHUNK = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}


@dataclass(frozen=True, slots=True)
class InvokeModelWire:
    """The response encoder for InvokeModel. Answers are in Anthropic's format, and errors in Bedrock's."""

    claude: AnthropicWire
    bedrock: BedrockWire

    def encode_response(self, turn: Turn, request: Json, request_number: int) -> bytes:
        return self.claude.encode_response(turn, request, request_number)

    def encode_events(self, turn: Turn, request: Json, request_number: int) -> list[bytes]:
        return [_encode_event(payload) for payload in self.claude.payloads(turn, request, request_number)]

    def encode_error(self, refusal: ServerRefusal, request_number: int) -> bytes:
        return self.bedrock.encode_error(refusal, request_number)

    def encode_error_event(self, refusal: ServerRefusal, request_number: int) -> bytes:
        return self.bedrock.encode_error_event(refusal, request_number)

    def status_error(self, status: int) -> ServerRefusal:
        return self.bedrock.status_error(status)


def _encode_event(payload: Json) -> bytes:
    padding = "abcdefghijklmnopqrstuvwxyz"[: 1 + len(payload) % 26]  # AWS pads events to hide their lengths
    return encode_frame(_CHUNK, dump({"bytes": b64encode(dump(payload)).decode(), "p": padding}))
