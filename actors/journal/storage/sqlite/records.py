"""Store records in the order of writing, each linked to the previous record of its log.

A session's row has the place of its last record, and a log is read backwards from there. So a commit of events of
many sessions writes few pages, and no index of all records is needed. A page in the middle of a log is found by the
next later waypoint. A missing or wrong waypoint only makes the search longer.

Places are not covered by checksums. The record found there is verified: it belongs to this session, has this number,
and is unaltered. The number decreases with every step, so circular links are detected as damage, and a search takes
at most as many steps as the log has records.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from sqlite3 import Connection
from typing import Any, TypeAlias
from zlib import crc32

from msgspec import msgpack
from msgspec.structs import astuple

from actors.journal.storage.directory import NO_BUCKET, bucket_of, lifecycle_of
from actors.journal.storage.rows import COLUMNS as FIELDS
from actors.journal.storage.rows import JournalPlace, SessionRow, record_checksum, row_damage

Written: TypeAlias = tuple[int, int, int, int, int, bytes]
"""Of a record: its place, that of the one before it, its session, number and checksum, and its bytes."""
COLUMNS = f"{FIELDS}, place"
WRITTEN = f"{COLUMNS}, bucket, lifecycle"
WAYPOINT = 128
"""Every so many records of a log, the place of one is kept by its number."""
_LOG = """
WITH RECURSIVE log (number, place) AS (
    SELECT :last, :place WHERE :last > :after
    UNION ALL
    SELECT log.number - 1, record.before FROM log CROSS JOIN record ON record.place = log.place
    WHERE record.session = :key AND record.number = log.number AND log.number > :after + 1
)
"""
"""The places of a log's records past number `after`, the last one first, as far as they lead."""
_READ = f"""{_LOG}
SELECT record.number, record.checksum, CAST(record.bytes AS BLOB) FROM log CROSS JOIN record ON record.place = log.place
WHERE record.session = :key AND record.number = log.number AND record.number <= :until
"""  # noqa: S608  constants
_WAYPOINT = "SELECT number, place FROM waypoint WHERE session = ? AND number >= ? ORDER BY number LIMIT 1"
_DELETE = f"DELETE FROM record WHERE place IN ({_LOG} SELECT place FROM log) AND session = :key"  # noqa: S608  as above


class PlacedRow(SessionRow):
    """A session's row in the file. `place` is the place of its last record."""

    place: int = 0

    @property
    def values(self) -> tuple[object, ...]:
        """The values to write: the fields, their checksum, the place, and the indexed columns."""
        *fields, place = astuple(self)
        _, bucket, lifecycle = self.index_columns
        return (*fields, crc32(msgpack.encode(fields)), place, bucket, lifecycle)

    @property
    def index_columns(self) -> tuple[str, int, str]:
        """The indexed columns of the session: its tenant, its last use, and its state, coarsely."""
        bucket = bucket_of(self.used) if self.last else NO_BUCKET
        return self.tenant, bucket, lifecycle_of(self.state)

    def append(self, stored: bytes, place: int) -> Written:
        """Append a record at this place; return the values to write for it."""
        before, self.place = self.place, place
        self.last: int = self.last + 1
        return place, before, self.key, self.last, record_checksum(self.key, self.last, stored), stored


def row_of(values: Sequence[Any], where: JournalPlace) -> PlacedRow:
    """Return the row of these columns.

    Raises:
        JournalDamaged: Its checksum differs.
    """
    *fields, checksum, place = values
    try:
        is_whole = crc32(msgpack.encode(fields)) == checksum
    except (TypeError, ValueError):
        is_whole = False
    if not is_whole:
        raise row_damage(str(fields[0]), where)
    row = PlacedRow(*fields)
    row.place = place
    return row


def last_place(connection: Connection) -> int:
    """Return the place of the last written record; 0 if there is none."""
    (place,) = connection.execute("SELECT max(place) FROM record").fetchone()
    return place or 0


def records(
    connection: Connection, row: PlacedRow, after: int, where: JournalPlace, most: int | None = None
) -> Iterator[bytes]:
    """Yield a session's records after number `after`, complete and verified.

    `most`: the number of records; None for all.

    Raises:
        JournalDamaged: A record is missing or was altered.
    """
    until = row.last if most is None else min(row.last, after + most)
    found = _stored_rows(connection, row, after, until)
    if len(found) < until - after:
        raise row.record_damage(where, until - len(found), "is missing")
    return row.verified_records(reversed(found), after, partial(blob, connection), where, until)


def _stored_rows(connection: Connection, row: PlacedRow, after: int, until: int) -> list[Sequence[Any]]:
    """Return the stored rows of a log's records after number `after` up to number `until`, last first."""
    way = _walk_parameters(row, after)
    if until < row.last:
        waypoint = connection.execute(_WAYPOINT, (row.key, until)).fetchone()
        if waypoint is not None:
            last, place = waypoint
            found = connection.execute(
                _READ, {**way, "last": last, "place": place, "until": until}
            ).fetchall()
            if len(found) == until - after:
                return found
    return connection.execute(_READ, {**way, "until": until}).fetchall()


def waypoints(written: Iterable[Written]) -> list[tuple[int, int, int]]:
    """Return the waypoints among written records."""
    return [(session, number, place) for place, _, session, number, *_ in written if not number % WAYPOINT]


def blob(connection: Connection, digest: bytes) -> bytes | None:
    """Return the blob with a hash, or None."""
    found = connection.execute("SELECT CAST(bytes AS BLOB) FROM blob WHERE hash = ?", (digest,)).fetchone()
    return None if found is None else found[0]


def delete_records(connection: Connection, row: PlacedRow) -> None:
    """Delete a session's records: along the links of its log, or by a full search if that is damaged."""
    if connection.execute(_DELETE, _walk_parameters(row, 0)).rowcount != row.last:
        connection.execute("DELETE FROM record WHERE session = ?", (row.key,))
    connection.execute("DELETE FROM waypoint WHERE session = ?", (row.key,))


def _walk_parameters(row: PlacedRow, after: int) -> dict[str, int]:
    return {"key": row.key, "last": row.last, "place": row.place, "after": after}
