"""The locks of the operating system: they end with the process that holds them, however it ends.

Versions of SQLite before 3.51.3 may corrupt a write-ahead log when two connections write it or checkpoint at once. So
whoever does either holds one lock of ours meanwhile. Each host also holds a lock on a small file of its own: if it is
free, that process is gone.

`fcntl` is imported where it is used: a platform without it has everything of the package but this storage.
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
    """The lock of all who write one file.

    Args:
        path: Of the lock's own file.
        patience: Seconds to wait for it.
    """

    def __init__(self, path: Path, patience: float) -> None:
        self._path, self._patience = path, patience
        self._file: LockFile | None = None

    def __enter__(self) -> None:
        until = monotonic() + self._patience
        while not (_locked(self._opened()) and self._is_there()):
            if monotonic() > until:
                raise JournalUnavailable(
                    f"{self._path}: {self._holder()} has been writing for {self._patience:g} s; it may have stopped: "
                    "continue or end it"
                )
            sleep(PAUSE)
        self._note_holder()

    def _note_holder(self) -> None:
        """Note this process in the file, for messages of others; nothing is written if it had the lock last."""
        mine = b"%20d\n" % os.getpid()
        with suppress(OSError):  # such as a full disk, which does not concern the lock
            if os.pread(self._opened(), len(mine), 0) != mine:
                os.pwrite(self._opened(), mine, 0)

    def _holder(self) -> str:
        noted = os.pread(self._opened(), 32, 0).strip()
        return f"another process (pid {noted.decode()})" if noted.isdigit() else "another process"

    def _opened(self) -> int:
        if self._file is None:
            self._file = LockFile(self._path, os.O_CREAT)
        return self._file.number

    def _is_there(self) -> bool:
        """Tell whether others who come lock the same file; if not, open theirs next."""
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(self._opened()), os.stat(self._path)):
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
    """The lock that a host holds for as long as it lives; its forked children do not."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = LockFile(path, os.O_CREAT)
        _locked(self._file.number)

    @property
    def is_held(self) -> bool:
        """Return True if this process holds the lock: not in a child of the one that took it."""
        return self._file.descriptor is not None

    def close(self) -> None:
        """Give it up, if this process holds it."""
        if self.is_held:
            with suppress(OSError):
                self._path.unlink()
            self._file.close()


def writer_of(path: Path) -> int | None:
    """Return the id of the process that holds SQLite's write lock on the database `path`, as far as Linux tells."""
    return next(iter(_holders(path, "WRITE", range(_WRITING, _WRITING + 1))), None)


def readers_of(path: Path) -> list[int]:
    """Return the ids of the processes that read the database `path`, as far as Linux tells."""
    return sorted(_holders(path, "READ", _READING))


def _holders(path: Path, kind: str, places: range) -> set[int]:
    """Return the ids of the processes with a lock of a kind on one of these bytes of a `-shm` file.

    To ask by the file would open it, and to close it would give up the locks that SQLite holds on it for this process.
    """
    found = set[int]()
    with suppress(OSError, ValueError):
        index = os.stat(path.with_name(f"{path.name}-shm")).st_ino
        for line in Path("/proc/locks").read_text().splitlines():
            match line.split():
                case [_, "POSIX", _, lock, holder, place, first, _] if lock == kind and int(holder) > 0:
                    if int(place.rpartition(":")[2]) == index and int(first) in places:
                        found.add(int(holder))
    return found


def is_held(path: Path) -> bool:
    """Say whether a living process holds a host's lock."""
    try:
        file = LockFile(path)
    except FileNotFoundError:
        return False
    try:
        return not _locked(file.number)
    finally:
        file.close()


def _locked(file: int) -> bool:
    """Take a lock, if nobody has it."""
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
