"""Copy a journal's file while other processes write to it.

The copy contains everything that was committed before copying began (`VACUUM INTO`). It is built from rows instead of
pages. So it contains no data of deleted sessions, and damaged pages are detected. Writers do not wait, but the
write-ahead log grows until the copy is complete.
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
"""Number of SQLite instructions between two calls of `check`. They take about a millisecond."""
_NO_LINKS = {errno.EPERM, errno.EXDEV, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
"""Error numbers of `link` on file systems without hard links."""
_SUFFIXES = ("", "-wal", "-shm", "-part")


def check_target(path: Path) -> None:
    """Check that a backup to `path` would not replace any file. SQLite creates more files next to `path`, so their
    names are checked as well.

    Raises:
        ConfigError: A file with one of these names exists.
    """
    for suffix in _SUFFIXES:
        if (beside := path.with_name(f"{path.name}{suffix}")).exists():
            raise ConfigError(
                f"{beside}: a file with this name already exists; choose another name for the backup"
            )


def copy_into(connection: sqlite3.Connection, path: Path, check: Callable[[], object]) -> None:
    """Copy a journal to a new file that only this user can read. The copy has a temporary name until it is complete.

    Args:
        connection: A connection to the journal.
        path: Path of the copy.
        check: Called repeatedly. If it raises an exception, copying stops with that exception.
    """
    part = path.with_name(f"{path.name}-part")
    with translate_errors(str(path)):
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        with _interruptible(connection, check):
            connection.execute("VACUUM INTO ?", (str(part),))
        with translate_errors(str(path)):
            _sync_to_disk(part)
            _publish_copy(part, path)
            _sync_to_disk(path.parent)
    finally:
        part.unlink(missing_ok=True)


def _publish_copy(temporary: Path, path: Path) -> None:
    """Rename the complete copy from `temporary` to `path`, but never replace an existing file.

    `rename` would replace a file. `link` does not, but some file systems lack links (FAT, many network shares). There,
    an empty file reserves the name, and the copy then replaces the empty file. A process that is killed in between
    leaves the empty file.
    """
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        try:
            temporary.rename(path)
        except BaseException:
            path.unlink()
            raise


@contextmanager
def _interruptible(connection: sqlite3.Connection, check: Callable[[], object]) -> Generator[None]:
    """Call `check` repeatedly while the `with` block runs SQL statements. If `check` raises an exception, stop the
    current statement and raise that exception.
    """
    failed = list[BaseException]()

    def should_interrupt() -> bool:
        try:
            check()
        except BaseException as error:  # for example, a cancellation
            failed.append(error)
        return bool(failed)

    connection.set_progress_handler(should_interrupt, _STEPS)
    try:
        yield
    except sqlite3.Error:
        if failed:
            raise failed[0] from None
        raise
    finally:
        connection.set_progress_handler(None, 0)


def _sync_to_disk(path: Path) -> None:
    """Sync a file, or the entries of a folder, to the disk."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)
