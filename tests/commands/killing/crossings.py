"""Crossings: the places where a process's writes may break off, counted from 1. It is killed at one of them.

There is one before and one behind each statement that begins, changes or commits a transaction, or moves the
write-ahead log into the file; and before and behind each event that a client is told.
"""

import os
import signal
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from actors.journal.storage.sqlite import connection

WRITES = ("BEGIN IMMEDIATE", "INSERT", "UPDATE", "DELETE", "COMMIT", "PRAGMA wal_checkpoint")
PAGES = 40
"""Of the write-ahead log, from which it is moved into the file: soon, so that kills meet that too."""
AHEAD = 0.005
"""Seconds that all else of a process has before it dies: what it says in them too early, it has said."""


class Crossings:
    """Counts them, in any thread.

    Args:
        last: At which the process is killed; 0 for none.
    """

    def __init__(self, last: int) -> None:
        self._last = last
        self._numbers = count(1)

    def cross(self) -> None:
        """Pass one, or die there."""
        if next(self._numbers) == self._last:
            time.sleep(AHEAD)
            os.kill(os.getpid(), signal.SIGKILL)

    @contextmanager
    def around(self, sql: str) -> Iterator[None]:
        """Pass one before and one behind a statement, if it is of a write."""
        writes = sql.startswith(WRITES)
        if writes:
            self.cross()
        yield
        if writes:
            self.cross()

    def install(self) -> None:
        """Have every journal of this process pass them."""
        vars(connection).update(sqlite3=_CrossingSqlite(self), CHECKPOINT=PAGES)


class _CrossingSqlite:
    """What stands for the module `sqlite3`."""

    Error, Connection = sqlite3.Error, sqlite3.Connection

    def __init__(self, crossings: Crossings) -> None:
        self._crossings = crossings

    def connect(
        self, path: Path, **options: Any
    ) -> sqlite3.Connection:  # Any: as `sqlite3.connect` takes them
        return _CrossingConnection(self._crossings, path, **options)


class _CrossingConnection(sqlite3.Connection):
    def __init__(self, crossings: Crossings, path: Path, **options: Any) -> None:  # Any: as above
        super().__init__(path, **options)
        self._crossings = crossings

    def execute(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:  # Any: what SQLite can hold
        with self._crossings.around(sql):
            return super().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Any]) -> sqlite3.Cursor:  # Any: as above
        with self._crossings.around(sql):
            return super().executemany(sql, parameters)
