"""Release an inherited journal in forked children: close its lock files at once, and never use SQLite's connections.

`flock` belongs to an open file description, which parent and child share, so a lock lasts until both have closed the
file. A worker that outlives its killed parent would keep the parent's locks. So each child closes the lock files right
after the fork. Record locks (`fcntl.lockf`) are no alternative. They are not inherited, but a process loses them when
it closes any descriptor of the file, such as a duplicate.

SQLite in a forked child cannot use an inherited connection or open a new one to the same file, because it would treat
the parent's locks as its own. If a transaction was running, even closing a connection changes the index that all
processes share. So a child keeps the connections open and unused, and refuses to use the journal.
"""

import ctypes
import os
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from threading import RLock

from actors.errors import JournalError

_forking = RLock()
"""Held while a descriptor is opened or closed, and during a fork, so that `_locks` lists every inherited descriptor."""
_locks = set["LockFile"]()
_databases = set["Database"]()
_inherited = set[Path]()


class LockFile:
    """An open lock file, which forked children close.

    Args:
        path: The file.
        flags: Additional flags for `os.open`.
    """

    def __init__(self, path: Path, flags: int = 0) -> None:
        with _forking:
            self.descriptor: int | None = os.open(path, os.O_RDWR | os.O_CLOEXEC | flags, 0o600)
            _locks.add(self)

    @property
    def number(self) -> int:
        """The descriptor of the open file."""
        assert self.descriptor is not None
        return self.descriptor

    def close(self) -> None:
        """Close the file, which releases its lock. Repeated calls have no effect."""
        with _forking:
            _locks.discard(self)
            descriptor, self.descriptor = self.descriptor, None
            if descriptor is not None:
                os.close(descriptor)


class Database:
    """The open SQLite connections to one file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connections = list[sqlite3.Connection]()

    @property
    def is_inherited(self) -> bool:
        """True if this process was forked while its parent had the file open."""
        return self._path in _inherited

    def check_own(self) -> None:
        """Check that this process may use the file.

        Raises:
            JournalError: The process was forked while its parent had the file open.
        """
        if self.is_inherited:
            raise JournalError(
                f"{self._path}: this process was forked while the file was open, so it cannot use the file; start "
                "processes with the method 'spawn', or before the journal is opened"
            )

    def connect(self, open_connection: Callable[[], sqlite3.Connection]) -> sqlite3.Connection:
        """Open a connection by calling `open_connection`, track the connection and return it."""
        _databases.add(self)
        connection = open_connection()
        self._connections.append(connection)
        return connection

    def close(self, connection: sqlite3.Connection) -> None:
        """Close a connection and stop tracking it."""
        connection.close()
        self._connections.remove(connection)
        if not self._connections:
            _databases.discard(self)

    def abandon(self) -> None:
        """Keep the connections open until the process has ended. A forked child must call this."""
        _inherited.add(self._path)
        for connection in self._connections:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def _release_in_child() -> None:
    """Close the inherited lock files and give up the inherited connections, directly after a fork."""
    for lock in _locks.copy():
        lock.close()
    for database in _databases:
        database.abandon()
    _databases.clear()
    _forking.release()


if sys.platform != "win32":
    os.register_at_fork(
        before=_forking.acquire, after_in_parent=_forking.release, after_in_child=_release_in_child
    )
