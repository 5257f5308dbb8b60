"""Encode scripted turns for Bedrock: as one JSON document or, if streamed, as frames of AWS's binary event stream.

A frame contains an event of the Converse API or, for the InvokeModel API, an event in Anthropic's format.
"""

import hashlib
import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from struct import pack
from zlib import crc32

from actors.strict.rules.base import Json, Mode, ServerRefusal, dump, is_object
from actors.strict.rules.bedrock import sign_reasoning
from actors.strict.rules.bedrock_rules import BedrockSettings
from actors.strict.rules.reading import parse
from actors.strict.script import Builtin, Call, Redacted, Say, Think, Turn
from actors.strict.wires import AnthropicWire

_FAILURES: Mapping[int, tuple[str, str]] = {
    400: ("ValidationException", "The request is not valid."),
    403: ("AccessDeniedException", "You don't have access to the model with the specified model ID."),
    404: (
        "ResourceNotFoundException",
        "Could not resolve the foundation model from the provided identifier.",
    ),
    405: ("UnknownOperationException", "The operation is unknown."),
    408: ("ModelTimeoutException", "Model has timed out in processing the request. Try your request again."),
    413: ("ValidationException", "The request body is too large."),
    424: ("ModelErrorException", "The model had an error while processing the request."),
    429: ("ThrottlingException", "Too many requests, please wait before trying again."),
    500: ("InternalServerException", "The system encountered an unexpected error during processing."),
    503: ("ServiceUnavailableException", "Bedrock is unable to process your request."),
    529: ("ServiceUnavailableException", "Bedrock is unable to process your request."),
}
_IN_STREAM: Mapping[int, str] = {
    400: "validationException",
    424: "modelStreamErrorException",
    429: "throttlingException",
    503: "serviceUnavailableException",
    529: "serviceUnavailableException",
}
_CHUNK = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}


def encode_frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """Return one frame of the event stream, with valid checksums and headers whose values are strings."""
    opening = b"".join(
        pack(">B", len(name)) + name.encode() + b"\x07" + pack(">H", len(value.encode())) + value.encode()
        for name, value in headers.items()
    )
    prelude = pack(">II", 12 + len(opening) + len(payload) + 4, len(opening))
    body = prelude + pack(">I", crc32(prelude)) + opening + payload
    return body + pack(">I", crc32(body))


def _encode_event(event_type: str, payload: Json) -> bytes:
    headers = {":event-type": event_type, ":content-type": "application/json", ":message-type": "event"}
    return encode_frame(headers, dump(payload))


@dataclass(frozen=True, slots=True)
class BedrockWire:
    """The response encoder for Bedrock Converse. Signatures of reasoning depend on the request, and generated ids
    depend on `host`.
    """

    settings: BedrockSettings
    mode: Mode = "strict"
    host: str = ""

    def encode_response(self, turn: Turn, request: Json, request_number: int) -> bytes:
        message = {"role": "assistant", "content": self._encode_blocks(turn, request, request_number)}
        return dump(
            {
                "metrics": {"latencyMs": 7},
                "output": {"message": message},
                "stopReason": _stop_reason(turn),
                "usage": _usage_json(turn),
                **turn.extra,
            }
        )

    def encode_events(self, turn: Turn, request: Json, request_number: int) -> list[bytes]:
        events: list[tuple[str, Json]] = [("messageStart", {"role": "assistant"})]
        for at, (part, block) in enumerate(
            zip(turn.parts, self._encode_blocks(turn, request, request_number), strict=True)
        ):
            if isinstance(part, Call):
                start = {key: block["toolUse"][key] for key in ("toolUseId", "name")}
                events.append(("contentBlockStart", {"start": {"toolUse": start}, "contentBlockIndex": at}))
            deltas = _encode_deltas(part, block, turn)
            events += [("contentBlockDelta", {"delta": delta, "contentBlockIndex": at}) for delta in deltas]
            events.append(("contentBlockStop", {"contentBlockIndex": at}))
        events.append(("messageStop", {"stopReason": _stop_reason(turn)}))
        events.append(("metadata", {"usage": _usage_json(turn), "metrics": {"latencyMs": 7}}))
        return [_encode_event(kind, {**payload, **turn.extra}) for kind, payload in events]

    def encode_error(self, refusal: ServerRefusal, request_number: int) -> bytes:
        return dump({"message": refusal.message})

    def encode_error_event(self, refusal: ServerRefusal, request_number: int) -> bytes:
        kind = _IN_STREAM.get(refusal.status, "internalServerException")
        headers = {
            ":exception-type": kind,
            ":content-type": "application/json",
            ":message-type": "exception",
        }
        return encode_frame(headers, dump({"message": refusal.message}))

    def status_error(self, status: int) -> ServerRefusal:
        kind, message = _FAILURES.get(status, _FAILURES[500 if status >= 500 else 400])
        return ServerRefusal("", status, kind, None, None, message)

    def _encode_blocks(self, turn: Turn, request: Json, request_number: int) -> list[Json]:
        settings = replace(self.settings, model=request["model"])
        blocks: list[Json] = []
        for at, part in enumerate(turn.parts):
            match part:
                case Say(text=text):
                    blocks.append({"text": text})
                case Think(text=text, signature=signature):
                    if signature is None:
                        signature = sign_reasoning(request, blocks, text, settings, self.mode)
                    reasoning = {"reasoningText": {"text": text, "signature": signature}}
                    blocks.append({"reasoningContent": reasoning})
                case Redacted():
                    data = sign_reasoning(request, blocks, "", settings, self.mode)
                    blocks.append({"reasoningContent": {"redactedContent": data}})
                case Call(name=name):
                    call_id = self._call_id(part, turn, request_number, at)
                    blocks.append(
                        {"toolUse": {"toolUseId": call_id, "name": name, "input": _arguments_object(part)}}
                    )
                case Builtin():
                    raise ValueError("Bedrock Converse cannot send a `Builtin`; remove it from the script")
        return blocks

    def _call_id(self, call: Call, turn: Turn, request_number: int, position: int) -> str:
        if call.id is not None:
            return call.id
        match turn.ids:
            case "minted":
                digest = hashlib.sha256(f"{self.host}/{request_number}/{position}".encode()).hexdigest()
                return f"tooluse_{digest[:22]}"
            case "restart":
                return f"call_{position}"
            case "blank":
                return ""


def _encode_deltas(scripted_part: object, wire_block: Json, turn: Turn) -> Iterator[Json]:
    match scripted_part:
        case Say(text=text):
            yield from ({"text": piece} for piece in _split_text(text, turn.fragment))
        case Think(text=text):
            yield from ({"reasoningContent": {"text": piece}} for piece in _split_text(text, turn.fragment))
            signature = wire_block["reasoningContent"]["reasoningText"]["signature"]
            yield {"reasoningContent": {"signature": signature}}
        case Call():
            text = _arguments_text(scripted_part)
            size = max(len(text), 1) if turn.whole_calls else turn.fragment
            yield from ({"toolUse": {"input": piece}} for piece in _split_text(text, size))
        case _:
            yield {"reasoningContent": wire_block["reasoningContent"]}


def _split_text(text: str, size: int) -> Iterator[str]:
    return (text[at : at + size] for at in range(0, len(text), size))


def _arguments_text(call: Call) -> str:
    return json.dumps(dict(call.arguments), ensure_ascii=False) if call.raw is None else call.raw


def _arguments_object(call: Call) -> Json:
    try:
        value = parse(_arguments_text(call).encode())
    except ValueError:
        return {}
    return value if is_object(value) else {}


def _stop_reason(turn: Turn) -> str:
    return turn.stop or ("tool_use" if turn.calls else "end_turn")


def _usage_json(turn: Turn) -> Json:
    read, written = turn.usage
    usage: Json = {
        "inputTokens": read - sum(turn.cached),
        "outputTokens": written,
        "totalTokens": read + written,
    }
    if any(turn.cached):
        usage |= {"cacheReadInputTokens": turn.cached[0], "cacheWriteInputTokens": turn.cached[1]}
    return usage


@dataclass(frozen=True, slots=True)
class InvokeModelWire:
    """The response encoder for InvokeModel. Answers are in Anthropic's format, and errors in Bedrock's."""

    claude: AnthropicWire
    bedrock: BedrockWire

    def encode_response(self, turn: Turn, request: Json, request_number: int) -> bytes:
        return self.claude.encode_response(turn, request, request_number)

    def encode_events(self, turn: Turn, request: Json, request_number: int) -> list[bytes]:
        return [_encode_chunk(payload) for payload in self.claude.payloads(turn, request, request_number)]

    def encode_error(self, refusal: ServerRefusal, request_number: int) -> bytes:
        return self.bedrock.encode_error(refusal, request_number)

    def encode_error_event(self, refusal: ServerRefusal, request_number: int) -> bytes:
        return self.bedrock.encode_error_event(refusal, request_number)

    def status_error(self, status: int) -> ServerRefusal:
        return self.bedrock.status_error(status)


def _encode_chunk(payload: Json) -> bytes:
    padding = "abcdefghijklmnopqrstuvwxyz"[: 1 + len(payload) % 26]  # AWS pads events to hide their lengths
    return encode_frame(_CHUNK, dump({"bytes": b64encode(dump(payload)).decode(), "p": padding}))
