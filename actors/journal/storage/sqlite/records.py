"""Store records in the order in which they are written, each with a link to the previous record of its log.

The place of a record is its position in this order. A session's row has the place of its last record, and a log is read
backwards from there. So a commit with events of many sessions writes few pages, and no index of all records is needed.

A waypoint is the stored place of a record within a log. To read a page in the middle of a log, the search starts at the
nearest waypoint after the page. A missing or wrong waypoint only makes the search longer.

Places are not covered by checksums. Instead, each record is verified: it must belong to the session, have the expected
number, and match its checksum. The number decreases with every step, so circular links are detected as damage, and a
search takes at most as many steps as the log has records.

To list sessions, an index finds the sessions of a tenant or of a state, ordered by the bucket of their last use
(`BUCKET` seconds). Sessions of one bucket are then sorted. So the cost of a page depends on its length, not on the
number of sessions. Titles and metadata are not indexed, so a filter for them examines the sessions one by one until the
page is full.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from sqlite3 import Connection
from typing import Any, TypeAlias
from zlib import crc32

from msgspec import msgpack
from msgspec.structs import astuple

from actors.journal.storage.directory import (
    NO_BUCKET,
    Page,
    SessionFilter,
    StoredSession,
    indexed_state,
    usage_bucket,
)
from actors.journal.storage.rows import COLUMNS as FIELDS
from actors.journal.storage.rows import JournalLocation, SessionRow, record_checksum, row_damage

RecordRow: TypeAlias = tuple[int, int, int, int, int, bytes]
"""A row of the table `record`: the place of the record, the place of the previous record of its log, the session's key,
the number, the checksum and the bytes of the record."""
IndexColumns: TypeAlias = tuple[str, int, str, str | None]
"""The values of the indexed columns of a row of `session`: the tenant, the bucket of the last use, the indexed state,
the owner."""
COLUMNS = f"{FIELDS}, place"
ALL_COLUMNS = f"{COLUMNS}, bucket, lifecycle"
WAYPOINT = 128
"""Interval of waypoints: the place of every 128th record of a log is stored with the record's number."""
_LOG = """
WITH RECURSIVE log (number, place) AS (
    SELECT :last, :place WHERE :last > :after
    UNION ALL
    SELECT log.number - 1, record.before FROM log CROSS JOIN record ON record.place = log.place
    WHERE record.session = :key AND record.number = log.number AND log.number > :after + 1
)
"""
"""The places of a log's records after number `after`, last record first, up to the first broken link."""
_READ = f"""{_LOG}
SELECT record.number, record.checksum, CAST(record.bytes AS BLOB) FROM log CROSS JOIN record ON record.place = log.place
WHERE record.session = :key AND record.number = log.number AND record.number <= :until
"""  # noqa: S608  inserts only constants
_WAYPOINT = "SELECT number, place FROM waypoint WHERE session = ? AND number >= ? ORDER BY number LIMIT 1"
_DELETE = f"DELETE FROM record WHERE place IN ({_LOG} SELECT place FROM log) AND session = :key"  # noqa: S608  inserts only constants


class SqliteRow(SessionRow):
    """A session's row in the SQLite file. `place` is the place of the session's last record."""

    place: int = 0

    @property
    def values(self) -> tuple[object, ...]:
        """The values of the row in the table `session`: the fields, their checksum, the place, the indexed columns."""
        *fields, place = astuple(self)
        _, bucket, lifecycle, _ = self.index_columns
        return (*fields, crc32(msgpack.encode(fields)), place, bucket, lifecycle)

    @property
    def index_columns(self) -> IndexColumns:
        """The values of the indexed columns: tenant, bucket of the last use, indexed state and owner."""
        bucket = usage_bucket(self.used) if self.last else NO_BUCKET
        return self.tenant, bucket, indexed_state(self.state), self.owner

    def append(self, stored: bytes, place: int) -> RecordRow:
        """Make a new record the last one of the log, and return its database row, which the caller must write.

        Args:
            stored: The bytes of the record.
            place: The record's place in the file.
        """
        before, self.place = self.place, place
        self.last: int = self.last + 1
        return place, before, self.key, self.last, record_checksum(self.key, self.last, stored), stored


def decode_row(values: Sequence[Any], location: JournalLocation) -> SqliteRow:
    """Decode a session's row from its columns.

    Raises:
        JournalDamaged: The row does not match its checksum.
    """
    *fields, checksum, place = values
    try:
        is_intact = crc32(msgpack.encode(fields)) == checksum
    except (TypeError, ValueError):
        is_intact = False
    if not is_intact:
        raise row_damage(str(fields[0]), location)
    row = SqliteRow(*fields)
    row.place = place
    return row


def last_place(connection: Connection) -> int:
    """Return the place of the last written record; 0 if there are no records."""
    (place,) = connection.execute("SELECT max(place) FROM record").fetchone()
    return place or 0


def read_records(
    connection: Connection, row: SqliteRow, after: int, location: JournalLocation, limit: int | None = None
) -> Iterator[bytes]:
    """Verify a session's records from number `after + 1` on, and yield them.

    `limit` is the maximum number of records. None means all records.

    Raises:
        JournalDamaged: A record is missing or corrupt.
    """
    until = row.last if limit is None else min(row.last, after + limit)
    found = _stored_rows(connection, row, after, until)
    if len(found) < until - after:
        number = until - len(found)
        raise row.record_damage(location, number, f"record {number} is missing")
    return row.verified_records(reversed(found), after, partial(read_blob, connection), location, until)


def _stored_rows(connection: Connection, row: SqliteRow, after: int, until: int) -> list[Sequence[Any]]:
    """Return the rows of the records from number `after + 1` to `until`, last record first.

    If a link to a previous record is broken, the result lacks all earlier records.
    """
    parameters = _log_parameters(row, after)
    if until < row.last:
        waypoint = connection.execute(_WAYPOINT, (row.key, until)).fetchone()
        if waypoint is not None:
            last, place = waypoint
            found = connection.execute(
                _READ, {**parameters, "last": last, "place": place, "until": until}
            ).fetchall()
            if len(found) == until - after:
                return found
    return connection.execute(_READ, {**parameters, "until": until}).fetchall()


def waypoints(written: Iterable[RecordRow]) -> list[tuple[int, int, int]]:
    """Return waypoints for newly written records: the session key, number and place of every 128th record of a log."""
    return [(session, number, place) for place, _, session, number, *_ in written if not number % WAYPOINT]


def read_blob(connection: Connection, digest: bytes) -> bytes | None:
    """Return the blob with this hash; None if it is missing."""
    found = connection.execute("SELECT CAST(bytes AS BLOB) FROM blob WHERE hash = ?", (digest,)).fetchone()
    return None if found is None else found[0]


def delete_records(connection: Connection, row: SqliteRow) -> None:
    """Delete a session's records by following the links of its log. If a link is broken, search all records instead."""
    if connection.execute(_DELETE, _log_parameters(row, 0)).rowcount != row.last:
        connection.execute("DELETE FROM record WHERE session = ?", (row.key,))
    connection.execute("DELETE FROM waypoint WHERE session = ?", (row.key,))


def _log_parameters(row: SqliteRow, after: int) -> dict[str, int]:
    """Return the SQL parameters for reading a session's log backwards to record `after + 1`."""
    return {"key": row.key, "last": row.last, "place": row.place, "after": after}


def list_sessions(
    connection: Connection,
    session_filter: SessionFilter,
    limit: int,
    after: Page | None,
    location: JournalLocation,
) -> list[StoredSession]:
    """Return the sessions that have a log; see `Storage.sessions`."""
    parameters: dict[str, object] = {
        "tenant": session_filter.tenant,
        "state": session_filter.state,
        "limit": limit,
    }
    if session_filter.state is not None:
        parameters["lifecycle"] = indexed_state(session_filter.state)
    parameters |= {
        "title": session_filter.lowercase_title,
        **{f"entry{n}": entry for n, entry in enumerate(session_filter.entries)},
    }
    if after is not None:
        parameters |= {"used": -after[0], "name": after[1], "bucket": usage_bucket(-after[0])}
    found = connection.execute(query(session_filter, after), parameters)
    return [decode_row(values, location).stored_session for values in found]


def query(session_filter: SessionFilter, after: Page | None) -> str:
    """Return the SQL statement that lists the sessions that match a filter."""
    index, conditions = "session_used", ["bucket >= 0"]
    if session_filter.state is not None:
        index = "session_lifecycle"
        conditions += ["lifecycle = :lifecycle", "state = :state"]
    if session_filter.tenant is not None:
        index = "session_tenant"
        conditions.append("tenant = :tenant")
    if after is not None:
        conditions += ["bucket <= :bucket", "(used < :used OR (used = :used AND name > :name))"]
    if session_filter.title:
        conditions.append("instr(folded, :title)")
    conditions += [f"instr(metadata, :entry{number})" for number in range(len(session_filter.metadata))]
    return (
        f"SELECT {COLUMNS} FROM session INDEXED BY {index} WHERE {' AND '.join(conditions)} "  # noqa: S608  inserts only constants
        "ORDER BY bucket DESC, used DESC, name LIMIT :limit"
    )
