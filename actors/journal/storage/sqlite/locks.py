"""Lock files with the operating system's locks, which end with the process that holds them, however it ends.

Versions of SQLite before 3.51.3 may corrupt a write-ahead log when two connections write it or checkpoint at once. So
a lock of ours excludes other processes during both. Each host also holds a lock on a small file of its own: if it is
free, that process is gone.

`fcntl` is imported lazily: on a platform without it, only this storage is missing.
"""

import os
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep
from types import TracebackType

from actors.errors import ConfigError, JournalUnavailable
from actors.journal.storage.sqlite.forks import LockFile

PAUSE = 0.002
"""Seconds between two tries for a lock that another process holds."""

_WRITING = 120
"""The byte of a `-shm` file on which SQLite's lock of who writes is (WALINDEX_LOCK_OFFSET)."""
_READING = range(_WRITING + 3, _WRITING + 8)
"""The bytes of the locks of who reads (WAL_READ_LOCK)."""


def check_platform(path: Path) -> None:
    """Check that files can be locked here.

    Raises:
        ConfigError: The platform has no such locks.
    """
    if find_spec("fcntl") is None:
        raise ConfigError(
            f"{path}: a journal in a file needs the locks of Linux or macOS (fcntl), which {sys.platform} lacks; "
            "keep the logs in memory, or run this there"
        )


class WriteLock:
    """The lock that all writers of one file share.

    Args:
        path: Path of the lock file.
        patience: Seconds to wait for the lock.
    """

    def __init__(self, path: Path, patience: float) -> None:
        self._path, self._patience = path, patience
        self._file: LockFile | None = None

    def __enter__(self) -> None:
        until = monotonic() + self._patience
        while not (_try_lock(self._open_file()) and self._is_there()):
            if monotonic() > until:
                raise JournalUnavailable(
                    f"{self._path}: {self._holder()} has been writing for {self._patience:g} s; it may have stopped: "
                    "continue or end it"
                )
            sleep(PAUSE)
        self._note_holder()

    def _note_holder(self) -> None:
        """Write this process's id to the file, for messages of other processes; skipped if it held the lock last."""
        mine = b"%20d\n" % os.getpid()
        with suppress(OSError):  # for example a full disk, which does not affect the lock
            if os.pread(self._open_file(), len(mine), 0) != mine:
                os.pwrite(self._open_file(), mine, 0)

    def _holder(self) -> str:
        noted = os.pread(self._open_file(), 32, 0).strip()
        return f"another process (pid {noted.decode()})" if noted.isdigit() else "another process"

    def _open_file(self) -> int:
        if self._file is None:
            self._file = LockFile(self._path, os.O_CREAT)
        return self._file.number

    def _is_there(self) -> bool:
        """Return True if later processes lock the same file; if not, the next attempt opens theirs."""
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
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


class HostLock:
    """The lock that a host holds during its life. Its forked children do not hold it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = LockFile(path, os.O_CREAT)
        _try_lock(self._file.number)

    @property
    def is_held(self) -> bool:
        """Return True if this process holds the lock: not in a child of the process that took it."""
        return self._file.descriptor is not None

    def close(self) -> None:
        """Release the lock, if this process holds it."""
        if self.is_held:
            with suppress(OSError):
                self._path.unlink()
            self._file.close()


def writer_of(path: Path) -> int | None:
    """Return the id of the process that holds SQLite's write lock on the database `path`, if Linux shows it."""
    return next(iter(_holders(path, "WRITE", range(_WRITING, _WRITING + 1))), None)


def readers_of(path: Path) -> list[int]:
    """Return the ids of the processes that read the database `path`, if Linux shows them."""
    return sorted(_holders(path, "READ", _READING))


def _holders(path: Path, kind: str, places: range) -> set[int]:
    """Return the ids of the processes with a lock of a kind on one of these bytes of a `-shm` file.

    A query through the file would have to open it, and closing it would release SQLite's locks of this process.
    """
    found = set[int]()
    with suppress(OSError, ValueError):
        index = os.stat(path.with_name(f"{path.name}-shm")).st_ino
        for line in Path("/proc/locks").read_text().splitlines():
            match line.split():
                case [_, "POSIX", _, lock, holder, place, first, _] if lock == kind and int(holder) > 0:
                    if int(place.rpartition(":")[2]) == index and int(first) in places:
                        found.add(int(holder))
                case _:
                    pass
    return found


def is_held(path: Path) -> bool:
    """Return True if a living process holds a host's lock."""
    try:
        file = LockFile(path)
    except FileNotFoundError:
        return False
    try:
        return not _try_lock(file.number)
    finally:
        file.close()


def _try_lock(file: int) -> bool:
    """Take a lock if it is free; return True on success."""
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
