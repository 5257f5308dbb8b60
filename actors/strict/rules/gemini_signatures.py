"""Google's generateContent: stand-in thought signatures, and what is refused about them.

Theory of operation. A signature carries the model, the account, the route (Gemini API or Vertex AI) and a digest of
the call it was made for, under an HMAC. So the server keeps no state: it opens a signature that comes back and
compares. A signature on another call than its own does not open, whatever moved it there. One that was made for a
text is bound to no words: clients merge the pieces of a stream, and the signature comes on an empty piece behind them.

The first call of a model content must have a signature, its own or a sentinel. The strict mode demands it of
every content and takes a sentinel nowhere else; the official host looks at the current turn only.
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
    """Return the signature of a part that the host of these settings makes."""
    payload = dump(_bound(part, settings))
    return b64encode(_mac(payload, settings) + payload).decode()


def continuation(request: Json, settings: GeminiSettings) -> str:
    """Return the token of an answer that was paused: bound to what was asked, and to the token before it."""
    asked = [request.get("contents"), request.get("continuationToken")]
    payload = hashlib.sha256(dump(asked[:1])).digest() + hashlib.sha256(dump(asked)).digest()
    return b64encode(_mac(payload, settings) + payload).decode()


def is_continuation(request: Json, settings: GeminiSettings) -> bool:
    """Say whether a request has a token that was made for what it asks."""
    raw = decode_base64(request["continuationToken"]) or b""
    mac, payload = raw[:-64], raw[-64:]
    is_own = hmac.compare_digest(mac, _mac(payload, settings))
    return is_own and payload[:32] == hashlib.sha256(dump([request.get("contents")])).digest()


def check(turns: Mapping[int, Json], mode: Mode, profile: GeminiProfile, settings: GeminiSettings) -> None:
    """Check the signatures of contents, by their places, whose shape and sequence are right.

    Raises:
        Refused: At the first rule that is broken.
    """
    current = 0 if mode == "strict" else _current_turn(turns)
    for at, content in turns.items():
        first = next((part for part in content["parts"] if "functionCall" in part), None)
        if first is not None and profile.signatures and at >= current and not first.get("thoughtSignature"):
            raise RULES["GEM-04"].refuse(name=first["functionCall"]["name"], position=at + 1)
        for part in content["parts"]:
            signature = part.get("thoughtSignature")
            if signature and not _stands(signature, part, part is first, mode, settings):
                raise RULES["GEM-05-vertex" if settings.vertex else "GEM-05"].refuse()


def _current_turn(turns: Mapping[int, Json]) -> int:
    """Return where the current turn begins: after the last words of the user."""
    begun = 0
    for at, content in turns.items():
        if content.get("role", "user") == "user" and any("text" in part for part in content["parts"]):
            begun = at
    return begun


def _stands(signature: str, part: Json, first: bool, mode: Mode, settings: GeminiSettings) -> bool:
    if signature in SENTINELS:
        return first or mode != "strict"
    if settings.signatures == "trust":
        return True
    raw = decode_base64(signature) or b""
    mac, payload = raw[:32], raw[32:]
    if not hmac.compare_digest(mac, _mac(payload, settings)):
        return False
    return bool(json.loads(payload) == _bound(part, settings))


def _bound(part: Json, settings: GeminiSettings) -> Json:
    """Return what a signature binds. Names are left out: a name the model invented is sent back in a legal form."""
    held = part["functionCall"].get("args") if "functionCall" in part else None
    route = "vertex" if settings.vertex else "api"
    digest = hashlib.sha256(dump(["functionCall" in part, held])).hexdigest()[:16]
    return [settings.model, settings.account, route, digest]


def _mac(payload: bytes, settings: GeminiSettings) -> bytes:
    return hmac.new(settings.secret, payload, hashlib.sha256).digest()
