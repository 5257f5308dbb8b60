"""Keys of arguments under the names that a provider knows them by.

Some hosts refuse a tool whose properties have other keys than they like (ANT-57). Such a key goes out under a made
one, and comes back under it in the model's calls. The tool, the ledger and every other provider see the tool's own
keys. All else in the arguments keeps the bytes that the model wrote, so a call goes back as it came.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

from actors.core.data.jsonio import Json, JsonRefused, quote, unquote
from actors.core.values.identity import content_name

PLAIN_KEYS = r"[a-zA-Z0-9_.-]{1,64}"
"""What a key must match in full to be accepted by every host that is known (ANT-57)."""
_STRINGS = re.compile(rb'("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?', re.DOTALL)
"""Each string of a JSON text, with the colon behind those that are keys."""


@lru_cache(maxsize=4096)
def property_key(key: str, pattern: str, probe: int = 0) -> str:
    """Return `key` if it matches the pattern in full, else a key made from it that does.

    A made key depends on the key alone, so it is the same in every process; distinct keys have distinct ones. `probe`
    counts the made keys that something else had already.
    """
    if re.fullmatch(pattern, key):
        return key
    stem = re.sub(r"[^a-zA-Z0-9_-]", "_", key)[:40].strip("-_") or "key"
    return f"{stem}_{content_name(f'{key}#{probe}' if probe else key)[:10]}"


def with_keys(text: Json, names: Mapping[str, str]) -> Json:
    """Return a JSON text with the keys that `names` has under their new names, and every other byte as it was."""

    def rename_key(found: re.Match[bytes]) -> bytes:
        colon: bytes | None = found[2]
        key = None if colon is None else _unquote(found[1])
        name = None if key is None else names.get(key)
        return found[0] if colon is None or name is None else quote(name) + colon

    return Json(_STRINGS.sub(rename_key, text)) if names else text


def _unquote(literal: bytes) -> str | None:
    try:
        return unquote(Json(literal))
    except JsonRefused:  # half a surrogate pair: no key that a schema names
        return None
