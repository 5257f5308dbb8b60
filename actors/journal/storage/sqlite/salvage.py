"""Copy the logs of a damaged file to a new journal, each up to its first unreadable record.

A record's checksum proves to which session the record belongs, and its number in the log. So neither the directory nor
the links between records are needed, and only the pages with records and blobs are read (`pages.py`).
"""

import sqlite3
from bisect import bisect_left
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path

from msgspec.structs import replace

from actors.core.log.events import LogEvent, Opened
from actors.errors import JournalError
from actors.journal.storage import Entry, Storage, decode_records
from actors.journal.storage.rows import JournalLocation, SessionRow, record_checksum
from actors.journal.storage.sqlite.check import JournalFile
from actors.journal.storage.sqlite.faults import translate_errors
from actors.journal.storage.sqlite.pages import readable_rows
from actors.journal.storage.sqlite.records import read_blob

_BATCH = 500
_FOUND = """
CREATE TABLE record (place INTEGER PRIMARY KEY, session, number, checksum, bytes);
CREATE TABLE blob (hash PRIMARY KEY, bytes) WITHOUT ROWID
"""
_INDEX = """
CREATE TEMP TABLE placed (session, number, place, PRIMARY KEY (session, number, place)) WITHOUT ROWID;
INSERT INTO placed SELECT session, number, place FROM record
WHERE typeof(session) = 'integer' AND typeof(number) = 'integer'
"""
_PLACED = """
SELECT record.number, record.checksum, CAST(record.bytes AS BLOB)
FROM placed CROSS JOIN record ON record.place = placed.place
WHERE placed.session = ? AND placed.number <= ? ORDER BY placed.number
"""


def salvage(path: Path, to: Storage) -> Iterator[tuple[str, int]]:
    """Copy the readable beginning of every log to the storage `to`.

    Yield the id of each session and the number of copied events. Events after the first unreadable record are omitted,
    as if they had never happened, so their tools may run again. No program may write to the file in the meantime.

    Raises:
        JournalError: No record is readable, or a session already exists in `to`.
    """
    with _collect_rows(path) as connection:
        for events in ReadableLogs(connection, JournalLocation(str(path))):
            if isinstance(opened := events[0], Opened):
                _copy_log(opened.session, events, to)
                yield opened.session, len(events)


def _copy_log(session: str, events: Sequence[LogEvent], to: Storage) -> None:
    claim = to.claim(session)
    if claim.last:
        raise JournalError(
            f"Session {session!r} already exists in the target journal; pass the path of a new file"
        )
    for start in range(0, len(events), _BATCH):
        to.append([Entry(session, claim.fence, tuple(events[start : start + _BATCH]))])
    to.release(session, claim.fence)


@contextmanager
def _collect_rows(path: Path) -> Generator[sqlite3.Connection]:
    """Provide a connection to a temporary database. Its tables `record` and `blob` contain all readable rows of the
    file.
    """
    error: JournalError | None = None
    try:
        JournalFile(path).close()
    except JournalError as damage:
        if not path.is_file():
            raise
        error = damage
    with translate_errors(str(path)), closing(sqlite3.connect("", isolation_level=None)) as connection:
        if not _fill_tables(connection, path) and error is not None:
            raise error
        yield connection


def _fill_tables(connection: sqlite3.Connection, path: Path) -> int:
    """Create the tables, and fill them with the rows of the file that match their checksums. Return the number of
    records.
    """
    for statement in _FOUND.split(";"):
        connection.execute(statement)
    connection.execute("BEGIN")
    records = 0
    for row in readable_rows(path):
        match row:
            case (None, _, int(session), int(number), checksum, bytes(stored)):
                if record_checksum(session, number, stored) != checksum:
                    continue
                connection.execute(
                    "INSERT INTO record (session, number, checksum, bytes) VALUES (?, ?, ?, ?)",
                    (session, number, checksum, stored),
                )
                records += 1
            case (bytes(digest), bytes(content)) if sha256(content).digest() == digest:
                connection.execute("INSERT OR IGNORE INTO blob VALUES (?, ?)", (digest, content))
            case _:  # a row of another table, or a damaged row
                pass
    connection.execute("COMMIT")
    return records


class ReadableLogs:
    """The logs in a temporary database, each up to its first unreadable record.

    Iteration yields each log as a list of events.

    Args:
        connection: A connection to the database, from `_collect_rows`.
        location: The name of the damaged file, for error messages.
    """

    def __init__(self, connection: sqlite3.Connection, location: JournalLocation) -> None:
        self._connection, self._location = connection, location

    def __iter__(self) -> Iterator[list[LogEvent]]:
        self._index_records()
        for key in self._session_keys():
            last = self._highest_number(key)
            row = SessionRow(str(key), key, last=last)
            readable = bisect_left(
                range(1, last + 1), 1, key=lambda number: self._readable_events(row, number) is None
            )
            if events := self._readable_events(row, readable):
                yield events

    def _index_records(self) -> None:
        for statement in _INDEX.split(";"):
            self._connection.execute(statement)

    def _readable_events(self, row: SessionRow, last: int) -> list[LogEvent] | None:
        """Return a session's events up to number `last`; None if one of them is unreadable."""
        try:
            with translate_errors(self._location.name):
                found = self._connection.execute(_PLACED, (row.key, last))
                right = {each[0]: each for each in found if row.is_intact_record(*each)}
                known = replace(row, last=last).verified_records(
                    right.values(), 0, partial(read_blob, self._connection), self._location
                )
                return decode_records(row.name, known)
        except JournalError:
            return None

    def _session_keys(self) -> list[int]:
        found = self._connection.execute("SELECT DISTINCT session FROM placed ORDER BY session")
        return [key for (key,) in found]

    def _highest_number(self, key: int) -> int:
        query = "SELECT max(number) FROM placed WHERE session = ?"
        (last,) = self._connection.execute(query, (key,)).fetchone()
        return int(last)
