"""Translate property keys that a provider does not accept.

Some hosts reject a tool with property keys outside their pattern (ANT-57). These keys are replaced by generated ones in
requests, and translated back in the model's calls. The tool, the ledger and every other provider see the original keys.
All other bytes of the arguments stay as the model wrote them, so a call is sent back unchanged.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

from actors.core.data.jsonio import Json, JsonRefused, quote, unquote
from actors.core.values.identity import content_name

PLAIN_KEYS = r"[a-zA-Z0-9_.-]{1,64}"
"""The pattern of keys that every known host accepts (ANT-57)."""
_STRINGS = re.compile(rb'("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?', re.DOTALL)
"""A string in a JSON text, with the colon after it if it is a key."""


@lru_cache(maxsize=4096)
def property_key(key: str, pattern: str, probe: int = 0) -> str:
    """Return `key` if it matches the pattern, or else a generated key that does.

    The generated key depends only on the arguments, so it is the same in every process, and distinct keys have distinct
    ones. `probe` is the number of earlier attempts whose keys were already in use.
    """
    if re.fullmatch(pattern, key):
        return key
    stem = re.sub(r"[^a-zA-Z0-9_-]", "_", key)[:40].strip("-_") or "key"
    return f"{stem}_{content_name(f'{key}#{probe}' if probe else key)[:10]}"


def with_keys(text: Json, names: Mapping[str, str]) -> Json:
    """Return a JSON text with its keys renamed by `names`, and all other bytes unchanged."""

    def rename_key(found: re.Match[bytes]) -> bytes:
        colon: bytes | None = found[2]
        key = None if colon is None else _unquote(found[1])
        name = None if key is None else names.get(key)
        return found[0] if colon is None or name is None else quote(name) + colon

    return Json(_STRINGS.sub(rename_key, text)) if names else text


def _unquote(literal: bytes) -> str | None:
    try:
        return unquote(Json(literal))
    except JsonRefused:  # a lone surrogate, which no schema contains
        return None
