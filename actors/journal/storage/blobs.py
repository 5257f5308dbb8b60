"""Large values of a record, kept once: any text or bytes of `LARGE` and more is replaced by its SHA-256.

It is a walk over the record's msgpack, whatever the record says. What a record comes to when its blobs are put back is
compared on writing; a record that would not be the same is kept as it is.
"""

from collections.abc import Callable
from hashlib import sha256
from typing import Any

from msgspec import MsgspecError, msgpack

LARGE = 16 * 1024
"""Bytes from which a value is kept as a blob."""

_TEXT, _BYTES = 1, 2
"""Codes of the msgpack extensions that stand for a text and for bytes."""
EXT = b"\xc7\x20"
"""Begins a msgpack extension of 32 bytes, as a blob's reference is. It may also stand elsewhere."""


def slim(record: bytes) -> tuple[bytes, dict[bytes, bytes]]:
    """Return a record without its large values, and these by their hash."""
    blobs: dict[bytes, bytes] = {}
    stored = msgpack.encode(_without(msgpack.decode(record), blobs))
    if not blobs or whole(stored, blobs.__getitem__) != record:
        return record, {}
    return stored, blobs


def whole(stored: bytes, blob: Callable[[bytes], bytes]) -> bytes:
    """Return a record with its large values, each given by `blob`; one that refers to none is as it was stored."""
    put_back: list[int] = []

    def content(code: int, data: memoryview) -> object:
        put_back.append(code)
        value = blob(bytes(data))
        return value.decode() if code == _TEXT else value

    try:
        record = msgpack.decode(stored, ext_hook=content)
    except MsgspecError:
        return stored
    return msgpack.encode(record) if put_back else stored


def references(stored: bytes) -> list[bytes]:
    """Return the hashes of the blobs that a stored record refers to."""
    found: list[bytes] = []

    def note(digest: bytes) -> bytes:
        found.append(digest)
        return b""

    if EXT in stored:
        whole(stored, note)
    return found


def _without(value: Any, blobs: dict[bytes, bytes]) -> Any:  # Any: what msgpack can say
    if isinstance(value, str) and len(value) * 4 >= LARGE:
        content = value.encode()
        return value if len(content) < LARGE else _kept(_TEXT, content, blobs)
    if isinstance(value, bytes) and len(value) >= LARGE:
        return _kept(_BYTES, value, blobs)
    if isinstance(value, list):
        return [_without(item, blobs) for item in value]
    if isinstance(value, dict):
        return {key: _without(item, blobs) for key, item in value.items()}
    return value


def _kept(code: int, content: bytes, blobs: dict[bytes, bytes]) -> msgpack.Ext:
    digest = sha256(content).digest()
    blobs[digest] = content
    return msgpack.Ext(code, digest)
