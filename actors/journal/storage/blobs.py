"""Store large values of records once: any string or bytes of at least `LARGE` bytes is replaced by its SHA-256.

This works on the msgpack structure of a record, independent of its meaning. On writing, the restored record is
compared with the original; if they differ, the record is stored unchanged.
"""

from collections.abc import Callable
from hashlib import sha256
from typing import Any, TypeAlias

from msgspec import MsgspecError, msgpack

_Packed: TypeAlias = "list[_Packed] | dict[Any, _Packed] | str | bytes | float | bool | None"
"""What a record is, as msgpack. Any: the key of a field."""

LARGE = 16 * 1024
"""Bytes from which a value is kept as a blob."""

_TEXT, _BYTES = 1, 2
"""Codes of the msgpack extensions that stand for a text and for bytes."""
EXT = b"\xc7\x20"
"""Begins a msgpack extension of 32 bytes, as a blob's reference is. It may also stand elsewhere."""


def extract_blobs(record: bytes) -> tuple[bytes, dict[bytes, bytes]]:
    """Return a record without its large values, and these values by their hash."""
    blobs: dict[bytes, bytes] = {}
    stored = msgpack.encode(_extract_values(msgpack.decode(record), blobs))
    if not blobs or restore_blobs(stored, blobs.__getitem__) != record:
        return record, {}
    return stored, blobs


def restore_blobs(stored: bytes, blob: Callable[[bytes], bytes]) -> bytes:
    """Return a record with its large values, each returned by `blob`; a record without references is unchanged."""
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
        restore_blobs(stored, note)
    return found


def _extract_values(
    value: _Packed, blobs: dict[bytes, bytes]
) -> Any:  # Any: an ExtType in place of what is large
    if isinstance(value, str) and len(value) * 4 >= LARGE:
        content = value.encode()
        return value if len(content) < LARGE else _extract(_TEXT, content, blobs)
    if isinstance(value, bytes) and len(value) >= LARGE:
        return _extract(_BYTES, value, blobs)
    if isinstance(value, list):
        return [_extract_values(item, blobs) for item in value]
    if isinstance(value, dict):
        return {key: _extract_values(item, blobs) for key, item in value.items()}
    return value


def _extract(code: int, content: bytes, blobs: dict[bytes, bytes]) -> msgpack.Ext:
    digest = sha256(content).digest()
    blobs[digest] = content
    return msgpack.Ext(code, digest)
