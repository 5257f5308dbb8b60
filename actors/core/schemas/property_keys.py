"""Rename property keys that a provider does not accept, and restore them in calls.

Some hosts reject a tool whose property keys do not match their pattern (ANT-57). In requests, these keys are replaced
by generated keys, which are translated back in the model's calls. The tool, the ledger and every other provider see the
original keys. All other bytes of the arguments stay as the model wrote them, so a call is sent back unchanged.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

from actors.core.data.jsonio import Json, JsonRefused, quote, unquote
from actors.core.values.identity import content_digest

PLAIN_KEYS = r"[a-zA-Z0-9_.-]{1,64}"
"""A regular expression for keys that every known host accepts (ANT-57)."""
_STRINGS = re.compile(rb'("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?', re.DOTALL)
"""Matches a string in a JSON text, together with the colon after it if the string is a key."""


@lru_cache(maxsize=4096)
def property_key(key: str, pattern: str, probe: int = 0) -> str:
    """Return `key` if it matches the pattern, else a generated key that matches.

    The generated key depends only on the arguments, so it is the same in every process, and distinct keys get distinct
    generated keys. `probe` is the number of earlier attempts whose result was already in use.
    """
    if re.fullmatch(pattern, key):
        return key
    stem = re.sub(r"[^a-zA-Z0-9_-]", "_", key)[:40].strip("-_") or "key"
    return f"{stem}_{content_digest(f'{key}#{probe}' if probe else key)[:10]}"


def rename_keys(text: Json, names: Mapping[str, str]) -> Json:
    """Return a JSON text with its keys renamed as in `names` (old key to new key), and all other bytes unchanged."""

    def rename_key(match: re.Match[bytes]) -> bytes:
        colon: bytes | None = match[2]
        key = None if colon is None else _unquote(match[1])
        name = None if key is None else names.get(key)
        return match[0] if colon is None or name is None else quote(name) + colon

    return Json(_STRINGS.sub(rename_key, text)) if names else text


def _unquote(literal: bytes) -> str | None:
    try:
        return unquote(Json(literal))
    except JsonRefused:  # the key has a lone surrogate, so it is not a key of the schema
        return None
