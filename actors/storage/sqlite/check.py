"""What is whole in a journal's file, and what is not: looked at without writing anything, and saved to a new file."""

import os
import sqlite3
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path

from msgspec.structs import replace

from actors.core.events import Event, Opened
from actors.errors import JournalError
from actors.storage import Entry, Storage, decoded
from actors.storage.damage import Damage, damage_of
from actors.storage.rows import JournalPlace, SessionRow
from actors.storage.sqlite.faults import translated
from actors.storage.sqlite.format import APPLICATION, VERSION, check_version, sessions_made
from actors.storage.sqlite.older import OLDER
from actors.storage.sqlite.records import COLUMNS, PlacedRow, blob, records, row_of
from actors.storage.sqlite.wal import check_wal_in_use

MOST = 100
"""Complaints of SQLite itself, at most."""
_BATCH = 500
_LAST = 2**63 - 1
_NUMBERED = """
SELECT session, number, place FROM record WHERE typeof(session) = 'integer' AND typeof(number) = 'integer'
"""
_PLACED = """
SELECT record.number, record.checksum, CAST(record.bytes AS BLOB)
FROM placed CROSS JOIN record ON record.place = placed.place
WHERE placed.session = ? AND placed.number <= ? ORDER BY placed.number
"""


class JournalFile:
    """A journal's file, to be looked at. Others may use it meanwhile; what they write then is not seen.

    Args:
        path: The file.

    Raises:
        JournalError: It is no journal, or of another version; or it cannot be opened at all.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._where = Path(os.path.realpath(path)), JournalPlace(str(path))
        if not path.is_file():
            what = "it is no file" if path.exists() else "there is no such file"
            raise JournalError(f"{path}: {what}; name a journal")
        with translated(str(path)):
            self._connection = sqlite3.connect(self._address(), uri=True, isolation_level=None)
            try:
                self._begin()
            except BaseException:
                self._connection.close()
                raise
        self.sessions = self.records = self.blobs = 0
        """What was found whole."""

    def _address(self) -> str:
        """Return what SQLite opens: as it is, where it has no log and no index can be made beside it."""
        has_log = self._path.with_name(f"{self._path.name}-wal").exists()
        is_fixed = not has_log and not os.access(self._path.parent, os.W_OK, effective_ids=True)
        return f"{self._path.as_uri()}?{'immutable=1' if is_fixed else 'mode=ro'}"

    def _begin(self) -> None:
        (application,) = self._connection.execute("PRAGMA application_id").fetchone()
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION:
            raise JournalError(f"{self._path}: not a journal; name another file")
        check_version(self._connection, str(self._path))
        if version < VERSION:
            OLDER[version](self._connection, str(self._path))
        self._connection.execute(
            "CREATE TEMP TABLE placed (session, number, place, PRIMARY KEY (session, number, place)) WITHOUT ROWID"
        )
        self._connection.execute("BEGIN")
        self._connection.execute("SELECT count(*) FROM meta").fetchone()  # from here on one moment is seen

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def damage(self) -> Iterator[Damage]:
        """Look at everything that there is, and yield what is not as it was written."""
        for part in (
            self._write_ahead_log,
            self._pages,
            self._entries,
            self._blobs,
            self._surplus,
            self._orphans,
        ):
            try:
                with translated(str(self._path)):
                    yield from part()
            except JournalError as error:
                yield damage_of(error)

    def logs(self) -> Iterator[list[Event]]:
        """Yield what can be read of each log, from its beginning to the first record that cannot be.

        Neither the directory nor what it says of their ends is asked, nor is a record where the one before it is.
        """
        self._place()
        for key in self._keys():
            last = self._last(key)
            row = SessionRow(str(key), key, last=last)
            readable = bisect_left(
                range(1, last + 1), 1, key=lambda number: self._events(row, number) is None
            )
            if events := self._events(row, readable):
                yield events

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
                with translated(str(self._path)):
                    row = self._row(name)
                    self.records += len(self._read(row))
                    self.sessions += row.last > 0
            except JournalError as error:
                yield damage_of(error, str(name))
        if entries != (made := sessions_made(self._connection, str(self._path))):
            yield Damage(f"{self._path}: {made} sessions were begun, and {entries} have an entry")

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

    def _surplus(self) -> Iterator[Damage]:
        counted = "SELECT session, count(*) AS found FROM record GROUP BY session"
        for name, found, last in self._connection.execute(
            f"SELECT name, found, last FROM session JOIN ({counted}) ON session = key WHERE found > last"  # noqa: S608  as above
        ):
            session = str(name)[:80]
            what = f"it has {found} records, and its log has {last}"
            yield Damage(f"{self._path}: session {session!r}: {what}", session)

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

    def _read(self, row: PlacedRow) -> list[Event]:
        """Return a session's events, each proven."""
        return decoded(row.name, records(self._connection, row, 0, self._where))

    def _place(self) -> None:
        """Note where each record is that can be read: forwards and, if that comes to an end, from the other end too.

        In no transaction: in one that has met damage, SQLite writes nothing more, not even what is temporary.
        """
        self._connection.execute("COMMIT")
        for order in ("ASC", "DESC"):
            with suppress(JournalError), translated(str(self._path)):
                found = self._numbered(order)
                self._connection.executemany("INSERT OR IGNORE INTO placed VALUES (?, ?, ?)", found)
                break
        self._connection.execute("BEGIN")

    def _numbered(self, order: str) -> Iterator[tuple[int, int, int]]:
        """Yield the session, the number and the place of each record, up to damage.

        A cursor drops the row ahead of it, for it looks one further; so there they are read one by one.
        """
        place = 0 if order == "ASC" else _LAST
        with suppress(sqlite3.DatabaseError):
            for found in self._connection.execute(f"{_NUMBERED} ORDER BY place {order}"):
                place = found[2]
                yield found
            return
        behind = f"{_NUMBERED} AND place {'>' if order == 'ASC' else '<'} ? ORDER BY place {order} LIMIT 1"
        while found := self._connection.execute(behind, (place,)).fetchone():
            place = found[2]
            yield found

    def _events(self, row: SessionRow, last: int) -> list[Event] | None:
        """Return a session's events up to number `last`; None if one of them cannot be read."""
        try:
            with translated(str(self._path)):
                found = self._connection.execute(_PLACED, (row.key, last))
                right = {each[0]: each for each in found if row.is_right(*each)}
                known = replace(row, last=last).proven(
                    right.values(), 0, partial(blob, self._connection), self._where
                )
                return decoded(row.name, known)
        except JournalError:
            return None

    def _keys(self) -> list[int]:
        found = self._connection.execute("SELECT DISTINCT session FROM placed ORDER BY session")
        return [key for (key,) in found]

    def _last(self, key: int) -> int:
        query = "SELECT max(number) FROM placed WHERE session = ?"
        (last,) = self._connection.execute(query, (key,)).fetchone()
        return int(last)


def salvage(path: Path, to: Storage) -> Iterator[tuple[str, int]]:
    """Copy every log as far as it can be read; yield each session with the number of events that were copied.

    What is cut off is as if it had never happened: a tool that ran in that part may be called again.

    Raises:
        JournalError: The file cannot be read at all, or a session is in the other journal already.
    """
    with closing(JournalFile(path)) as file:
        for events in file.logs():
            if isinstance(opened := events[0], Opened):
                _copy(opened.session, events, to)
                yield opened.session, len(events)


def _copy(session: str, events: Sequence[Event], to: Storage) -> None:
    claim = to.claim(session)
    if claim.last:
        raise JournalError(
            f"Session {session!r} is in the other journal already; name a file that is not there"
        )
    for start in range(0, len(events), _BATCH):
        to.append([Entry(session, claim.fence, tuple(events[start : start + _BATCH]))])
    to.release(session, claim.fence)
