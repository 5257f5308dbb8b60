"""Check a journal's file for damage without changing it."""

import os
import sqlite3
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from actors.core.log.events import LogEvent
from actors.errors import JournalError
from actors.journal.storage import decode_records
from actors.journal.storage.rows import Damage, JournalLocation, damage_from_error, find_losses
from actors.journal.storage.sqlite.faults import translate_errors
from actors.journal.storage.sqlite.format import APPLICATION, check_version, expected_session_count
from actors.journal.storage.sqlite.records import COLUMNS, SqliteRow, decode_row, read_records
from actors.journal.storage.sqlite.wal import check_wal_in_use

MAX_PROBLEMS = 100
"""Maximum number of problems that SQLite's integrity check reports."""


class JournalFile:
    """A snapshot of a journal's file, opened for a check. Writes by other processes in the meantime are not visible.

    Args:
        path: The journal file.

    Raises:
        JournalError: The file cannot be opened, is not a journal, or has the format of a newer version.
    """

    sessions: int
    records: int
    blobs: int

    def __init__(self, path: Path) -> None:
        self._path, self._where = Path(os.path.realpath(path)), JournalLocation(str(path))
        if not path.is_file():
            what = "it is not a file" if path.exists() else "there is no such file"
            raise JournalError(f"{path}: {what}; pass the path of a journal")
        with translate_errors(str(path)):
            self._connection = sqlite3.connect(self._address(), uri=True, isolation_level=None)
            try:
                self._start_snapshot()
            except BaseException:
                self._connection.close()
                raise
        self.sessions = self.records = self.blobs = 0
        """Numbers of intact logs, records and blobs."""

    def _address(self) -> str:
        """Return the URI with which SQLite opens the file for reading.

        To read a file, SQLite usually creates an index of the write-ahead log next to it. If this is not possible and
        the file has no such log, SQLite opens the file as immutable.
        """
        has_log = self._path.with_name(f"{self._path.name}-wal").exists()
        is_fixed = not has_log and not os.access(self._path.parent, os.W_OK, effective_ids=True)
        return f"{self._path.as_uri()}?{'immutable=1' if is_fixed else 'mode=ro'}"

    def _start_snapshot(self) -> None:
        """Start the snapshot after checking that the file is a journal."""
        (application,) = self._connection.execute("PRAGMA application_id").fetchone()
        if application != APPLICATION:
            raise JournalError(f"{self._path}: it is not a journal; pass the path of a journal")
        check_version(self._connection, str(self._path))
        self._connection.execute("BEGIN")
        # SQLite starts the snapshot only at the first read.
        self._connection.execute("SELECT count(*) FROM meta").fetchone()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def damage(self) -> Iterator[Damage]:
        """Check the complete file and yield each damaged item."""
        for part in (
            self._check_write_ahead_log,
            self._check_pages,
            self._check_logs,
            self._check_blobs,
            self._check_extra_records,
            self._check_waypoints,
            self._check_directory,
            self._check_orphans,
        ):
            try:
                with translate_errors(str(self._path)):
                    yield from part()
            except JournalError as error:
                yield damage_from_error(error)

    # One method per kind of damage

    def _check_write_ahead_log(self) -> Iterator[Damage]:
        check_wal_in_use(self._path)
        yield from ()

    def _check_pages(self) -> Iterator[Damage]:
        """Yield the problems that the integrity check of SQLite finds."""
        for (problem,) in self._connection.execute(f"PRAGMA integrity_check({MAX_PROBLEMS})"):
            if problem != "ok":
                yield Damage(f"{self._path}: {problem}")

    def _check_logs(self) -> Iterator[Damage]:
        """Yield damaged rows and records of sessions, and events that logs have lost."""
        entries = 0
        for (name,) in self._connection.execute("SELECT name FROM session ORDER BY name").fetchall():
            entries += 1
            try:
                with translate_errors(str(self._path)):
                    row = self._read_row(name)
                    log = self._read_events(row)
                self.records += len(log)
                self.sessions += row.last > 0
                yield from find_losses(str(name), log, str(self._path))
            except JournalError as error:
                yield damage_from_error(error, str(name))
        if entries != (kept := expected_session_count(self._connection, str(self._path))):
            yield Damage(f"{self._path}: the file should have {kept} sessions, but {entries} have an entry")

    def _check_blobs(self) -> Iterator[Damage]:
        """Yield blobs that are corrupt, or whose number of uses is wrong."""
        uses = "SELECT count(*) FROM blob_use WHERE hash = blob.hash"
        counted = "SELECT uses FROM blob_count WHERE hash = blob.hash"
        for digest, content, users, count in self._connection.execute(
            f"SELECT hash, CAST(bytes AS BLOB), ({uses}), ({counted}) FROM blob"  # noqa: S608  inserts only constants
        ):
            name = bytes(digest).hex()[:12]
            if sha256(content).digest() != digest:
                yield Damage(f"{self._path}: blob {name} is corrupt")
            elif not users or users != count:
                yield Damage(f"{self._path}: {users} sessions use blob {name}, but its counter is {count}")
            else:
                self.blobs += 1

    def _check_extra_records(self) -> Iterator[Damage]:
        """Yield sessions for which the file contains more records than their log should have."""
        counted = "SELECT session, count(*) AS found FROM record GROUP BY session"
        for name, found, last in self._connection.execute(
            f"SELECT name, found, last FROM session JOIN ({counted}) ON session = key WHERE found > last"  # noqa: S608  inserts only constants
        ):
            session = str(name)[:80]
            what = f"the log has {last} records, but the file contains {found} of them"
            yield Damage(f"{self._path}: session {session!r}: {what}", session)

    def _check_waypoints(self) -> Iterator[Damage]:
        """Yield damage if a waypoint, the stored place of a record, refers to a missing record."""
        (count,) = self._connection.execute(
            "SELECT count(*) FROM waypoint AS w LEFT JOIN record AS r ON r.place = w.place "
            "WHERE r.session IS NOT w.session OR r.number IS NOT w.number"
        ).fetchone()
        if count:
            yield Damage(f"{self._path}: {count} waypoints refer to missing records")

    def _check_directory(self) -> Iterator[Damage]:
        """Yield sessions whose columns `bucket` and `lifecycle` do not match their last use and their state."""
        for (name,) in self._connection.execute(
            "SELECT name FROM session WHERE bucket IS NOT CASE WHEN last > 0 THEN CAST(used / 64 AS INTEGER) "
            "ELSE -1 END OR lifecycle IS NOT CASE WHEN state IN ('awaiting', 'closed') THEN state ELSE 'open' END"
        ):
            session = str(name)[:80]
            yield Damage(
                f"{self._path}: session {session!r}: the indexes of the directory list a wrong value", session
            )

    def _check_orphans(self) -> Iterator[Damage]:
        """Yield damage if rows belong to unknown sessions."""
        for table in ("record", "blob_use"):
            (count,) = self._connection.execute(
                f"SELECT count(*) FROM {table} WHERE session NOT IN (SELECT key FROM session)"  # noqa: S608  inserts only constants
            ).fetchone()
            if count:
                yield Damage(f"{self._path}: {count} rows of {table} belong to no session")

    # Reading rows and logs

    def _read_row(self, name: str) -> SqliteRow:
        query = f"SELECT {COLUMNS} FROM session WHERE name = ?"  # noqa: S608  inserts only constants
        return decode_row(self._connection.execute(query, (name,)).fetchone(), self._where)

    def _read_events(self, row: SqliteRow) -> list[LogEvent]:
        """Return the events of a session's log after verifying its records."""
        return decode_records(row.name, read_records(self._connection, row, 0, self._where))
