"""Make forked children give up an inherited journal: close the locks at once, leave SQLite's connections unused.

`flock` belongs to an open file description, which parent and child share: the lock lasts until both have closed it. A
worker that outlives a killed host would keep its locks. So each child closes their descriptors right after the fork.
Record locks (`fcntl.lockf`) are not inherited, but a process loses them when it closes any descriptor of the file,
such as a duplicate.

SQLite does not support the use of a connection in a forked child, nor of a new one to the same file: it would treat
the parent's locks as its own. Even closing a connection changes the index that all processes share, if a transaction
was running. So a child keeps the connections untouched forever, and refuses to use the files.
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
"""Held while a descriptor is opened or closed, and during a fork: no child has a descriptor that is not listed."""
_locks = set["LockFile"]()
_databases = set["Database"]()
_inherited = set[Path]()


class LockFile:
    """An open lock file. A forked child closes it.

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
        """The open descriptor of the file."""
        assert self.descriptor is not None
        return self.descriptor

    def close(self) -> None:
        """Close the file, which releases its lock. No effect if it is closed."""
        with _forking:
            _locks.discard(self)
            descriptor, self.descriptor = self.descriptor, None
            if descriptor is not None:
                os.close(descriptor)


class Database:
    """SQLite's open connections to one file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connections = list[sqlite3.Connection]()

    @property
    def is_inherited(self) -> bool:
        """Return True if the parent of this process had the file open when it forked."""
        return self._path in _inherited

    def check_own(self) -> None:
        """Check that this process did not inherit the open file by a fork.

        Raises:
            JournalError: It did.
        """
        if self.is_inherited:
            raise JournalError(
                f"{self._path}: this process was forked while the file was open, and cannot use it; start the "
                "process with the method 'spawn', or before the journal is opened"
            )

    def connect(self, connected: Callable[[], sqlite3.Connection]) -> sqlite3.Connection:
        """Return the connection that `connected` opens."""
        _databases.add(self)
        connection = connected()
        self._connections.append(connection)
        return connection

    def close(self, connection: sqlite3.Connection) -> None:
        """Close a connection."""
        connection.close()
        self._connections.remove(connection)
        if not self._connections:
            _databases.discard(self)

    def leave(self) -> None:
        """Keep the connections open forever: not even the end of the process closes them."""
        _inherited.add(self._path)
        for connection in self._connections:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def _begin_child() -> None:
    for lock in _locks.copy():
        lock.close()
    for database in _databases:
        database.leave()
    _databases.clear()
    _forking.release()


if sys.platform != "win32":
    os.register_at_fork(
        before=_forking.acquire, after_in_parent=_forking.release, after_in_child=_begin_child
    )
