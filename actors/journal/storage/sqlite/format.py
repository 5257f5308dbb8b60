"""Define the file format: its tables, their version, and the numbers in `meta`.

Only the table `session`, the directory, has additional indexes. In all other tables, rows are found by primary key. The
numbers in `meta` show how many sessions must have a row, and the row of a session shows how many records its log must
have. So a missing row is detected.
"""

from pathlib import Path
from sqlite3 import Connection
from zlib import crc32

from actors.errors import JournalDamaged, JournalError
from actors.journal.storage.clock import ObservedClock, decode_clock, encode_clock

APPLICATION = 0x61637472
"""The `PRAGMA application_id` of a journal file."""
VERSION = 1

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE host (
    name TEXT PRIMARY KEY, until REAL NOT NULL, address TEXT NOT NULL, state TEXT NOT NULL, lag REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE session (
    name TEXT PRIMARY KEY, key INTEGER NOT NULL, fence INTEGER NOT NULL, owner TEXT, last INTEGER NOT NULL,
    size INTEGER NOT NULL, tenant TEXT NOT NULL, target TEXT NOT NULL, state TEXT NOT NULL,
    opened REAL NOT NULL, used REAL NOT NULL, checksum INTEGER NOT NULL, place INTEGER NOT NULL,
    bucket INTEGER NOT NULL, lifecycle TEXT NOT NULL, title TEXT NOT NULL, folded TEXT NOT NULL, metadata TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX session_used ON session (bucket);
CREATE INDEX session_tenant ON session (tenant, bucket, lifecycle);
CREATE INDEX session_lifecycle ON session (lifecycle, bucket);
CREATE INDEX session_owner ON session (owner) WHERE owner IS NOT NULL;
CREATE TABLE record (
    place INTEGER PRIMARY KEY, before INTEGER NOT NULL, session INTEGER NOT NULL, number INTEGER NOT NULL,
    checksum INTEGER NOT NULL, bytes BLOB NOT NULL
);
CREATE TABLE waypoint (
    session INTEGER, number INTEGER, place INTEGER NOT NULL, PRIMARY KEY (session, number)
) WITHOUT ROWID;
CREATE TABLE blob (hash BLOB PRIMARY KEY, bytes BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE blob_count (hash BLOB PRIMARY KEY, uses INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE blob_use (session INTEGER, hash BLOB, PRIMARY KEY (session, hash)) WITHOUT ROWID;
"""
"""The statements that create the tables.

`record.place` numbers the records in the order in which they were written, and `record.before` is the place of the
previous record of the same log. `session.place` is the place of the session's last record (`records.py`). `waypoint`
has the places of some records of each log. `blob_use` lists the sessions that use each blob, and `blob_count` their
number. The number is not in `blob`, because SQLite would rewrite the blob with each change.
"""


def prepare(connection: Connection, path: Path) -> None:
    """Create the tables in a new file. The caller must have begun a transaction.

    Raises:
        JournalError: The file is another program's database, or a newer version wrote it.
    """
    version, application = (
        _read_pragma(connection, "user_version"),
        _read_pragma(connection, "application_id"),
    )
    if not version and not application and not _count_tables(connection):
        for statement in SCHEMA.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
    elif application != APPLICATION:
        raise JournalError(f"{path}: it is not a journal, but another program's database; use another file")
    else:
        check_version(connection, str(path))


def check_version(connection: Connection, path: str) -> None:
    """Check that no newer version of this program has migrated the file, even while the file is open here.

    Raises:
        JournalError: A newer version has migrated the file.
    """
    if (version := _read_pragma(connection, "user_version")) > VERSION:
        raise JournalError(
            f"{path}: its format {version} is newer than format {VERSION} of this program; use the newer program"
        )


def _read_pragma(connection: Connection, name: str) -> int:
    (value,) = connection.execute(f"PRAGMA {name}").fetchone()
    return int(value)


def _count_tables(connection: Connection) -> int:
    (count,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    return int(count)


def read_meta(connection: Connection, key: str) -> int | None:
    """Return the number with the key `key` in `meta`: 0 if it was never set, None if its checksum is wrong."""
    row = connection.execute("SELECT value, checksum FROM meta WHERE key = ?", (key,)).fetchone()
    if row is None:
        return 0
    return int(row[0]) if _checksum(key, row[0]) == row[1] else None


def write_meta(connection: Connection, key: str, value: int) -> None:
    """Store a number and its checksum in `meta` under the key `key`."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", (key, value, _checksum(key, value)))


def created_session_count(connection: Connection, path: str) -> int:
    """Return the number of sessions ever created in the file, which equals the highest key.

    Raises:
        JournalDamaged: The stored number is missing or corrupt.
    """
    if (count := read_meta(connection, "sessions")) is None:
        raise JournalDamaged(
            f"{path}: the count of sessions is corrupt; restore a copy, or see `actors sessions fsck`"
        )
    return count


def set_created_session_count(connection: Connection, value: int) -> None:
    """Set the number of sessions ever created in the file."""
    write_meta(connection, "sessions", value)


def expected_session_count(connection: Connection, path: str) -> int:
    """Return the number of sessions that should have a row: created sessions minus removed sessions.

    Raises:
        JournalDamaged: A stored number is missing or corrupt.
    """
    return created_session_count(connection, path) - _removed_rows(connection, path)[0]


def highest_removed_fence(connection: Connection, path: str) -> int:
    """Return the highest fencing number of all removed rows; 0 if no row was removed.

    Raises:
        JournalDamaged: The stored number is missing or corrupt.
    """
    return _removed_rows(connection, path)[1]


def record_removal(connection: Connection, path: str, fence: int) -> None:
    """Count the removal of a session's row, and store `fence` if it is the highest fencing number of all removed rows.

    Call this function in the transaction that removes the row.

    Raises:
        JournalDamaged: The stored number of removals, or their highest fencing number, is missing or corrupt.
    """
    removed, before = _removed_rows(connection, path)
    write_meta(connection, _REMOVED, removed + 1)
    write_meta(connection, _FENCE, max(before, fence))
    deletions = read_meta(connection, DELETIONS)
    # The count is corrupt, so continue from its value at the last rewrite. The file is then due for another rewrite.
    if deletions is None:
        deletions = read_meta(connection, REWRITTEN) or 0
    write_meta(connection, DELETIONS, deletions + 1)


def _removed_rows(connection: Connection, path: str) -> tuple[int, int]:
    """Return the number of removed rows and their highest fencing number."""
    removed, fence = read_meta(connection, _REMOVED), read_meta(connection, _FENCE)
    if removed is None or fence is None or bool(removed) != bool(fence):
        raise JournalDamaged(
            f"{path}: the counts of removed sessions are corrupt; restore a copy, or see `actors sessions fsck`"
        )
    return removed, fence


_REMOVED, _FENCE = "removed", "floor"
DELETIONS, REWRITTEN = "deletions", "rewritten"
"""Keys of `meta`: the number of deletions, and the number of deletions before the file was last rewritten."""


def read_clock(connection: Connection) -> ObservedClock | None:
    """Return the stored record of the wall clock; None if the record is missing or corrupt."""
    found = connection.execute(f"SELECT key, value, checksum FROM meta WHERE {_CLOCK}").fetchall()  # noqa: S608  inserts only constants
    if any(_checksum(key, value) != checksum for key, value, checksum in found):
        return None
    return decode_clock({key: value for key, value, _ in found})


def store_clock(connection: Connection, clock: ObservedClock) -> None:
    """Replace the stored record of the wall clock."""
    connection.execute(f"DELETE FROM meta WHERE {_CLOCK}")  # noqa: S608  inserts only constants
    rows = [(key, value, _checksum(key, value)) for key, value in encode_clock(clock).items()]
    connection.executemany("INSERT INTO meta VALUES (?, ?, ?)", rows)


_CLOCK = "key GLOB 'clock*'"


def _checksum(key: str, value: int) -> int:
    return crc32(f"{key}={value}".encode())
