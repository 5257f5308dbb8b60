"""Encode scripted turns for Bedrock's InvokeModel: Anthropic's events, each in a binary frame."""

from base64 import b64encode
from dataclasses import dataclass

from actors.strict.rules.base import Json, ServerRefusal, dump
from actors.strict.script import Turn
from actors.strict.wire import AnthropicWire
from actors.strict.wires.bedrock import BedrockWire, frame

_CHUNK = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}


@dataclass(frozen=True, slots=True)
class InvokeModelWire:
    """The encoder of InvokeModel: answers in Anthropic's format, errors in Bedrock's."""

    claude: AnthropicWire
    bedrock: BedrockWire

    def response(self, turn: Turn, request: Json, number: int) -> bytes:
        return self.claude.response(turn, request, number)

    def events(self, turn: Turn, request: Json, number: int) -> list[bytes]:
        return [_frame(payload) for payload in self.claude.payloads(turn, request, number)]

    def error(self, refusal: ServerRefusal, number: int) -> bytes:
        return self.bedrock.error(refusal, number)

    def error_event(self, refusal: ServerRefusal, number: int) -> bytes:
        return self.bedrock.error_event(refusal, number)

    def failure(self, status: int) -> ServerRefusal:
        return self.bedrock.failure(status)


def _frame(payload: Json) -> bytes:
    padding = "abcdefghijklmnopqrstuvwxyz"[: 1 + len(payload) % 26]  # padding, so that lengths reveal nothing
    return frame(_CHUNK, dump({"bytes": b64encode(dump(payload)).decode(), "p": padding}))
