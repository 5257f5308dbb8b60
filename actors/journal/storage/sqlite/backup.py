"""Copy a journal's file while processes write it.

The copy holds everything that was committed before it began, as it was at one moment (`VACUUM INTO`). It is made of the
rows and not of the pages, so it has no bytes of deleted sessions, and a file whose pages are damaged is not copied
unnoticed. Writers are not held up; the write-ahead log grows until the copy is complete.
"""

import errno
import os
import sqlite3
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from actors.errors import ConfigError
from actors.journal.storage.sqlite.faults import translate_errors

_STEPS = 10_000
"""Instructions of SQLite's machine between two looks at whether the caller still waits: about a millisecond."""
_NO_LINKS = {errno.EPERM, errno.EXDEV, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
"""What `link` raises where the file system has no hard links."""
_SUFFIXES = ("", "-wal", "-shm", "-part")


def check_target(path: Path) -> None:
    """Check that no file has the name of the copy, or of one of its companion files.

    Raises:
        ConfigError: A file has.
    """
    for suffix in _SUFFIXES:
        if (beside := path.with_name(f"{path.name}{suffix}")).exists():
            raise ConfigError(f"{beside}: there is a file of this name; name a new one for the backup")


def copy_into(connection: sqlite3.Connection, path: Path, check: Callable[[], object]) -> None:
    """Copy a journal to a new file, readable by this user only. The file gets its name when it is complete.

    Args:
        connection: A connection to the journal.
        path: Path of the copy.
        check: Called now and then; its exception ends the copy.
    """
    part = path.with_name(f"{path.name}-part")
    with translate_errors(str(path)):
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        with _interruptible(connection, check):
            connection.execute("VACUUM INTO ?", (str(part),))
        with translate_errors(str(path)):
            _sync(part)
            _name(part, path)
            _sync(path.parent)
    finally:
        part.unlink(missing_ok=True)


def _name(part: Path, path: Path) -> None:
    """Rename a complete copy without replacing an existing file.

    A rename would replace one. A link does not, but some file systems lack links (FAT, many network shares). There,
    an empty file reserves the name, and the copy then replaces it: a process that is killed in between leaves it.
    """
    try:
        os.link(part, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        try:
            part.rename(path)
        except BaseException:
            path.unlink()
            raise


@contextmanager
def _interruptible(connection: sqlite3.Connection, check: Callable[[], object]) -> Generator[None]:
    """Interrupt statements of the block when `check` raises, and raise the same exception."""
    failed = list[BaseException]()

    def is_over() -> bool:
        try:
            check()
        except BaseException as error:  # for example, a cancellation
            failed.append(error)
        return bool(failed)

    connection.set_progress_handler(is_over, _STEPS)
    try:
        yield
    except sqlite3.Error:
        if failed:
            raise failed[0] from None
        raise
    finally:
        connection.set_progress_handler(None, 0)


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)
