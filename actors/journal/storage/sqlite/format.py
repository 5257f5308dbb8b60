"""The file's format: its tables, and how a file of an older version is brought up to date.

No table but the directory has an index beside its own tree. What is looked up is found by its key or is missing, and
what is missing can be told from what was never there: `meta` has how many sessions were begun and how many rows of them
were removed, and a row says how many records its log has, and where the last one is.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from sqlite3 import Connection
from zlib import crc32

from actors.errors import JournalDamaged, JournalError, JournalUnavailable
from actors.journal.storage.clock import ObservedClock, clock_of, clock_values
from actors.journal.storage.rows import JournalPlace
from actors.journal.storage.sqlite.hosts import living
from actors.journal.storage.sqlite.records import COLUMNS, row_of

APPLICATION = 0x61637472
"""Marks a file as one of ours (`PRAGMA application_id`)."""
VERSION = 3

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE host (name TEXT PRIMARY KEY, until REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE session (
    name TEXT PRIMARY KEY, key INTEGER NOT NULL, fence INTEGER NOT NULL, owner TEXT, last INTEGER NOT NULL,
    size INTEGER NOT NULL, tenant TEXT NOT NULL, target TEXT NOT NULL, state TEXT NOT NULL,
    opened REAL NOT NULL, used REAL NOT NULL, checksum INTEGER NOT NULL, place INTEGER NOT NULL,
    bucket INTEGER NOT NULL DEFAULT -1, lifecycle TEXT NOT NULL DEFAULT 'open',
    title TEXT NOT NULL DEFAULT '', folded TEXT NOT NULL DEFAULT '', metadata TEXT NOT NULL DEFAULT ''
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

Migration = Callable[[Connection], None]


def _ordered(connection: Connection) -> None:
    """Version 1 kept records by session and number. A checksum says of each what it said before.

    No place has a default: an older program that has the file open must fail to write a row without one.
    """
    for statement in (
        "ALTER TABLE record RENAME TO record_1",
        "CREATE TABLE record (place INTEGER PRIMARY KEY, before INTEGER NOT NULL, session INTEGER NOT NULL, "
        "number INTEGER NOT NULL, checksum INTEGER NOT NULL, bytes BLOB NOT NULL)",
        "INSERT INTO record SELECT row_number() OVER log, row_number() OVER log - 1, session, number, checksum, bytes "
        "FROM record_1 WINDOW log AS (ORDER BY session, number)",
        "DROP TABLE record_1",
        "ALTER TABLE session RENAME TO session_1",
        "CREATE TABLE session (name TEXT PRIMARY KEY, key INTEGER NOT NULL, fence INTEGER NOT NULL, owner TEXT, "
        "last INTEGER NOT NULL, size INTEGER NOT NULL, tenant TEXT NOT NULL, target TEXT NOT NULL, "
        "state TEXT NOT NULL, opened REAL NOT NULL, used REAL NOT NULL, checksum INTEGER NOT NULL, "
        "place INTEGER NOT NULL) WITHOUT ROWID",
        "INSERT INTO session SELECT session_1.*, coalesce(last_place, 0) FROM session_1 LEFT JOIN "
        "(SELECT session AS its_key, max(place) AS last_place FROM record GROUP BY session) ON key = its_key",
        "DROP TABLE session_1",
    ):
        connection.execute(statement)


def _with_shortcuts(connection: Connection) -> None:
    """Version 2 had no waypoints, directory indexes, titles or metadata, and kept the rows of deleted sessions."""
    for statement in (
        "CREATE TABLE waypoint (session INTEGER, number INTEGER, place INTEGER NOT NULL, "
        "PRIMARY KEY (session, number)) WITHOUT ROWID",
        "INSERT OR IGNORE INTO waypoint SELECT session, number, place FROM record WHERE number % 128 = 0",
        "ALTER TABLE session ADD COLUMN bucket INTEGER NOT NULL DEFAULT -1",
        "ALTER TABLE session ADD COLUMN lifecycle TEXT NOT NULL DEFAULT 'open'",
        "ALTER TABLE session ADD COLUMN title TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE session ADD COLUMN folded TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE session ADD COLUMN metadata TEXT NOT NULL DEFAULT ''",
        "UPDATE session SET bucket = CAST(used / 64 AS INTEGER) WHERE last > 0",
        "UPDATE session SET lifecycle = state WHERE state IN ('awaiting', 'closed')",
        "CREATE INDEX session_used ON session (bucket)",
        "CREATE INDEX session_tenant ON session (tenant, bucket, lifecycle)",
        "CREATE INDEX session_lifecycle ON session (lifecycle, bucket)",
    ):
        connection.execute(statement)
    _without_deleted(connection)


def _without_deleted(connection: Connection) -> None:
    """Remove the rows of deleted sessions, but those that are damaged: they are for `actors sessions fsck`."""
    found = connection.execute(f"SELECT {COLUMNS} FROM session WHERE last = 0 AND owner IS NULL").fetchall()  # noqa: S608  constants
    for values in found:
        with suppress(JournalDamaged):
            row = row_of(values, JournalPlace(""))
            connection.execute("DELETE FROM session WHERE name = ?", (row.name,))
            note_removal(connection, "", row.fence)


MIGRATIONS: Mapping[int, Migration] = {1: _ordered, 2: _with_shortcuts}
"""From each older version to the next. One is added with every new version, and none is ever changed."""


def prepare(connection: Connection, path: Path) -> bool:
    """Make the tables of a new file, or bring an older one up to date. Called in a transaction.

    Returns:
        Whether there was an older one.

    Raises:
        JournalError: It is some other database, or a newer version wrote it.
        JournalUnavailable: It is older, and a host has it open.
    """
    version, application = _pragma(connection, "user_version"), _pragma(connection, "application_id")
    if not version and not application and not _tables(connection):
        for statement in SCHEMA.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
    elif application != APPLICATION:
        raise JournalError(f"{path}: not a journal, but another program's database; name another file")
    elif version < VERSION:
        if living(connection, path):
            raise JournalUnavailable(
                f"{path}: format version {version}, and a program that writes that has it open; end it, "
                "and this one brings the file up to date"
            )
        for older in range(version, VERSION):
            MIGRATIONS[older](connection)
    else:
        check_version(connection, str(path))
    if version != VERSION:
        connection.execute(f"PRAGMA user_version = {VERSION}")
    return 0 < version < VERSION


def check_version(connection: Connection, path: str) -> None:
    """Check that no newer program has brought the file up to date, also while it was open here.

    Raises:
        JournalError: One has.
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


def noted(connection: Connection, key: str) -> int | None:
    """Return a number of `meta`: 0 if it was never set, None if it has changed."""
    row = connection.execute("SELECT value, checksum FROM meta WHERE key = ?", (key,)).fetchone()
    if row is None:
        return 0
    return int(row[0]) if _checksum(key, row[0]) == row[1] else None


def set_noted(connection: Connection, key: str, value: int) -> None:
    """Set a number of `meta`."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", (key, value, _checksum(key, value)))


def sessions_made(connection: Connection, path: str) -> int:
    """Return how many sessions were ever begun in a file, which is also the last key.

    Raises:
        JournalDamaged: The number has changed.
    """
    if (count := noted(connection, "sessions")) is None:
        raise JournalDamaged(
            f"{path}: its number of sessions has changed; restore a copy, or see `actors sessions fsck`"
        )
    return count


def set_sessions_made(connection: Connection, value: int) -> None:
    """Say how many sessions were begun."""
    set_noted(connection, "sessions", value)


def sessions_kept(connection: Connection, path: str) -> int:
    """Return how many sessions have a row.

    Raises:
        JournalDamaged: A number has changed.
    """
    return sessions_made(connection, path) - _removals(connection, path)[0]


def removed_fence(connection: Connection, path: str) -> int:
    """Return the greatest fencing number of the rows that were removed; 0 if none was.

    Raises:
        JournalDamaged: It has changed.
    """
    return _removals(connection, path)[1]


def note_removal(connection: Connection, path: str, fence: int) -> None:
    """Say that the row of a session with this fencing number is removed, in the same transaction; count the deletion.

    Raises:
        JournalDamaged: It is not known how many were, or with which number.
    """
    removed, before = _removals(connection, path)
    set_noted(connection, _REMOVED, removed + 1)
    set_noted(connection, _FENCE, max(before, fence))
    deletions = noted(connection, DELETIONS)
    if deletions is None:  # the note is damaged
        deletions = noted(connection, REWRITTEN) or 0
    set_noted(connection, DELETIONS, deletions + 1)


def _removals(connection: Connection, path: str) -> tuple[int, int]:
    removed, fence = noted(connection, _REMOVED), noted(connection, _FENCE)
    if removed is None or fence is None or bool(removed) != bool(fence):
        raise JournalDamaged(
            f"{path}: its numbers of removed sessions have changed; restore a copy, or see `actors sessions fsck`"
        )
    return removed, fence


_REMOVED, _FENCE = "removed", "floor"
DELETIONS, REWRITTEN = "deletions", "rewritten"
"""How many deletions there were, and how many of them before the file was last written anew."""


def noted_clock(connection: Connection) -> ObservedClock | None:
    """Return what was noted of the wall clock, if it was noted and is unchanged."""
    found = connection.execute(f"SELECT key, value, checksum FROM meta WHERE {_CLOCK}").fetchall()  # noqa: S608  constants
    if any(_checksum(key, value) != checksum for key, value, checksum in found):
        return None
    return clock_of({key: value for key, value, _ in found})


def note_clock(connection: Connection, clock: ObservedClock) -> None:
    """Note it."""
    connection.execute(f"DELETE FROM meta WHERE {_CLOCK}")  # noqa: S608  as above
    rows = [(key, value, _checksum(key, value)) for key, value in clock_values(clock).items()]
    connection.executemany("INSERT INTO meta VALUES (?, ?, ?)", rows)


_CLOCK = "key GLOB 'clock*'"


def _checksum(key: str, value: int) -> int:
    return crc32(f"{key}={value}".encode())
