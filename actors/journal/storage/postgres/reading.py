"""Read records of a log together with their large values, in a single snapshot, and cache the rows of claimed sessions.

A page without large values is read by one statement: hosts read pages one after the other, so with 2 ms between a host
and its server, twenty concurrent resumes waited for the round trips of their reads only. Other reads are transactions.

An append need not read the row of a session that the storage has claimed. The cached row is valid as long as its
fencing number is current, because another host must raise the number before it changes the row.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from actors.journal.storage import PAGE_BYTES, Entry
from actors.journal.storage.postgres import statements as sql
from actors.journal.storage.postgres.batch import decode_row
from actors.journal.storage.postgres.connection import Connection
from actors.journal.storage.rows import JournalLocation, SessionRow, referenced_blobs

StoredRecord: TypeAlias = tuple[Any, ...]  # Any: number, checksum and bytes, as psycopg returns them
CACHED = 16_384
"""Maximum number of cached rows."""


def stored_records(
    connection: Connection, place: JournalLocation, session: str, after: int, most: int | None = None
) -> tuple[SessionRow, Iterator[bytes]] | None:
    """Return a session's row and its records after number `after`. Return None for an unknown session.

    `most` is the maximum number of records. The result may contain fewer, but at least one, because a page is also
    limited in bytes. None means all records.
    """
    if most is not None and (page := _small_page(connection, session, after, most)) is not None:
        values, there = page
        return (
            _verified_page(values, place, there, _first_page(connection, there), after, most, {})
            if values
            else None
        )
    with connection.transaction(), connection.pipeline():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        of_row = connection.execute(sql.ROWS, ([session],))
        of_records = connection.execute(sql.RECORDS, (session, after, most), binary=True)
        values, there = of_row.fetchone(), of_records.fetchall()
        found = there if most is None else _first_page(connection, there)
        blobs = _referenced_values(connection, found)
    if values is None:
        return None
    return _verified_page(values, place, there, found, after, most, blobs)


def _verified_page(
    values: Sequence[Any],
    place: JournalLocation,
    there: Sequence[StoredRecord],
    found: Sequence[StoredRecord],
    after: int,
    most: int | None,
    blobs: Mapping[bytes, bytes],
) -> tuple[SessionRow, Iterator[bytes]]:
    """Return a session's row, and its records, which are verified while they are read. `stored_records` describes both.

    Args:
        values: The columns of the row.
        place: The name of the storage.
        there: The records that were read.
        found: The first of them, which fit into the page.
        after: The number before that of the first record.
        most: The maximum number of records; None for all.
        blobs: The large values, by hash.
    """
    row = decode_row(values, place)
    until = row.last if most is None else min(row.last, after + most)
    if len(found) < len(there):
        until = found[-1][0]
    return row, row.verified_records(found, after, blobs.get, place, until)


def _small_page(
    connection: Connection, session: str, after: int, most: int
) -> tuple[Sequence[Any] | None, Sequence[StoredRecord]] | None:
    """Return the columns of a session's row (None for an unknown session) and its records; None if they refer to large
    values.
    """
    row = connection.execute(sql.PAGE, (after, most, session), binary=True).fetchone()
    if row is None:
        return None, []
    *values, numbers, checksums, records = row
    if any(map(referenced_blobs, records or ())):
        return None
    return values, [*zip(numbers or (), checksums or (), records or (), strict=True)]


def _referenced_values(connection: Connection, stored_rows: Iterable[Sequence[Any]]) -> dict[bytes, bytes]:
    """Return the large values to which the records in `stored_rows` refer, by hash."""
    hashes = {digest for _, _, stored in stored_rows for digest in referenced_blobs(stored)}
    if not hashes:
        return {}
    return dict[bytes, bytes](connection.execute(sql.BLOBS, (list(hashes),), binary=True).fetchall())


def _first_page(connection: Connection, stored_rows: Sequence[StoredRecord]) -> Sequence[StoredRecord]:
    """Return the first rows, as many as fit into a page together with their large values, but at least one."""
    referred = [referenced_blobs(stored) for _, _, stored in stored_rows]
    sizes = dict[bytes, int]()
    if hashes := {digest for digests in referred for digest in digests}:
        sizes.update(connection.execute(sql.BLOB_SIZES, (list(hashes),), binary=True).fetchall())
    size = 0
    for number, (record, digests) in enumerate(zip(stored_rows, referred, strict=True), 1):
        size += len(record[2]) + sum(sizes.get(digest, 0) for digest in digests)
        if size >= PAGE_BYTES:
            return stored_rows[:number]
    return stored_rows


class RowCache:
    """A cache of the rows of claimed sessions, by session id. When the cache is full, it drops the oldest row."""

    def __init__(self, place: JournalLocation) -> None:
        self._place = place
        self._rows: dict[str, SessionRow] = {}

    def get(self, session: str) -> SessionRow | None:
        """Return the cached row of a session, or None."""
        return self._rows.get(session)

    def add(self, row: SessionRow) -> None:
        """Cache a row, and drop the oldest row if the cache is full."""
        self._rows.pop(row.name, None)
        self._rows[row.name] = row
        if len(self._rows) > CACHED:
            del self._rows[next(iter(self._rows))]

    def drop(self, session: str) -> None:
        """Drop the row of a session, if it is cached."""
        self._rows.pop(session, None)

    def clear(self) -> None:
        """Drop all rows."""
        self._rows.clear()

    def current_rows(self, connection: Connection, entries: Iterable[Entry]) -> dict[str, SessionRow]:
        """Return the row of each entry's session, from the cache or the database.

        A cached row is used only if it has the entry's fencing number, and the entry begins at the end of the log in
        the row, or continues an earlier entry. Otherwise, the row is read again: if the entry begins before that end,
        its writer knows of a loss of events. If it begins behind that end, another host has written to the log.
        """
        rows = dict[str, SessionRow]()
        unknown = list[str]()
        for entry in entries:
            row = self._rows.get(entry.session)
            if row is not None and row.fence == entry.fence and _begins_at_end(entry, row, rows):
                rows[entry.session] = row
            else:
                unknown.append(entry.session)
        if unknown:
            for values in connection.execute(sql.ROWS, (unknown,)):
                row = decode_row(values, self._place)
                rows[row.name] = row
        return rows


def _begins_at_end(entry: Entry, row: SessionRow, rows: Mapping[str, SessionRow]) -> bool:
    """Return True if an entry continues the log as of a cached row. `rows` are the rows of the earlier entries."""
    if entry.after is None or entry.after == row.last:
        return True
    return entry.session in rows and entry.after > row.last
