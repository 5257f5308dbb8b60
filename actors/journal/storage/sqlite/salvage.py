"""Copy the logs of a damaged file to a new journal, each up to its first unreadable record.

A record's checksum proves to which session the record belongs, and its number in the log. So neither the directory nor
the links between records are needed, and only the pages with records and blobs are read.

SQLite finds a row through the first page of the file, the root page of the table, and the pages between the root and
the row. If one of these is damaged, all rows below it are unreachable, even if they are intact. So each page of the
file is read independently, from its newest committed copy in the write-ahead log if there is one
(https://www.sqlite.org/fileformat2.html#b_tree_pages). Each row is then verified by its checksum.
"""

import os
import sqlite3
from bisect import bisect_left
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from struct import unpack_from
from typing import TypeAlias

from msgspec.structs import replace

from actors.core.log.events import LogEvent, Opened
from actors.errors import JournalError
from actors.journal.storage import Entry, Storage, decode_records
from actors.journal.storage.rows import JournalLocation, SessionRow, record_checksum
from actors.journal.storage.sqlite.check import JournalFile
from actors.journal.storage.sqlite.faults import translate_errors
from actors.journal.storage.sqlite.records import read_blob
from actors.journal.storage.sqlite.wal import WriteAheadLog

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
Value: TypeAlias = int | float | bytes | None
"""A value of a row. Strings are not decoded, so their type is bytes."""
_PAGE = 4096
"""Assumed page size in bytes if the file's header is damaged."""
_INDEX_INTERIOR, _INDEX_LEAF, _TABLE_LEAF = 2, 10, 13
"""Types of the pages that contain rows. SQLite stores a table without row ids like an index."""
_FIXED = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 7: 8, 8: 0, 9: 0}
"""Size of a value in bytes, by its serial type. Types from 12 on encode the length of a string or blob."""


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


def readable_rows(path: Path) -> Iterator[tuple[Value, ...]]:
    """Yield the readable rows of all tables, from the pages of a file.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb") as file, WriteAheadLog(path) as log:
        for size in dict.fromkeys((_page_size(file.read(20)), _PAGE)):
            pages, has_rows = _Pages(file.fileno(), log, size), False
            for number in range(1, pages.count + 1):
                for row in pages.rows(number):
                    has_rows = True
                    yield row
            if has_rows:
                return


def _page_size(header: bytes) -> int:
    size = int.from_bytes(header[16:18], "big")
    size = 65536 if size == 1 else size
    return size if size >= 512 and size.bit_count() == 1 else _PAGE


class _Pages:
    """The pages of an open file, each with `size` bytes and numbered from 1."""

    def __init__(self, file: int, log: WriteAheadLog, size: int) -> None:
        self._file, self._log, self._size = file, log, size
        self._newer = log.committed_pages(size)
        self.count = max(os.fstat(file).st_size // size, *self._newer, 0)

    def rows(self, page_number: int) -> Iterator[tuple[Value, ...]]:
        """Yield the readable rows of a page."""
        page = self._read_page(page_number)
        start = 100 if page_number == 1 else 0
        if len(page) < self._size or (kind := page[start]) not in (_INDEX_INTERIOR, _INDEX_LEAF, _TABLE_LEAF):
            return
        cells = start + (12 if kind == _INDEX_INTERIOR else 8)
        count = min(int.from_bytes(page[start + 3 : start + 5], "big"), (self._size - cells) // 2)
        for at in unpack_from(f">{count}H", page, cells):
            with suppress(IndexError, ValueError):
                yield _decode_values(self._read_payload(page, at, kind))

    def _read_page(self, page_number: int) -> bytes:
        if (place := self._newer.get(page_number)) is not None:
            return self._log.content(place, self._size)
        return os.pread(self._file, self._size, (page_number - 1) * self._size)

    def _read_payload(self, page: bytes, offset: int, page_kind: int) -> bytes:
        """Return the content of the cell at `offset` in a page, including the content in overflow pages."""
        if page_kind == _INDEX_INTERIOR:
            offset += 4  # skip the number of the child page
        length, offset = _read_varint(page, offset)
        if page_kind == _TABLE_LEAF:
            _, offset = _read_varint(page, offset)  # skip the row's id
        here = self._bytes_in_cell(length, page_kind)
        if length > self.count * self._size or offset + here > self._size:
            raise ValueError(f"A cell of {length} bytes does not fit into the file")
        payload = bytearray(page[offset : offset + here])
        if here < length:
            following, before = int.from_bytes(page[offset + here : offset + here + 4], "big"), set[int]()
            while len(payload) < length:
                if not 1 < following <= self.count or following in before:
                    raise ValueError(f"Overflow page {following} does not exist or was already read")
                before.add(following)
                more = self._read_page(following)
                payload += more[4:]
                following = int.from_bytes(more[:4], "big")
        return bytes(payload[:length])

    def _bytes_in_cell(self, length: int, page_kind: int) -> int:
        """Return how many bytes of content a cell itself contains, if the content has `length` bytes. The remaining
        bytes are in overflow pages.
        """
        most = self._size - 35 if page_kind == _TABLE_LEAF else (self._size - 12) * 64 // 255 - 23
        if length <= most:
            return length
        least = (self._size - 12) * 32 // 255 - 23
        kept = least + (length - least) % (self._size - 4)
        return kept if kept <= most else least


def _read_varint(data: bytes, offset: int) -> tuple[int, int]:
    """Decode SQLite's variable-length integer at `offset`. Return the integer and the offset after it."""
    value = 0
    for byte in range(9):
        each = data[offset + byte]
        if byte == 8:
            return value << 8 | each, offset + 9
        value = value << 7 | each & 0x7F
        if each < 0x80:
            return value, offset + byte + 1
    raise AssertionError("A varint has at most nine bytes, and the loop returns at the ninth byte")


def _decode_values(payload: bytes) -> tuple[Value, ...]:
    header, at = _read_varint(payload, 0)
    values, place = list[Value](), header
    while at < header:
        kind, at = _read_varint(payload, at)
        length = (kind - 12) // 2 if kind >= 12 else _FIXED.get(kind, 0)
        if place + length > len(payload):
            raise ValueError(f"A value of type {kind} does not fit into its row")
        values.append(_decode_value(kind, payload[place : place + length]))
        place += length
    return tuple(values)


def _decode_value(type_code: int, data: bytes) -> Value:
    if type_code >= 12:
        return data
    if type_code == 7:
        return float(unpack_from(">d", data)[0])
    if type_code in (8, 9):
        return type_code - 8
    return int.from_bytes(data, "big", signed=True) if type_code else None
