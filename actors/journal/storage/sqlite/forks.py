"""Forked children give up what they inherit of an open journal: the locks at once, SQLite's connections unused.

`flock` belongs to an open file description, which a parent and its child share: the lock lasts until both have closed
it. A worker that outlives a killed host would keep its locks. So each child closes their descriptors as soon as it is
forked. Record locks (`fcntl.lockf`) are not inherited, but a process loses them when it closes any descriptor of the
file, such as that of a copy.

SQLite does not support the use of a connection in a forked child, nor of a new one to the same file: it would take
locks for its own that the parent holds. Even to close one changes the index that all processes share, if a
transaction was under way. So a child keeps the connections untouched for ever, and refuses the files.
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
    """An open file that is there to be locked. A forked child has it closed.

    Args:
        path: The file.
        flags: Of `os.open`, in addition to those that every lock needs.
    """

    def __init__(self, path: Path, flags: int = 0) -> None:
        with _forking:
            self.descriptor: int | None = os.open(path, os.O_RDWR | os.O_CLOEXEC | flags, 0o600)
            _locks.add(self)

    @property
    def number(self) -> int:
        """The descriptor of the file, which is open."""
        assert self.descriptor is not None
        return self.descriptor

    def close(self) -> None:
        """Close the file, which gives up its lock. Nothing happens if it is closed."""
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
        """Check that the parent of this process, of which it is a fork, did not have the file open.

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
        """Keep the connections for ever: not even the end of the process closes them."""
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
