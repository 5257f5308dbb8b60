"""Define the file format: its tables, their version, and the numbers in `meta`.

No table except the directory has an additional index. A row is found by its key or is missing, and a missing row
differs from one that never existed: `meta` has the numbers of sessions created and of rows removed, and a row has the
number of its log's records and the place of the last one.
"""

from pathlib import Path
from sqlite3 import Connection
from zlib import crc32

from actors.errors import JournalDamaged, JournalError
from actors.journal.storage.clock import ObservedClock, clock_of, clock_values

APPLICATION = 0x61637472
"""Marks a file as one of ours (`PRAGMA application_id`)."""
VERSION = 1

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE host (name TEXT PRIMARY KEY, until REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE session (
    name TEXT PRIMARY KEY, key INTEGER NOT NULL, fence INTEGER NOT NULL, owner TEXT, last INTEGER NOT NULL,
    size INTEGER NOT NULL, tenant TEXT NOT NULL, target TEXT NOT NULL, state TEXT NOT NULL,
    opened REAL NOT NULL, used REAL NOT NULL, checksum INTEGER NOT NULL, place INTEGER NOT NULL,
    bucket INTEGER NOT NULL, lifecycle TEXT NOT NULL, title TEXT NOT NULL, folded TEXT NOT NULL, metadata TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX session_used ON session (bucket);
CREATE INDEX session_tenant ON session (tenant, bucket, lifecycle);
CREATE INDEX session_lifecycle ON session (lifecycle, bucket);
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
"""`place` is a record's in the order of writing, `before` that of the one before it in its log; a session has that
of its last one (`records.py`). `waypoint` has the places of some records of each log. `blob_count` counts the sessions
whose records refer to a blob, apart from it: a row
that changes is written anew. `blob_use` says which sessions these are."""


def prepare(connection: Connection, path: Path) -> None:
    """Create the tables of a new file. Called in a transaction.

    Raises:
        JournalError: The file is another program's database, or a newer version wrote it.
    """
    version, application = _pragma(connection, "user_version"), _pragma(connection, "application_id")
    if not version and not application and not _tables(connection):
        for statement in SCHEMA.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
    elif application != APPLICATION:
        raise JournalError(f"{path}: not a journal, but another program's database; name another file")
    else:
        check_version(connection, str(path))


def check_version(connection: Connection, path: str) -> None:
    """Check that no newer program has migrated the file, even while it was open here.

    Raises:
        JournalError: A newer program has.
    """
    if (version := _pragma(connection, "user_version")) > VERSION:
        raise JournalError(
            f"{path}: format version {version} is newer than this program's, {VERSION}; use the newer program"
        )


def _pragma(connection: Connection, name: str) -> int:
    (value,) = connection.execute(f"PRAGMA {name}").fetchone()
    return int(value)


def _tables(connection: Connection) -> int:
    (count,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    return int(count)


def read_meta(connection: Connection, key: str) -> int | None:
    """Return a number of `meta`: 0 if it was never set, None if it was altered."""
    row = connection.execute("SELECT value, checksum FROM meta WHERE key = ?", (key,)).fetchone()
    if row is None:
        return 0
    return int(row[0]) if _checksum(key, row[0]) == row[1] else None


def set_noted(connection: Connection, key: str, value: int) -> None:
    """Set a number of `meta`."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", (key, value, _checksum(key, value)))


def sessions_made(connection: Connection, path: str) -> int:
    """Return the number of sessions ever created in a file, which is also the last key.

    Raises:
        JournalDamaged: The number was altered.
    """
    if (count := read_meta(connection, "sessions")) is None:
        raise JournalDamaged(
            f"{path}: its number of sessions has changed; restore a copy, or see `actors sessions fsck`"
        )
    return count


def set_sessions_made(connection: Connection, value: int) -> None:
    """Set the number of sessions created."""
    set_noted(connection, "sessions", value)


def sessions_kept(connection: Connection, path: str) -> int:
    """Return the number of sessions with a row.

    Raises:
        JournalDamaged: A number was altered.
    """
    return sessions_made(connection, path) - _removals(connection, path)[0]


def removed_fence(connection: Connection, path: str) -> int:
    """Return the greatest fencing number of the removed rows; 0 if none was removed.

    Raises:
        JournalDamaged: The number was altered.
    """
    return _removals(connection, path)[1]


def note_removal(connection: Connection, path: str, fence: int) -> None:
    """Record the removal of the row of a session with this fencing number, in the same transaction, and count it.

    Raises:
        JournalDamaged: The earlier count or number is unknown.
    """
    removed, before = _removals(connection, path)
    set_noted(connection, _REMOVED, removed + 1)
    set_noted(connection, _FENCE, max(before, fence))
    deletions = read_meta(connection, DELETIONS)
    if deletions is None:  # the number is damaged
        deletions = read_meta(connection, REWRITTEN) or 0
    set_noted(connection, DELETIONS, deletions + 1)


def _removals(connection: Connection, path: str) -> tuple[int, int]:
    removed, fence = read_meta(connection, _REMOVED), read_meta(connection, _FENCE)
    if removed is None or fence is None or bool(removed) != bool(fence):
        raise JournalDamaged(
            f"{path}: its numbers of removed sessions have changed; restore a copy, or see `actors sessions fsck`"
        )
    return removed, fence


_REMOVED, _FENCE = "removed", "floor"
DELETIONS, REWRITTEN = "deletions", "rewritten"
"""How many deletions there were, and how many of them before the file was last written anew."""


def noted_clock(connection: Connection) -> ObservedClock | None:
    """Return the record of the wall clock; None if it is missing or was altered."""
    found = connection.execute(f"SELECT key, value, checksum FROM meta WHERE {_CLOCK}").fetchall()  # noqa: S608  constants
    if any(_checksum(key, value) != checksum for key, value, checksum in found):
        return None
    return clock_of({key: value for key, value, _ in found})


def note_clock(connection: Connection, clock: ObservedClock) -> None:
    """Store the record of the wall clock."""
    connection.execute(f"DELETE FROM meta WHERE {_CLOCK}")  # noqa: S608  as above
    rows = [(key, value, _checksum(key, value)) for key, value in clock_values(clock).items()]
    connection.executemany("INSERT INTO meta VALUES (?, ?, ?)", rows)


_CLOCK = "key GLOB 'clock*'"


def _checksum(key: str, value: int) -> int:
    return crc32(f"{key}={value}".encode())
