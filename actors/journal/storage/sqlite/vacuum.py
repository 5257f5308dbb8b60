"""Rewrite a journal's file without deleted data: to copy it while other processes write, or to erase deleted sessions.

A copy contains everything that was committed before copying began (`VACUUM INTO`). SQLite builds the copy from rows
instead of pages. So the copy contains no data of deleted sessions, and damaged pages are detected. Writers do not wait,
but the write-ahead log grows until the copy is complete.

SQLite overwrites deleted rows (`secure_delete`). But when it splits or joins pages, copies of rows remain in unused
parts of pages, and the write-ahead log contains older versions of pages. So a deleted session is erased in three steps:

1. The rows are deleted.
2. Later, the file is rewritten from the remaining rows (`VACUUM`).
3. The write-ahead log is moved into the file and emptied. A reader may delay this step.

`meta` contains the number of all deletions and the number at the last rewrite. If they differ, the file needs a
rewrite, even if a process was killed between two steps.
"""

import errno
import glob
import os
import sqlite3
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from sqlite3 import Connection

from actors.errors import ConfigError
from actors.journal.storage.directory import RemainingData
from actors.journal.storage.sqlite.faults import translate_errors
from actors.journal.storage.sqlite.format import DELETIONS, REWRITTEN, read_meta, write_meta

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


def record_rewrite(connection: Connection) -> None:
    """Record that the file has been rewritten since the last deletion."""
    deletions = read_meta(connection, DELETIONS) or 0
    for key in (DELETIONS, REWRITTEN):
        write_meta(connection, key, deletions)


def is_rewritten(connection: Connection) -> bool:
    """Return True if the file was rewritten after the last deletion and has no free pages."""
    (free_pages,) = connection.execute("PRAGMA freelist_count").fetchone()
    deletions = read_meta(connection, DELETIONS)
    return not free_pages and deletions is not None and deletions == read_meta(connection, REWRITTEN)


def find_remaining_data(
    path: Path, connection: Connection, *, is_emptied: bool, reader_pids: Sequence[int]
) -> Iterator[RemainingData]:
    """Yield the files that may contain data of deleted sessions.

    Args:
        path: The journal file.
        connection: A connection to the file, while other writers are excluded.
        is_emptied: Whether the write-ahead log is empty now.
        reader_pids: Ids of the processes that are known to read the file.
    """
    log = path.with_name(f"{path.name}-wal")
    if not is_emptied:
        for place in (path, log):
            yield RemainingData(str(place), _explain_delay(reader_pids), _file_size(place), is_temporary=True)
    elif not is_rewritten(connection) or _file_size(path) != _expected_size(connection):
        reason = "unused parts of its pages may contain deleted data; rewrite the file with runtime.journal.vacuum()"
        yield RemainingData(str(path), reason, _file_size(path))
    for copy in sorted(path.parent.glob(f"{glob.escape(path.name)}-damaged-*")):
        yield RemainingData(
            str(copy),
            "this is a copy of the damaged file; delete it when it is no longer needed",
            _file_size(copy),
        )


def _explain_delay(reader_pids: Sequence[int]) -> str:
    """Return the reason why the write-ahead log could not be emptied."""
    who = f"process {' and '.join(map(str, reader_pids))}" if reader_pids else "another program"
    return f"{who} still reads the earlier state of the file; end that process, and delete again"


def _file_size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _expected_size(connection: Connection) -> int:
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (bytes_of_page,) = connection.execute("PRAGMA page_size").fetchone()
    return int(pages * bytes_of_page)
