"""Collect the data of one append: the row of each session before and after the append, its records, and their blobs."""

from collections.abc import Iterator, Sequence
from typing import TypeAlias
from zlib import crc32

from msgspec import Struct, msgpack
from msgspec.structs import replace

from actors.core.log.events import LogEvent
from actors.errors import Fenced, JournalBehind
from actors.journal.storage import Entry
from actors.journal.storage.rows import (
    LARGE,
    JournalLocation,
    SessionRow,
    extract_blobs,
    record_checksum,
    row_damage,
)

Refusal: TypeAlias = Fenced | JournalBehind
SessionEnd: TypeAlias = tuple[int, int, str | None]
"""A session's fencing number, the number of its last event, and its owner."""


class _Change(Struct):
    before: SessionRow
    after: SessionRow


class Batch:
    """Appends to several sessions, which one statement writes. Each session is written completely or not at all.

    Args:
        now: The time of the append, in seconds since 1970.
        host: The name of the writing host.
    """

    def __init__(self, now: float, host: str) -> None:
        self._now, self._host = now, host
        self._changes: dict[int, _Change] = {}
        self._records: list[tuple[int, int, int, bytes]] = []
        self._blobs: dict[tuple[int, bytes], bytes] = {}

    def add_events(self, row: SessionRow, events: Sequence[LogEvent], records: Sequence[bytes]) -> int:
        """Add events of a session. Return the number of the last event.

        Args:
            row: The session's row before the batch.
            events: The events.
            records: The encoded events.
        """
        change = self._changes.get(row.key)
        if change is None:
            change = self._changes[row.key] = _Change(row, replace(row))
        after = change.after
        after.apply_events(events, self._now)
        for record in records:
            after.last += 1
            after.size += len(record)
            stored = record if len(record) < LARGE else self._extract_blobs(row.key, record)
            self._records.append((row.key, after.last, record_checksum(row.key, after.last, stored), stored))
        return after.last

    def _extract_blobs(self, key: int, record: bytes) -> bytes:
        stored, blobs = extract_blobs(record)
        for digest, content in blobs.items():
            self._blobs[key, digest] = content
        return stored

    def __bool__(self) -> bool:
        return bool(self._changes)

    def last_number(self, row: SessionRow) -> int:
        """Return the number of the last event that a session's log will have after the batch."""
        change = self._changes.get(row.key)
        return row.last if change is None else change.after.last

    @property
    def changes(self) -> Iterator[tuple[SessionRow, SessionRow]]:
        """The row of each session before and after the append."""
        for change in self._changes.values():
            yield change.before, change.after

    @property
    def has_blobs(self) -> bool:
        """True if the records contain large values, which are stored separately."""
        return bool(self._blobs)

    @property
    def changes_labels(self) -> bool:
        """True if the title or the metadata of a session changes, which is the case when a session is opened."""
        return any(change.before.labels != change.after.labels for change in self._changes.values())

    @property
    def parameters(self) -> list[object]:
        """The parameters of the statement `append`."""
        rows = [
            (
                change.after.key,
                change.after.fence,
                change.before.last,
                *_log_summary(change.after),
                *_changed_labels(change.after, change.before),
                row_checksum(change.after),
                change.after.owner is None,
                row_checksum(change.before),
            )
            for change in self._changes.values()
        ]
        given: list[object] = [*_columns(rows), self._host, *_columns(self._records)]
        if self._blobs:
            keys, digests = _columns(list(self._blobs))
            given += [keys, digests, list(self._blobs.values()), digests, keys]
        return given

    @property
    def revert_parameters(self) -> list[list[object]]:
        """The parameters of the statement `TAKE_BACK`, which reverts the batch."""
        return _columns(
            [
                (
                    change.before.key,
                    change.before.fence,
                    change.after.last,
                    *_log_summary(change.before),
                    *_changed_labels(change.before, change.after),
                    row_checksum(change.before),
                    change.before.owner,
                )
                for change in self._changes.values()
            ]
        )


def _log_summary(row: SessionRow) -> tuple[object, ...]:
    return row.last, row.size, row.tenant, row.target, row.state, row.opened, row.used


def _changed_labels(row: SessionRow, before: SessionRow) -> tuple[str | None, ...]:
    """Return the labels of a row if they differ from the labels of `before`. Otherwise return None for each label, so
    that the statement need not send them.
    """
    return row.labels if row.labels != before.labels else (None,) * len(row.labels)


def _columns(rows: Sequence[tuple[object, ...]]) -> list[list[object]]:
    """Transpose rows into columns, since each column is one array parameter of a statement."""
    return [list(column) for column in zip(*rows, strict=True)]


def row_checksum(row: SessionRow) -> int:
    """Return the checksum of a row. It covers every field except the fencing number and the owner."""
    return crc32(msgpack.encode((row.name, row.key, *_log_summary(row), *row.labels)))


def decode_row(values: Sequence[object], location: JournalLocation) -> SessionRow:
    """Decode a session's row from its columns.

    Raises:
        JournalDamaged: The row does not match its checksum.
    """
    *fields, found = values
    row = SessionRow(*fields)  # type: ignore[arg-type]  # the columns have the types of the fields
    if row_checksum(row) != found:
        raise row_damage(row.name, location)
    return row


def refusal(entry: Entry, row: SessionRow | None, batch: Batch) -> Refusal | None:
    """Return the error for an entry that must not be written, or None if the entry may be written."""
    return entry.missing_error() if row is None else entry.refusal(row.fence, batch.last_number(row))


def rejection(entry: Entry, row: SessionRow, end: SessionEnd | None) -> Refusal:
    """Return the error for an entry that the statement did not write.

    Args:
        entry: The entry.
        row: The session's row as this host knows it.
        end: The state of the session in the database; None if the session is missing.
    """
    if end is None:
        return entry.missing_error()
    fence, last, owner = end
    if fence != entry.fence:
        return entry.fenced_error(fence)
    if owner == row.owner and last < row.last:
        return entry.behind_error(last, row.last)
    # A failover lost this host's claim, and another host's claim has the same fencing number now.
    return entry.unclaimed_error()
