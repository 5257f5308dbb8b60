"""Replace large values in the records of a log with hashes, so that each value is stored separately and only once.

A large value is a string or byte string of at least `LARGE` bytes. A reference to its SHA-256 hash replaces it. The
functions work on any msgpack record. Before a record is written, its restored form is compared with the original. If
they differ, the record is stored unchanged.
"""

from collections.abc import Callable
from hashlib import sha256
from typing import Any, TypeAlias

from msgspec import MsgspecError, msgpack

_Packed: TypeAlias = "list[_Packed] | dict[Any, _Packed] | str | bytes | float | bool | None"
"""A decoded msgpack value. Any: a map may have keys of any type."""

LARGE = 16 * 1024
"""Minimum size in bytes of a value that is stored as a blob."""

_TEXT, _BYTES = 1, 2
"""Codes of the two msgpack extensions that refer to blobs: one for strings, and one for byte strings."""
EXT = b"\xc7\x20"
"""The first bytes of a reference to a blob: a msgpack extension of 32 bytes. Other data may contain these bytes as
well.
"""


def extract_blobs(record: bytes) -> tuple[bytes, dict[bytes, bytes]]:
    """Return the record with references in place of large values, and a dict of the large values by hash."""
    blobs: dict[bytes, bytes] = {}
    stored = msgpack.encode(_extract_values(msgpack.decode(record), blobs))
    if not blobs or restore_blobs(stored, blobs.__getitem__) != record:
        return record, {}
    return stored, blobs


def restore_blobs(stored: bytes, blob: Callable[[bytes], bytes]) -> bytes:
    """Return the original record, with large values in place of the references. `blob` returns the value for a hash.

    A record without references is returned unchanged.
    """
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


def referenced_blobs(stored: bytes) -> list[bytes]:
    """Return the hashes of all blobs that a stored record refers to."""
    found: list[bytes] = []

    def collect_digest(digest: bytes) -> bytes:
        found.append(digest)
        return b""

    if EXT in stored:
        restore_blobs(stored, collect_digest)
    return found


# Any: msgpack values have no common type.
def _extract_values(value: _Packed, blobs: dict[bytes, bytes]) -> Any:
    if isinstance(value, str) and len(value) * 4 >= LARGE:
        content = value.encode()
        return value if len(content) < LARGE else _extract_value(_TEXT, content, blobs)
    if isinstance(value, bytes) and len(value) >= LARGE:
        return _extract_value(_BYTES, value, blobs)
    if isinstance(value, list):
        return [_extract_values(item, blobs) for item in value]
    if isinstance(value, dict):
        return {key: _extract_values(item, blobs) for key, item in value.items()}
    return value


def _extract_value(code: int, content: bytes, blobs: dict[bytes, bytes]) -> msgpack.Ext:
    digest = sha256(content).digest()
    blobs[digest] = content
    return msgpack.Ext(code, digest)
