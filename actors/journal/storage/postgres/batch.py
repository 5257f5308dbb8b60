"""Collect the data of one append: each session's row before and after, its records, and their blobs."""

from collections.abc import Iterator, Sequence
from zlib import crc32

from msgspec import Struct, msgpack
from msgspec.structs import replace

from actors.core.log.events import LogEvent
from actors.journal.storage.blobs import LARGE, extract_blobs
from actors.journal.storage.rows import JournalPlace, SessionRow, record_checksum, row_damage


class _Change(Struct):
    before: SessionRow
    after: SessionRow


class Batch:
    """Appends to several sessions. Each session is written completely or not at all.

    Args:
        now: The time, in seconds since 1970.
        host: The writing host.
    """

    def __init__(self, now: float, host: str) -> None:
        self._now, self._host = now, host
        self._changes: dict[int, _Change] = {}
        self._records: list[tuple[int, int, int, bytes]] = []
        self._blobs: dict[tuple[int, bytes], bytes] = {}

    def take(self, row: SessionRow, events: Sequence[LogEvent], records: Sequence[bytes]) -> int:
        """Add events of a session, given its row before the batch; return the number of the last event."""
        change = self._changes.get(row.key)
        if change is None:
            change = self._changes[row.key] = _Change(row, replace(row))
        after = change.after
        after.take(events, self._now)
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

    def last(self, row: SessionRow) -> int:
        """Return the number of a session's last event after the batch is written."""
        change = self._changes.get(row.key)
        return row.last if change is None else change.after.last

    @property
    def changes(self) -> Iterator[tuple[SessionRow, SessionRow]]:
        """The rows of the batch's sessions, before and after."""
        for change in self._changes.values():
            yield change.before, change.after

    @property
    def has_blobs(self) -> bool:
        """True if large values are stored separately."""
        return bool(self._blobs)

    @property
    def parameters(self) -> list[object]:
        """The parameters of `APPEND`, or of `APPEND_BLOBS` with blobs."""
        rows = [
            (
                change.after.key,
                change.after.fence,
                change.before.last,
                *_of_log(change.after),
                *_labels(change.after, change.before),
                checksum(change.after),
                change.after.owner is None,
                checksum(change.before),
            )
            for change in self._changes.values()
        ]
        given: list[object] = [*_columns(rows), self._host, *_columns(self._records)]
        if self._blobs:
            keys, digests = _columns(list(self._blobs))
            given += [keys, digests, list(self._blobs.values()), digests, keys]
        return given

    @property
    def back(self) -> list[list[object]]:
        """The parameters of `TAKE_BACK`."""
        return _columns(
            [
                (
                    change.before.key,
                    change.before.fence,
                    change.after.last,
                    *_of_log(change.before),
                    *_labels(change.before, change.after),
                    checksum(change.before),
                    change.before.owner,
                )
                for change in self._changes.values()
            ]
        )


def _of_log(row: SessionRow) -> tuple[object, ...]:
    return row.last, row.size, row.tenant, row.target, row.state, row.opened, row.used


def _labels(row: SessionRow, before: SessionRow) -> tuple[str | None, ...]:
    """Return the changed labels of a row, None for unchanged ones, which are not sent with every append."""
    return row.labels if row.labels != before.labels else (None,) * len(row.labels)


def _columns(rows: Sequence[tuple[object, ...]]) -> list[list[object]]:
    return [list(column) for column in zip(*rows, strict=True)]


def checksum(row: SessionRow) -> int:
    """Return the checksum of a row, over its place and its log's summary."""
    return crc32(msgpack.encode((row.name, row.key, *_of_log(row), *row.labels)))


def row_of(values: Sequence[object], where: JournalPlace) -> SessionRow:
    """Return the row of these columns.

    Raises:
        JournalDamaged: Its checksum differs.
    """
    *fields, found = values
    row = SessionRow(*fields)  # type: ignore[arg-type]  # the types of the columns
    if checksum(row) != found:
        raise row_damage(row.name, where)
    return row
