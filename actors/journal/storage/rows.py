"""Define how durable storages save a session's row and records, with checksums that detect damage.

Each checksum covers a value together with its position, so that a valid value at a wrong position is detected too.

A large value is a string or byte string of at least `LARGE` bytes. A reference to its SHA-256 hash replaces it in the
records, so that each value is stored separately and only once. The replacement works for any msgpack record. Before a
record with references is written, the original is restored from it as a test. If the restored record differs from the
original, the original is stored.

If a storage lost acknowledged events and new events were then appended, the event numbers have no gap. The loss is
still visible in the events: an `EventsLost` event records it, or a turn number does not follow the previous turn
number.
"""

import os
import secrets
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from struct import Struct as Layout
from typing import Any, NamedTuple, TypeAlias
from zlib import crc32

from msgspec import MsgspecError, Struct, msgpack

from actors.core.log.events import Closed, EventsLost, LogEvent, TurnStarted
from actors.core.settings.labels import metadata_of
from actors.errors import JournalDamaged, JournalError, SessionLeased
from actors.journal.storage import Claim
from actors.journal.storage.directory import State, StoredSession, Summary

LARGE = 16 * 1024
"""Minimum size in bytes of a value that is stored as a blob."""
_TEXT, _BYTES = 1, 2
"""Codes of the two msgpack extensions that refer to blobs: one for strings, and one for byte strings."""
EXT = b"\xc7\x20"
"""The first bytes of a reference to a blob: a msgpack extension of 32 bytes. Other data may contain these bytes as
well.
"""


class JournalLocation(NamedTuple):
    """A storage's name and advice for repairing damage, for error messages."""

    name: str
    remedy: str = "restore a copy, or see `actors sessions fsck`"


FindBlob: TypeAlias = Callable[[bytes], bytes | None]
"""A function that returns the blob with a given hash, or None if there is no such blob."""

_PLACE = Layout("<qq")
COLUMNS = "name, key, fence, owner, last, size, tenant, target, state, opened, used, title, folded, metadata, checksum"


class SessionRow(Struct):
    """The row that a storage saves for each session.

    `key` is the session's number in the storage and is never reused.
    """

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
    title: str = ""
    folded: str = ""
    metadata: str = ""

    def claim(self, previous_owner: str | None) -> Claim:
        """Return the current owner's claim of the session. `previous_owner` is the owner before the claim."""
        taken_from = previous_owner if previous_owner and previous_owner != self.owner else ""
        return Claim(self.fence, self.last, taken_from)

    @property
    def stored_session(self) -> StoredSession:
        """The data about the session that the storage returns to callers."""
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
            self.title,
            metadata_of(self.metadata),
        )

    @property
    def labels(self) -> tuple[str, str, str]:
        """The title, the folded title and the encoded metadata, which the program set when it opened the session."""
        return self.title, self.folded, self.metadata

    def apply_events(self, events: Iterable[LogEvent], now: float) -> None:
        """Update the row for `events`, which are written at the time `now`, in seconds since 1970."""
        summary = Summary(self.tenant, self.target, self.state, *self.labels)
        if summary.apply_events(events):
            self.tenant, self.target, self.state = summary.tenant, summary.target, summary.state
            self.title, self.folded, self.metadata = summary.title, summary.folded, summary.metadata
            if any(type(event) is Closed for event in events):
                self.owner = None
        if not self.last:
            self.opened = now
        self.used = now

    def verified_records(
        self,
        found: Iterable[Sequence[Any]],
        after: int,
        find_blob: FindBlob,
        location: JournalLocation,
        until: int | None = None,
    ) -> Iterator[bytes]:
        """Verify the records from number `after + 1` on, and yield them.

        Args:
            found: The stored rows of the records, oldest first, each with number, checksum and bytes.
            after: The number of the record before the first one.
            find_blob: Returns the blob with a given hash, or None if the blob is missing.
            location: The storage, for error messages.
            until: Number of the last record to yield; by default, the end of the log.

        Raises:
            JournalDamaged: A record is missing or corrupt.
        """
        expected, until = after + 1, self.last if until is None else until
        for number, checksum, stored in found:
            if number != expected or expected > until:
                raise self.record_damage(location, expected, f"record {expected} is missing")
            if not self.is_intact_record(number, checksum, stored):
                raise self.record_damage(location, number, f"record {number} is corrupt")
            yield self._restore_blobs(stored, number, find_blob, location) if EXT in stored else stored
            expected += 1
        if expected <= until:
            raise self.record_damage(location, expected, f"record {expected} is missing")

    def is_intact_record(self, number: int, checksum: int, stored: bytes | None) -> bool:
        """Return True if `checksum` proves that `stored` is record `number` of this session."""
        return stored is not None and record_checksum(self.key, number, stored) == checksum

    def _restore_blobs(
        self, stored: bytes, number: int, find_blob: FindBlob, location: JournalLocation
    ) -> bytes:
        def blob(digest: bytes) -> bytes:
            content = find_blob(digest)
            if content is None:
                raise self.record_damage(
                    location, number, f"record {number} refers to a blob that is missing"
                )
            if sha256(content).digest() != digest:
                raise self.record_damage(
                    location, number, f"record {number} refers to a blob that is corrupt"
                )
            return content

        return restore_blobs(stored, blob)

    def record_damage(self, location: JournalLocation, number: int, description: str) -> JournalDamaged:
        """Return the error for a damaged record. `description` is the damage, such as "record 3 is missing"."""
        return JournalDamaged(
            f"{location.name}: session {self.name!r}, {description}; {location.remedy}",
            session=self.name,
            number=number,
        )

    def leased_error(self, seconds: float, address: str) -> SessionLeased:
        """Return the error for a claim by a host that does not own the session.

        Args:
            seconds: The remaining time of the owner's lease.
            address: The owner's address; empty if unknown.
        """
        host = self.owner or ""
        place = f"host {host} at {address}" if address else f"host {host}"
        return SessionLeased(
            f"Session {self.name!r} belongs to {place}, whose lease lasts {seconds:.1f} s more; use the session "
            "in that process, or end the process",
            host=host,
            seconds=seconds,
            address=address,
        )


def row_damage(name: str, location: JournalLocation) -> JournalDamaged:
    """Return the error for the session `name`, whose row has a wrong checksum."""
    name = name[:80]
    return JournalDamaged(
        f"{location.name}: session {name!r}: the entry in the directory is corrupt; {location.remedy}",
        session=name,
    )


def record_checksum(key: int, number: int, stored: bytes) -> int:
    """Return the checksum of a record, which covers its session, its number and its bytes."""
    return crc32(stored, crc32(_PLACE.pack(key, number)))


_Packed: TypeAlias = "list[_Packed] | dict[Any, _Packed] | str | bytes | float | bool | None"
"""A decoded msgpack value. Any: a map may have keys of any type."""


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


class Damage(Struct, frozen=True):
    """One damaged item of a journal.

    Args:
        what: A description in one line, with the location of the item.
        session: The session's id; empty if unknown.
        number: The number of the corrupt or missing record; 0 for other items.
    """

    what: str
    session: str = ""
    number: int = 0


def damage_from_error(error: JournalError, session: str = "") -> Damage:
    """Return the damage that an error reports. The advice at the end of the error message is omitted."""
    what = str(error)
    for hint in ("; restore a copy, or see `actors sessions fsck`", "; restore a backup"):
        what = what.removesuffix(hint)
    return Damage(what, session, getattr(error, "number", 0))


def find_losses(session: str, log: Sequence[LogEvent], where: str) -> Iterator[Damage]:
    """Yield the losses in a session's log, in order. `where` is the storage's name, for the descriptions."""
    turn: int | None = None
    for number, event in enumerate(log, 1):
        if isinstance(event, EventsLost):
            lost = f"events {event.first} to {event.last} were acknowledged and are lost"
            yield Damage(f"{where}: session {session!r}, record {number}: {lost}", session, number)
        elif isinstance(event, TurnStarted):
            if turn is not None and event.turn not in (turn, turn + 1):
                missing = f"turn {event.turn} follows turn {turn}; the events between these turns are lost"
                yield Damage(f"{where}: session {session!r}, record {number}: {missing}", session, number)
            turn = event.turn


def host_name() -> str:
    """Return a unique name that contains the machine's name, the process id and a random number."""
    return f"{socket.gethostname()[:40]}:{os.getpid()}:{secrets.token_hex(4)}"
