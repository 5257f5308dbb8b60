"""Lock files with operating-system locks, which are released when the process ends, and track the hosts of a journal.

Versions of SQLite before 3.51.3 may corrupt a write-ahead log if two connections write or checkpoint at the same time.
So a process holds a separate lock while it writes or runs a checkpoint. `fcntl` is imported only when it is needed,
because some platforms lack it. The other storages work without it.

The hosts of a journal are storage objects in this process and in other processes on the same machine. A host has a row
with the end of its lease, by the clock that all processes of a machine share (`time.monotonic`). In addition, each host
locks a small file of its own. A host is gone as soon as its lease has expired or its lock is free. A storage becomes a
host with its first claim; a storage that only reads is not a host.

Forked children release an inherited journal: they close its lock files at once, and never use SQLite's connections.
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
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from sqlite3 import Connection
from threading import RLock
from time import monotonic, sleep
from types import TracebackType

from actors.errors import ConfigError, JournalError, JournalUnavailable
from actors.journal.storage.directory import Host, HostStatus
from actors.journal.storage.rows import host_name

PAUSE = 0.002
"""Seconds between two attempts to acquire a lock that another process holds."""
_WRITING = 120
"""The byte of a `-shm` file that SQLite locks in order to write (WALINDEX_LOCK_OFFSET)."""
_READING = range(_WRITING + 3, _WRITING + 8)
"""The bytes of a `-shm` file that SQLite locks in order to read (WAL_READ_LOCK)."""
_forking = RLock()
"""Held while a descriptor is opened or closed, and during a fork, so that `_locks` lists every inherited descriptor."""
_locks = set["LockFile"]()
_databases = set["Database"]()
_inherited = set[Path]()
_ROW = "SELECT until, address, state, 0, lag FROM host WHERE name = ?"
_COUNTED = """
SELECT until, address, state, (SELECT count(*) FROM session WHERE owner = host.name), lag FROM host WHERE name = ?
"""


def check_platform(path: Path) -> None:
    """Check that this platform has file locks.

    Raises:
        ConfigError: The platform has no file locks.
    """
    if find_spec("fcntl") is None:
        raise ConfigError(
            f"{path}: a journal in a file needs file locks (fcntl), which {sys.platform} lacks; keep the logs in "
            "memory, or use Linux or macOS"
        )


class WriteLock:
    """The lock that a process must hold to write a journal file.

    Args:
        path: Path of the lock file.
        patience: Seconds to wait for the lock before raising `JournalUnavailable`.
    """

    def __init__(self, path: Path, patience: float) -> None:
        self._path, self._patience = path, patience
        self._file: LockFile | None = None

    def __enter__(self) -> None:
        until = monotonic() + self._patience
        while not (_try_lock(self._open_file()) and self._is_current_file()):
            if monotonic() > until:
                raise JournalUnavailable(
                    f"{self._path}: {self._describe_holder()} has been writing for {self._patience:g} s and may be "
                    "suspended; resume or end that process"
                )
            sleep(PAUSE)
        self._write_holder_id()

    def _write_holder_id(self) -> None:
        """Write this process's id to the lock file, for error messages of other processes.

        Nothing is written if the file already contains this id.
        """
        mine = b"%20d\n" % os.getpid()
        with suppress(OSError):  # a full disk, for example, must not prevent locking
            if os.pread(self._open_file(), len(mine), 0) != mine:
                os.pwrite(self._open_file(), mine, 0)

    def _describe_holder(self) -> str:
        noted = os.pread(self._open_file(), 32, 0).strip()
        return f"another process (pid {noted.decode()})" if noted.isdigit() else "another process"

    def _open_file(self) -> int:
        if self._file is None:
            self._file = LockFile(self._path, os.O_CREAT)
        return self._file.number

    def _is_current_file(self) -> bool:
        """Return True if the open lock file is still the file at this path. Otherwise close it, so that the next
        attempt opens the new file.
        """
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(self._open_file()), os.stat(self._path)):
                return True
        self.close()
        return False

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None and self._file.descriptor is not None:
            import fcntl

            fcntl.flock(self._file.number, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the lock file."""
        if self._file is not None:
            self._file.close()
            self._file = None


class HostLock:
    """The lock that a host holds until it ends. Forked children of the process do not hold the lock."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = LockFile(path, os.O_CREAT)
        _try_lock(self._file.number)

    @property
    def is_held(self) -> bool:
        """True if this process holds the lock; False in a forked child."""
        return self._file.descriptor is not None

    def close(self) -> None:
        """Release the lock and delete its file, if this process holds the lock."""
        if self.is_held:
            with suppress(OSError):
                self._path.unlink()
            self._file.close()


def find_writer(path: Path) -> int | None:
    """Return the id of the process that holds SQLite's write lock on the database `path`, or None if it is unknown.

    Only Linux shows this id.
    """
    return next(iter(_lock_holder_pids(path, "WRITE", range(_WRITING, _WRITING + 1))), None)


def find_readers(path: Path) -> list[int]:
    """Return the ids of the processes that hold SQLite's read locks on the database `path`. Only Linux shows them."""
    return sorted(_lock_holder_pids(path, "READ", _READING))


def _lock_holder_pids(path: Path, kind: str, offsets: range) -> set[int]:
    """Return the ids of the processes that have locked certain bytes of a `-shm` file, from `/proc/locks`.

    The file is not queried directly, because this process would have to open and close it. Closing it would release the
    locks that SQLite holds in this process.

    Args:
        path: The database.
        kind: `READ` or `WRITE`.
        offsets: The offsets of the locked bytes in the file.
    """
    found = set[int]()
    with suppress(OSError, ValueError):
        index = os.stat(path.with_name(f"{path.name}-shm")).st_ino
        for line in Path("/proc/locks").read_text().splitlines():
            match line.split():
                case [_, "POSIX", _, lock, pid, file, offset, _] if lock == kind and int(pid) > 0:
                    if int(file.rpartition(":")[2]) == index and int(offset) in offsets:
                        found.add(int(pid))
                case _:
                    pass
    return found


def is_held(path: Path) -> bool:
    """Return True if a living process holds the host lock on this file."""
    try:
        file = LockFile(path)
    except FileNotFoundError:
        return False
    try:
        return not _try_lock(file.number)
    finally:
        file.close()


def _try_lock(file: int) -> bool:
    """Lock a file, given by its descriptor, without waiting. Return False if another process holds the lock."""
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


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


class Hosts:
    """The hosts that use one journal file, including the host of this storage.

    Args:
        path: The journal file.
        lease: Duration of a lease in seconds.
    """

    def __init__(self, path: Path, lease: float) -> None:
        self._path, self._lease = path, lease
        self._lock: HostLock | None = None
        self.status: HostStatus = HostStatus()
        """The host's address, state and lag, which the row of the host contains."""
        self.name: str = ""
        """The name of this host; empty until the storage becomes a host.

        The name is chosen late because it contains the process id, and the process may fork first.
        """

    def become_host(self, connection: Connection) -> None:
        """Make this storage a host, unless it is one already, and remove the rows and lock files of dead hosts."""
        if self._lock is None:
            self._remove_dead_hosts(connection)
            self.name = host_name()
            self._lock = HostLock(self._lock_path(self.name))
            if address := self.status.address:
                # An earlier process at this address is gone, even if its lease has not expired.
                connection.execute("DELETE FROM host WHERE address = ?", (address,))
            self.renew_lease(connection)

    def _remove_dead_hosts(self, connection: Connection) -> None:
        for (name,) in connection.execute("SELECT name FROM host").fetchall():
            if not is_held(file := self._lock_path(name)):
                file.unlink(missing_ok=True)
                self.forget(connection, name)

    @property
    def is_host(self) -> bool:
        """True if this storage is a host."""
        return self._lock is not None and self._lock.is_held

    def renew_lease(self, connection: Connection) -> None:
        """Extend this host's lease so that it ends one full lease period from now."""
        status = self.status
        row = (self.name, monotonic() + self._lease, status.address, status.state, status.lag)
        connection.execute("INSERT OR REPLACE INTO host VALUES (?, ?, ?, ?, ?)", row)

    def live(self, connection: Connection, *, count_sessions: bool) -> list[Host]:
        """Return the live hosts, ordered by name."""
        names = connection.execute("SELECT name FROM host ORDER BY name").fetchall()
        found = [self.find(connection, name, _COUNTED if count_sessions else _ROW) for (name,) in names]
        return [host for host in found if host is not None]

    def is_serving(self, connection: Connection, name: str) -> bool:
        """Return True if a host is alive and accepts more sessions."""
        host = self.find(connection, name)
        return host is not None and host.state == "serving"

    def find(self, connection: Connection, name: str, query: str = _ROW) -> Host | None:
        """Return a host, or None if that host is gone.

        `query` is `_ROW`, or `_COUNTED` to include the number of the host's sessions.
        """
        row = connection.execute(query, (name,)).fetchone()
        if row is None or type(row[0]) is not float or (seconds := row[0] - monotonic()) <= 0:
            return None
        _, address, state, sessions, lag = row
        return Host(name, address, state, sessions, lag, seconds) if is_held(self._lock_path(name)) else None

    def forget(self, connection: Connection, name: str) -> None:
        """Remove the row of a host that is gone or about to close."""
        connection.execute("DELETE FROM host WHERE name = ?", (name,))

    def end(self) -> None:
        """Release this host's lock, so that other processes regard the host as gone."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        self.status = HostStatus()

    def _lock_path(self, name: str) -> Path:
        return self._path.with_name(f"{self._path.name}-host-{name.replace(':', '-').replace('/', '-')}")
