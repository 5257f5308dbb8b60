"""Crossings: the numbered places, from 1, at which the writes of a process can be interrupted by a kill.

There is one before and one after each statement that begins, changes or commits a transaction or moves the write-ahead
log into the file, and one before and one after each event that a client sees.
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
"""The size of the write-ahead log at which it is checkpointed: small, so that kills hit checkpoints too."""
AHEAD = 0.005
"""Seconds between reaching the crossing and the kill, in which premature output would become visible."""


class Crossings:
    """Counts crossings, in any thread.

    Args:
        last: The crossing at which the process is killed; 0 for none.
    """

    def __init__(self, last: int) -> None:
        self._last = last
        self._numbers = count(1)

    def cross(self) -> None:
        """Count one crossing, or kill the process there."""
        if next(self._numbers) == self._last:
            time.sleep(AHEAD)
            os.kill(os.getpid(), signal.SIGKILL)

    @contextmanager
    def around(self, sql: str) -> Iterator[None]:
        """Cross before and after a statement, if it writes."""
        writes = sql.startswith(WRITES)
        if writes:
            self.cross()
        yield
        if writes:
            self.cross()

    def install(self) -> None:
        """Make every journal of this process count crossings."""
        vars(connection).update(sqlite3=_CrossingSqlite(self), CHECKPOINT=PAGES)


class _CrossingSqlite:
    """The replacement of the module `sqlite3`."""

    Error, Connection = sqlite3.Error, sqlite3.Connection

    def __init__(self, crossings: Crossings) -> None:
        self._crossings = crossings

    def connect(
        self, path: Path, **options: Any
    ) -> sqlite3.Connection:  # Any: the options of `sqlite3.connect`
        return _CrossingConnection(self._crossings, path, **options)


class _CrossingConnection(sqlite3.Connection):
    def __init__(self, crossings: Crossings, path: Path, **options: Any) -> None:  # Any: as above
        super().__init__(path, **options)
        self._crossings = crossings

    def execute(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:  # Any: values that SQLite can hold
        with self._crossings.around(sql):
            return super().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Any]) -> sqlite3.Cursor:  # Any: as above
        with self._crossings.around(sql):
            return super().executemany(sql, parameters)
