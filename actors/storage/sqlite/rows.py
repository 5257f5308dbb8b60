"""A session's row and the checksums: each covers a value and its place, so that one put elsewhere is found too."""

from struct import Struct as Layout
from zlib import crc32

from msgspec import Struct, msgpack
from msgspec.structs import astuple

from actors.errors import JournalDamaged
from actors.storage import Claim
from actors.storage.directory import State, StoredSession

_PLACE = Layout("<qq")
COLUMNS = "name, key, fence, owner, last, size, tenant, target, state, opened, used, checksum"


class SessionRow(Struct):
    """What is kept of a session beside its records. `key` is its number in the file; no other session gets it."""

    name: str
    key: int
    fence: int = 0
    owner: str | None = None
    last: int = 0
    size: int = 0
    tenant: str = ""
    target: str = ""
    state: State = "idle"
    opened: float = 0.0
    used: float = 0.0

    @property
    def values(self) -> tuple[object, ...]:
        """What is written: the fields, and their checksum."""
        fields = astuple(self)
        return (*fields, crc32(msgpack.encode(fields)))

    @property
    def claim(self) -> Claim:
        return Claim(self.fence, self.last)

    @property
    def stored(self) -> StoredSession:
        """What the directory shows."""
        return StoredSession(
            self.name,
            self.tenant,
            self.target,
            self.last,
            self.size,
            self.opened,
            self.used,
            self.owner,
            self.state,
        )


def row_of(values: tuple[object, ...], path: str) -> SessionRow:
    """Return the row of these columns.

    Raises:
        JournalDamaged: Its checksum is another.
    """
    *fields, checksum = values
    try:
        is_whole = crc32(msgpack.encode(tuple(fields))) == checksum
    except (TypeError, ValueError):
        is_whole = False
    if not is_whole:
        name = str(fields[0])[:80]
        raise JournalDamaged(
            f"{path}: session {name!r}: its entry has changed; restore it from a copy", session=name
        )
    return SessionRow(*fields)  # type: ignore[arg-type]  # its checksum says that these are what was written


def record_checksum(key: int, number: int, stored: bytes) -> int:
    """Return the checksum of a record: over its session, its number and its bytes."""
    return crc32(stored, crc32(_PLACE.pack(key, number)))


def meta_checksum(key: str, value: int) -> int:
    """Return the checksum of a number in `meta`."""
    return crc32(f"{key}={value}".encode())
