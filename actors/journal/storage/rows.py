"""Define a session's row and its records as durable storages store them, with the checksums that verify them.

Each checksum covers a value and its place, so that a misplaced value is detected too.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from struct import Struct as Layout
from typing import Any, NamedTuple, TypeAlias
from zlib import crc32

from msgspec import Struct

from actors.core.log.events import Closed, LogEvent
from actors.core.settings.labels import metadata_of
from actors.errors import JournalDamaged, SessionLeased
from actors.journal.storage import Claim
from actors.journal.storage.blobs import EXT, restore_blobs
from actors.journal.storage.directory import State, StoredSession, Summary


class JournalPlace(NamedTuple):
    """The location of the logs, and the advice for damage, for messages."""

    name: str
    remedy: str = "restore a copy, or see `actors sessions fsck`"


Kept: TypeAlias = Callable[[bytes], bytes | None]
"""Returns the blob of a hash, or None."""

_PLACE = Layout("<qq")
COLUMNS = "name, key, fence, owner, last, size, tenant, target, state, opened, used, title, folded, metadata, checksum"


class SessionRow(Struct):
    """A session's row, stored with its records. `key` is its number in the storage, which is never reused."""

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

    def claim(self, before: str | None) -> Claim:
        """Return the claim of the session's owner; `before` is the previous owner."""
        return Claim(self.fence, self.last, before if before and before != self.owner else "")

    @property
    def stored_session(self) -> StoredSession:
        """The session's entry in the directory."""
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
        """The labels that the program set when it opened the session."""
        return self.title, self.folded, self.metadata

    def take(self, events: Iterable[LogEvent], now: float) -> None:
        """Update the directory's data with written events."""
        summary = Summary(self.tenant, self.target, self.state, *self.labels)
        if summary.take(events):
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
        kept: Kept,
        where: JournalPlace,
        until: int | None = None,
    ) -> Iterator[bytes]:
        """Yield the records numbered above `after`, after verifying them.

        Args:
            found: The stored rows, oldest first: number, checksum, bytes.
            after: The number before that of the first record.
            kept: Returns a blob by its hash, or None.
            where: The storage, for error messages.
            until: Number of the last record to yield; by default, the end of the log.

        Raises:
            JournalDamaged: A record is missing or was altered.
        """
        expected, until = after + 1, self.last if until is None else until
        for number, checksum, stored in found:
            if number != expected or expected > until:
                raise self.record_damage(where, expected, "is missing")
            if not self.is_right(number, checksum, stored):
                raise self.record_damage(where, number, "has changed")
            yield self._restore_blobs(stored, number, kept, where) if EXT in stored else stored
            expected += 1
        if expected <= until:
            raise self.record_damage(where, expected, "is missing")

    def is_right(self, number: int, checksum: int, stored: bytes | None) -> bool:
        """Return True if these bytes are the unaltered record of this session and number."""
        return stored is not None and record_checksum(self.key, number, stored) == checksum

    def _restore_blobs(self, stored: bytes, number: int, kept: Kept, where: JournalPlace) -> bytes:
        def blob(digest: bytes) -> bytes:
            content = kept(digest)
            if content is None:
                raise self.record_damage(where, number, "refers to a blob that is missing")
            if sha256(content).digest() != digest:
                raise self.record_damage(where, number, "refers to a blob that has changed")
            return content

        return restore_blobs(stored, blob)

    def record_damage(self, where: JournalPlace, number: int, what: str) -> JournalDamaged:
        """Return the error about a record."""
        return JournalDamaged(
            f"{where.name}: session {self.name!r}, record {number} {what}; {where.remedy}",
            session=self.name,
            number=number,
        )

    def leased_error(self, seconds: float) -> SessionLeased:
        """Return the error for a claim by another host, with the remaining seconds of the owner's lease."""
        host = self.owner or ""
        return SessionLeased(
            f"Session {self.name!r} belongs to host {host}, whose lease lasts {seconds:.1f} s more; ask there, "
            "or end that process",
            host=host,
            seconds=seconds,
        )


def row_damage(name: str, where: JournalPlace) -> JournalDamaged:
    """Return the error about a session's row."""
    name = name[:80]
    return JournalDamaged(
        f"{where.name}: session {name!r}: its entry has changed; {where.remedy}",
        session=name,
    )


def record_checksum(key: int, number: int, stored: bytes) -> int:
    """Return the checksum of a record: over its session, its number and its bytes."""
    return crc32(stored, crc32(_PLACE.pack(key, number)))
