"""A durable journal for tests: one fsynced file of length-prefixed records. It is deliberately small."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from struct import Struct

from actors.core.log.events import LogEvent
from actors.journal.storage import PAGE, Appended, Durability, Entry, LogPage, decode_records
from actors.journal.storage.memory import MemoryStorage

_LENGTHS = Struct(">II")
"""Lengths in bytes of the session id and of the record that follow."""


class FileStorage(MemoryStorage):
    """Logs in one file. Each step of an append calls `crossing`, so that a test can stop the process there."""

    durability: Durability = "power"

    def __init__(self, path: Path, crossing: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self._path = path
        self._crossing = crossing

    def append(self, entries: Sequence[Entry]) -> Sequence[Appended]:
        """Append all entries and return the last number of each, once they are on the disk."""
        self._crossing()
        with self._path.open("ab") as file:
            for entry in entries:
                session = entry.session.encode()
                for record in entry.records:
                    file.write(_frame(session, record))
            file.flush()
            self._crossing()
            os.fsync(file.fileno())
        self._crossing()
        return super().append(entries)

    def read(self, session: str, after: int = 0) -> list[LogEvent]:
        """Return the events of a session's complete records; a torn last record is ignored."""
        if not self._path.exists():
            return []
        records = [record for name, record in _frames(self._path.read_bytes()) if name == session]
        return decode_records(session, records[after:], after)

    def page(self, session: str, after: int = 0, limit: int = PAGE) -> LogPage:
        """Return the first complete events of a session after number `after`."""
        log = self.read(session)
        return LogPage(after, log[after : after + limit], len(log))

    def delete(self, *sessions: str) -> None:
        """Rewrite the file without the records of the sessions."""
        kept = [(name, record) for name, record in _frames(self._path.read_bytes()) if name not in sessions]
        with self._path.open("wb") as file:
            for name, record in kept:
                file.write(_frame(name.encode(), record))
        super().delete(*sessions)


def _frame(session: bytes, record: bytes) -> bytes:
    return _LENGTHS.pack(len(session), len(record)) + session + record


def _frames(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield each complete record with its session."""
    at = 0
    while at + _LENGTHS.size <= len(data):
        name, size = _LENGTHS.unpack_from(data, at)
        at += _LENGTHS.size + name + size
        if at > len(data):
            return
        yield data[at - size - name : at - size].decode(), data[at - size : at]
