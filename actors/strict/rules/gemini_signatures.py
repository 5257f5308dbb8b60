"""Create and check simulated thought signatures for Google's generateContent.

Theory of operation. A signature contains the model, the account, the route (Gemini API or Vertex AI) and a digest of
its call, protected by an HMAC. So the server need not store anything: when a request returns a signature, the server
compares the signed state with the request. A signature that was moved to a different call is invalid. The signature of
a text part does not depend on the text, because a stream sends it on an empty piece at the end, and clients merge the
pieces.

The first call of a model content needs a signature, which may be a placeholder. The mode `strict` requires it in every
content, and accepts no placeholder on other calls. The official host checks only the current turn.
"""

import hashlib
import hmac
import json
from base64 import b64encode
from collections.abc import Mapping

from actors.strict.rules.base import Json, Mode, dump
from actors.strict.rules.gemini_rules import RULES, SENTINELS, GeminiProfile, GeminiSettings
from actors.strict.rules.gemini_shape import decode_base64


def sign(part: Json, settings: GeminiSettings) -> str:
    """Return the signature that a host with these settings creates for a part."""
    payload = dump(_signed_data(part, settings))
    return b64encode(_hmac_of(payload, settings) + payload).decode()


def continuation_token(request: Json, settings: GeminiSettings) -> str:
    """Return the continuation token for a paused answer.

    The token is bound to the request and to the previous token.
    """
    asked = [request.get("contents"), request.get("continuationToken")]
    payload = hashlib.sha256(dump(asked[:1])).digest() + hashlib.sha256(dump(asked)).digest()
    return b64encode(_hmac_of(payload, settings) + payload).decode()


def is_continuation(request: Json, settings: GeminiSettings) -> bool:
    """Return True if the continuation token of a request is valid."""
    raw = decode_base64(request["continuationToken"]) or b""
    mac, payload = raw[:-64], raw[-64:]
    is_own = hmac.compare_digest(mac, _hmac_of(payload, settings))
    return is_own and payload[:32] == hashlib.sha256(dump([request.get("contents")])).digest()


def check(turns: Mapping[int, Json], mode: Mode, profile: GeminiProfile, settings: GeminiSettings) -> None:
    """Check the signatures of contents whose shape and sequence are valid. `turns` are the merged contents by index.

    Raises:
        RuleBroken: At the first broken rule.
    """
    current = 0 if mode == "strict" else _current_turn(turns)
    for at, content in turns.items():
        first = next((part for part in content["parts"] if "functionCall" in part), None)
        if first is not None and profile.signatures and at >= current and not first.get("thoughtSignature"):
            raise RULES["GEM-04"].refuse(name=first["functionCall"]["name"], position=at + 1)
        for part in content["parts"]:
            signature = part.get("thoughtSignature")
            if signature and not _is_valid(signature, part, part is first, mode, settings):
                raise RULES["GEM-05-vertex" if settings.vertex else "GEM-05"].refuse()


def _current_turn(turns: Mapping[int, Json]) -> int:
    """Return the index of the last user content that contains text. The current turn begins there."""
    begun = 0
    for at, content in turns.items():
        if content.get("role", "user") == "user" and any("text" in part for part in content["parts"]):
            begun = at
    return begun


def _is_valid(signature: str, part: Json, is_first: bool, mode: Mode, settings: GeminiSettings) -> bool:
    """Return True if the signature of a part is valid. `is_first` is True for the first call of a content."""
    if signature in SENTINELS:
        return is_first or mode != "strict"
    if settings.signatures == "trust":
        return True
    raw = decode_base64(signature) or b""
    mac, payload = raw[:32], raw[32:]
    if not hmac.compare_digest(mac, _hmac_of(payload, settings)):
        return False
    return bool(json.loads(payload) == _signed_data(part, settings))


def _signed_data(part: Json, settings: GeminiSettings) -> Json:
    """Return the data that a signature is bound to.

    The tool's name is not part of the data, because clients may replace an invalid name with a valid one.
    """
    held = part["functionCall"].get("args") if "functionCall" in part else None
    route = "vertex" if settings.vertex else "api"
    digest = hashlib.sha256(dump(["functionCall" in part, held])).hexdigest()[:16]
    return [settings.model, settings.account, route, digest]


def _hmac_of(payload: bytes, settings: GeminiSettings) -> bytes:
    return hmac.new(settings.secret, payload, hashlib.sha256).digest()
