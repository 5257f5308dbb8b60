"""Check a journal's file for damage, without writing."""

import os
import sqlite3
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from actors.core.log.events import LogEvent
from actors.errors import JournalError
from actors.journal.storage import decode_records
from actors.journal.storage.damage import Damage, damage_of
from actors.journal.storage.holes import find_losses
from actors.journal.storage.rows import JournalPlace
from actors.journal.storage.sqlite.faults import translate_errors
from actors.journal.storage.sqlite.format import APPLICATION, check_version, sessions_kept
from actors.journal.storage.sqlite.records import COLUMNS, PlacedRow, records, row_of
from actors.journal.storage.sqlite.wal import check_wal_in_use

MOST = 100
"""Complaints of SQLite itself, at most."""


class JournalFile:
    """A journal's file, opened for a check. Concurrent writes are not visible.

    Args:
        path: The file.

    Raises:
        JournalError: It is not a journal, or of another version; or it cannot be opened.
    """

    sessions: int
    records: int
    blobs: int

    def __init__(self, path: Path) -> None:
        self._path, self._where = Path(os.path.realpath(path)), JournalPlace(str(path))
        if not path.is_file():
            what = "it is no file" if path.exists() else "there is no such file"
            raise JournalError(f"{path}: {what}; name a journal")
        with translate_errors(str(path)):
            self._connection = sqlite3.connect(self._address(), uri=True, isolation_level=None)
            try:
                self._begin()
            except BaseException:
                self._connection.close()
                raise
        self.sessions = self.records = self.blobs = 0
        """What was found whole."""

    def _address(self) -> str:
        """Return the address for SQLite; read-only and immutable if it has no log and no index can be created."""
        has_log = self._path.with_name(f"{self._path.name}-wal").exists()
        is_fixed = not has_log and not os.access(self._path.parent, os.W_OK, effective_ids=True)
        return f"{self._path.as_uri()}?{'immutable=1' if is_fixed else 'mode=ro'}"

    def _begin(self) -> None:
        """Start the snapshot."""
        (application,) = self._connection.execute("PRAGMA application_id").fetchone()
        if application != APPLICATION:
            raise JournalError(f"{self._path}: not a journal; name another file")
        check_version(self._connection, str(self._path))
        self._connection.execute("BEGIN")
        self._connection.execute("SELECT count(*) FROM meta").fetchone()  # starts the snapshot

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def damage(self) -> Iterator[Damage]:
        """Check everything in the file, and yield each damage."""
        for part in (
            self._write_ahead_log,
            self._pages,
            self._entries,
            self._blobs,
            self._check_surplus,
            self._waypoints,
            self._directory,
            self._orphans,
        ):
            try:
                with translate_errors(str(self._path)):
                    yield from part()
            except JournalError as error:
                yield damage_of(error)

    # Parts

    def _write_ahead_log(self) -> Iterator[Damage]:
        check_wal_in_use(self._path)
        yield from ()

    def _pages(self) -> Iterator[Damage]:
        for (said,) in self._connection.execute(f"PRAGMA integrity_check({MOST})"):
            if said != "ok":
                yield Damage(f"{self._path}: {said}")

    def _entries(self) -> Iterator[Damage]:
        entries = 0
        for (name,) in self._connection.execute("SELECT name FROM session ORDER BY name").fetchall():
            entries += 1
            try:
                with translate_errors(str(self._path)):
                    row = self._row(name)
                    log = self._read_events(row)
                self.records += len(log)
                self.sessions += row.last > 0
                yield from find_losses(str(name), log, str(self._path))
            except JournalError as error:
                yield damage_of(error, str(name))
        if entries != (kept := sessions_kept(self._connection, str(self._path))):
            yield Damage(f"{self._path}: it keeps {kept} sessions, and {entries} have an entry")

    def _blobs(self) -> Iterator[Damage]:
        uses = "SELECT count(*) FROM blob_use WHERE hash = blob.hash"
        counted = "SELECT uses FROM blob_count WHERE hash = blob.hash"
        for digest, content, users, count in self._connection.execute(
            f"SELECT hash, CAST(bytes AS BLOB), ({uses}), ({counted}) FROM blob"  # noqa: S608  constants
        ):
            name = bytes(digest).hex()[:12]
            if sha256(content).digest() != digest:
                yield Damage(f"{self._path}: blob {name} has changed")
            elif not users or users != count:
                yield Damage(f"{self._path}: blob {name} has {users} users, and {count} are counted")
            else:
                self.blobs += 1

    def _check_surplus(self) -> Iterator[Damage]:
        counted = "SELECT session, count(*) AS found FROM record GROUP BY session"
        for name, found, last in self._connection.execute(
            f"SELECT name, found, last FROM session JOIN ({counted}) ON session = key WHERE found > last"  # noqa: S608  as above
        ):
            session = str(name)[:80]
            what = f"it has {found} records, and its log has {last}"
            yield Damage(f"{self._path}: session {session!r}: {what}", session)

    def _waypoints(self) -> Iterator[Damage]:
        (count,) = self._connection.execute(
            "SELECT count(*) FROM waypoint AS w LEFT JOIN record AS r ON r.place = w.place "
            "WHERE r.session IS NOT w.session OR r.number IS NOT w.number"
        ).fetchone()
        if count:
            yield Damage(f"{self._path}: {count} waypoints lead to no record")

    def _directory(self) -> Iterator[Damage]:
        for (name,) in self._connection.execute(
            "SELECT name FROM session WHERE bucket IS NOT CASE WHEN last > 0 THEN CAST(used / 64 AS INTEGER) "
            "ELSE -1 END OR lifecycle IS NOT CASE WHEN state IN ('awaiting', 'closed') THEN state ELSE 'open' END"
        ):
            session = str(name)[:80]
            yield Damage(
                f"{self._path}: session {session!r}: it is not where the directory lists it", session
            )

    def _orphans(self) -> Iterator[Damage]:
        for table in ("record", "blob_use"):
            (count,) = self._connection.execute(
                f"SELECT count(*) FROM {table} WHERE session NOT IN (SELECT key FROM session)"  # noqa: S608  as above
            ).fetchone()
            if count:
                yield Damage(f"{self._path}: {count} rows of {table} belong to no session")

    # Reading

    def _row(self, name: str) -> PlacedRow:
        query = f"SELECT {COLUMNS} FROM session WHERE name = ?"  # noqa: S608  as above
        return row_of(self._connection.execute(query, (name,)).fetchone(), self._where)

    def _read_events(self, row: PlacedRow) -> list[LogEvent]:
        """Return a session's verified events."""
        return decode_records(row.name, records(self._connection, row, 0, self._where))
