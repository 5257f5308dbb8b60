"""Read records of a log together with their large values, in a single snapshot, and cache the rows of claimed sessions.

A page without large values is read with one statement, in one round trip. Other reads are transactions, which take five
round trips. Hosts read one page at a time, so with 2 ms between a host and its server, the duration of twenty
concurrent resumes depended on the round trips only.

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
MAX_CACHED = 16_384
"""Maximum number of cached rows."""


def stored_records(
    connection: Connection, location: JournalLocation, session: str, after: int, limit: int | None = None
) -> tuple[SessionRow, Iterator[bytes]] | None:
    """Return a session's row and its records after number `after`. Return None for an unknown session.

    `limit` is the maximum number of records. A page is also limited in bytes, so it may contain fewer records, but at
    least one. None means all records.
    """
    if limit is not None and (page := _small_page(connection, session, after, limit)) is not None:
        values, records = page
        return (
            _verified_page(values, location, records, _first_page(connection, records), after, limit, {})
            if values
            else None
        )
    with connection.transaction(), connection.pipeline():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        of_row = connection.execute(sql.ROWS, ([session],))
        of_records = connection.execute(sql.RECORDS, (session, after, limit), binary=True)
        values, records = of_row.fetchone(), of_records.fetchall()
        kept = records if limit is None else _first_page(connection, records)
        blobs = _referenced_values(connection, kept)
    if values is None:
        return None
    return _verified_page(values, location, records, kept, after, limit, blobs)


def _verified_page(
    values: Sequence[Any],
    location: JournalLocation,
    records: Sequence[StoredRecord],
    kept: Sequence[StoredRecord],
    after: int,
    limit: int | None,
    blobs: Mapping[bytes, bytes],
) -> tuple[SessionRow, Iterator[bytes]]:
    """Return the result of `stored_records`: a session's row, and an iterator that verifies each record it yields.

    Args:
        values: The columns of the row.
        location: The name of the storage, for error messages.
        records: All records that were read from the database.
        kept: The first of these records, as many as fit into the page.
        after: The number of the record before the first one.
        limit: The maximum number of records; None for all.
        blobs: The large values, by hash.
    """
    row = decode_row(values, location)
    until = row.last if limit is None else min(row.last, after + limit)
    if len(kept) < len(records):
        until = kept[-1][0]
    return row, row.verified_records(kept, after, blobs.get, location, until)


def _small_page(
    connection: Connection, session: str, after: int, limit: int
) -> tuple[Sequence[Any] | None, Sequence[StoredRecord]] | None:
    """Read a page with one statement. Return None if a record refers to a large value, which the statement omits.

    Otherwise, return the columns of the session's row (None for an unknown session) and the records.
    """
    row = connection.execute(sql.PAGE, (after, limit, session), binary=True).fetchone()
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
    """Return the first of these rows: as many as fit into a page together with their large values, but at least one."""
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

    def __init__(self, location: JournalLocation) -> None:
        self._location = location
        self._rows: dict[str, SessionRow] = {}

    def get(self, session: str) -> SessionRow | None:
        """Return the cached row of a session, or None."""
        return self._rows.get(session)

    def add(self, row: SessionRow) -> None:
        """Cache a row, and drop the oldest row if the cache is full."""
        self._rows.pop(row.name, None)
        self._rows[row.name] = row
        if len(self._rows) > MAX_CACHED:
            del self._rows[next(iter(self._rows))]

    def drop(self, session: str) -> None:
        """Drop the row of a session, if it is cached."""
        self._rows.pop(session, None)

    def clear(self) -> None:
        """Drop all rows."""
        self._rows.clear()

    def current_rows(self, connection: Connection, entries: Iterable[Entry]) -> dict[str, SessionRow]:
        """Return the row of each entry's session, from the cache or the database.

        A cached row is used only if it has the entry's fencing number, and the entry begins where the log ends
        according to the row, or continues an earlier entry. Otherwise, the row is read again. If the entry begins
        before the cached end of the log, its writer has learned that events were lost. If the entry begins after that
        end, another host has written to the log.
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
                row = decode_row(values, self._location)
                rows[row.name] = row
        return rows


def _begins_at_end(entry: Entry, row: SessionRow, rows: Mapping[str, SessionRow]) -> bool:
    """Return True if an entry continues the log that a cached row describes, or an earlier entry of the session.

    `rows` contains the rows of the sessions with earlier entries.
    """
    if entry.after is None or entry.after == row.last:
        return True
    return entry.session in rows and entry.after > row.last
