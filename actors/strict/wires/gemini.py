"""Encode scripted turns for Google's generateContent.

A streamed response is a list of `data:` events. Each event is a response with the new parts, and the last event
contains the finish reason. The signature is on the first call of a response, or on its last text part if there is no
call. In a stream, the signature of a text part is on an empty text part at the end. A thinking part has the mark
`thought`, and no signature.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from actors.strict.rules.base import Json, ServerRefusal, dump, is_object
from actors.strict.rules.gemini import continuation_token, sign
from actors.strict.rules.gemini_rules import GeminiSettings
from actors.strict.rules.reading import parse
from actors.strict.script import Builtin, Call, Redacted, Say, Think, Turn

_ERROR = "type.googleapis.com/google.rpc."
_FAILURES: Mapping[int, tuple[str, str]] = {
    400: ("INVALID_ARGUMENT", "Request contains an invalid argument."),
    401: ("UNAUTHENTICATED", "Request had invalid authentication credentials."),
    403: ("PERMISSION_DENIED", "The caller does not have permission"),
    404: ("NOT_FOUND", "Requested entity was not found."),
    405: ("INVALID_ARGUMENT", "The method is not allowed."),
    413: ("INVALID_ARGUMENT", "Request payload size exceeds the limit."),
    429: (
        "RESOURCE_EXHAUSTED",
        "You exceeded your current quota, please check your plan and billing details.",
    ),
    500: ("INTERNAL", "An internal error has occurred. Please retry."),
    503: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
    504: ("DEADLINE_EXCEEDED", "The request timed out. Please try again."),
}


@dataclass(frozen=True, slots=True)
class GeminiWire:
    """The response encoder for generateContent. Generated ids depend on `host`.

    Each parsed request must contain the `model` from the request's path.
    """

    settings: GeminiSettings
    host: str = ""

    def encode_response(self, turn: Turn, request: Json, request_number: int) -> bytes:
        parts = [part for _, part in self._encode_parts(turn, request, request_number)]
        return dump(self._response_json(parts, turn, request, request_number, _stop_reason(turn)))

    def encode_events(self, turn: Turn, request: Json, request_number: int) -> list[bytes]:
        pieces = [[part] for part in self._encode_deltas(turn, request, request_number)] or [[]]
        last = len(pieces) - 1
        return [
            _encode_event(
                self._response_json(
                    parts, turn, request, request_number, _stop_reason(turn) if at == last else None
                )
            )
            for at, parts in enumerate(pieces)
        ]

    def encode_error(self, refusal: ServerRefusal, request_number: int) -> bytes:
        error = {"code": refusal.status, "message": refusal.message, "status": refusal.type}
        return dump({"error": {**error, "details": _error_details(refusal)}})

    def encode_error_event(self, refusal: ServerRefusal, request_number: int) -> bytes:
        return b"data: " + self.encode_error(refusal, request_number) + b"\r\n\r\n"

    def status_error(self, status: int) -> ServerRefusal:
        fallback = _FAILURES[503 if status in (503, 529) else 500 if status >= 500 else 400]
        kind, message = _FAILURES.get(status, fallback)
        return ServerRefusal("", 503 if status == 529 else status, kind, None, None, message)

    def _response_json(
        self, parts: list[Json], turn: Turn, request: Json, request_number: int, stop: str | None
    ) -> Json:
        read, written = turn.usage
        cached = {"cachedContentTokenCount": turn.cached[0]} if turn.cached[0] else {}
        candidate: Json = {"content": {"parts": parts, "role": "model"}, "index": 0}
        if not parts:
            del candidate["content"]
        if stop == "CONTINUATION":
            candidate["continuationToken"] = continuation_token(request, self.settings)
        return {
            "candidates": [candidate if stop is None else {**candidate, "finishReason": stop}],
            "usageMetadata": {
                "promptTokenCount": read,
                "candidatesTokenCount": written,
                "totalTokenCount": read + written,
                **cached,
            },
            "modelVersion": request["model"],
            "responseId": _mint_id(self.host, request_number, 0),
            **turn.extra,
        }

    def _encode_parts(self, turn: Turn, request: Json, request_number: int) -> Iterator[tuple[object, Json]]:
        """Yield each scripted part with its wire form. Only the part that `_signed_part` selects has a signature."""
        settings = replace(self.settings, model=request["model"])
        calls = 0
        signs = _signed_part(turn) if settings.profile.signatures else None
        for part in turn.parts:
            made = self._encode_part(part, turn, request_number, calls)
            calls += isinstance(part, Call)
            if part is signs:
                made["thoughtSignature"] = sign(made, settings)
            if made:
                yield part, made

    def _encode_part(self, scripted_part: object, turn: Turn, request_number: int, position: int) -> Json:
        match scripted_part:
            case Say(text=text):
                return {"text": text}
            case Think(text=text):
                return {"text": text, "thought": True}
            case Call(name=name):
                call: Json = {"name": name, "args": _arguments_object(scripted_part)}
                call_id = (
                    scripted_part.id
                    if scripted_part.id is not None
                    else self._call_id(turn, request_number, position)
                )
                return {"functionCall": {**call, "id": call_id} if call_id else call}
            case Builtin(value=value):
                return dict(value)
            case _:
                return {}

    def _call_id(self, turn: Turn, request_number: int, position: int) -> str:
        match turn.ids:
            case "minted":
                return _mint_id(self.host, request_number, position)[:8]
            case "restart":
                return f"call_{position}"
            case _:
                return ""

    def _encode_deltas(self, turn: Turn, request: Json, request_number: int) -> Iterator[Json]:
        """Yield the wire parts of a stream. Text is sent in pieces, followed by an empty part with the signature."""
        settings = replace(self.settings, model=request["model"])
        for part, made in self._encode_parts(turn, request, request_number):
            if not isinstance(part, Say | Think):
                yield made
                continue
            mark = {"thought": True} if isinstance(part, Think) else {}
            yield from ({"text": piece, **mark} for piece in _split_text(part.text, turn.fragment))
            if "thoughtSignature" in made:
                yield {"text": "", "thoughtSignature": sign({"text": ""}, settings)}


def _mint_id(host: str, request_number: int, position: int) -> str:
    return hashlib.sha256(f"{host}/{request_number}/{position}".encode()).hexdigest()[:20]


def _split_text(text: str, size: int) -> Iterator[str]:
    return (text[at : at + size] for at in range(0, len(text), size))


def _signed_part(turn: Turn) -> object:
    """Return the part that the model signs, or None.

    The model signs the first call. In an answer with thinking but without calls, it signs the last text.
    """
    if turn.calls:
        return turn.calls[0]
    thought = any(isinstance(part, Think | Redacted) for part in turn.parts)
    texts = [part for part in turn.parts if isinstance(part, Say)]
    return texts[-1] if thought and texts else None


def _arguments_object(call: Call) -> Json:
    if call.raw is None:
        return dict(call.arguments)
    try:
        value = parse(call.raw.encode())
    except ValueError:
        return {}
    return value if is_object(value) else {}


def _stop_reason(turn: Turn) -> str:
    return turn.stop or "STOP"


def _error_details(refusal: ServerRefusal) -> list[Json]:
    if refusal.status == 429:
        per = "Day" if "PerDay" in (refusal.code or "") else "Minute"
        quota = {"quotaId": f"GenerateRequestsPer{per}PerProjectPerModel", "quotaValue": "20"}
        return [
            {"@type": _ERROR + "QuotaFailure", "violations": [quota]},
            {"@type": _ERROR + "RetryInfo", "retryDelay": "31s"},
        ]
    if refusal.param is None:
        return []
    violation = {"field": refusal.param, "description": refusal.message}
    return [{"@type": _ERROR + "BadRequest", "fieldViolations": [violation]}]


def _encode_event(response: Json) -> bytes:
    return b"data: " + dump(response) + b"\r\n\r\n"
