"""Manage the two connections of a storage: one for transactions that write, and one for reads.

A process holds the write lock while it writes, runs a checkpoint or closes a connection. Checkpoints never run
automatically, except that SQLite runs one when the last connection closes. One thread may write while another reads. A
lock per connection prevents concurrent use by two threads. Code that needs both locks acquires the writer's lock first.
"""

import os
import sqlite3
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock, RLock
from typing import TypeAlias

from actors.core.stats.stats import StorageSizes
from actors.errors import JournalDamaged, JournalUnavailable
from actors.journal.storage import Durability
from actors.journal.storage.directory import RemainingData
from actors.journal.storage.sqlite.faults import translate_errors
from actors.journal.storage.sqlite.format import check_version, prepare
from actors.journal.storage.sqlite.locks import Database, WriteLock, find_readers
from actors.journal.storage.sqlite.vacuum import (
    check_target,
    copy_into,
    find_remaining_data,
    is_rewritten,
    record_rewrite,
)
from actors.journal.storage.sqlite.wal import check_wal, copy_damaged_log

CHECKPOINT = 2048
"""Number of pages in the write-ahead log after which a checkpoint is due."""
OVERDUE = 4 * CHECKPOINT
"""Number of pages after which a checkpoint waits for the reader, because SQLite cannot move the complete log during a
read.
"""
MAX_EXTENDED = 4120 * CHECKPOINT
"""Maximum size in bytes to which the write-ahead log is extended in advance."""
_CACHED = 256
_PAGE = 4096

FileId: TypeAlias = tuple[int, int]
"""A file's device number and inode number."""


class Connections:
    """The connections to one journal file. They are opened on first use, and reopened when needed after `close`.

    Args:
        path: The journal file.
        durability: The worst kind of failure that a commit must survive.
        patience: Seconds to wait for other writing processes.
    """

    path: Path

    def __init__(self, path: Path, durability: Durability, patience: float) -> None:
        self.path, self._durability, self._patience = path, durability, patience
        self._wal, self._extended_size = path.with_name(f"{path.name}-wal"), 0
        self._index = path.with_name(f"{path.name}-shm")
        self._lock = WriteLock(path.with_name(f"{path.name}-lock"), patience)
        self._writing, self._reading = RLock(), Lock()
        self._database = Database(path)
        self._outer: sqlite3.Connection | None = None  # the connection of the running transaction
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self._data_version = -1  # changes when another process writes; -1 if unknown
        self._files: tuple[FileId | None, ...] = ()  # ids of the files that the writing connection has open
        self.pages: int = 0
        """Approximate number of pages written since the last checkpoint."""
        self.deleted: bool = False
        """True if the write-ahead log may still contain deleted data."""
        self._unmoved = 0  # pages that the last checkpoint left in the log
        self.sizes: StorageSizes = StorageSizes()
        """The sizes of the files after the last transaction."""
        self.changed: bool = True
        """True if another process may have written, so that cached rows are outdated."""

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection]:
        """Provide a connection with a transaction that excludes all other writers.

        The transaction is committed at the end of the `with` block. With durability `power`, the commit is synced to
        the disk. A nested transaction is part of the outer transaction.
        """
        self._database.check_own()
        with self._writing, translate_errors(str(self.path)):
            if self._outer is not None:
                yield self._outer
                return
            with self._lock:
                connection = self._writer = self._writer or self._open_writer()
                self._check_files_in_place()
                with self._transaction(connection):
                    yield connection
                self._checkpoint(connection)
                self._extend_wal()
                self._record_sizes()

    @contextmanager
    def _transaction(self, connection: sqlite3.Connection) -> Generator[None]:
        connection.execute("BEGIN IMMEDIATE")
        try:
            (seen,) = connection.execute("PRAGMA data_version").fetchone()
            if seen != self._data_version:
                self.changed = True
                check_version(connection, str(self.path))
            self._outer = connection
            yield
            connection.execute("COMMIT")
            self._data_version = seen
        except BaseException:
            self._data_version = -1
            with suppress(sqlite3.Error):
                connection.rollback()
            raise
        finally:
            self._outer = None

    def remove_deleted(self, max_bytes: int | None) -> list[RemainingData]:
        """Remove the data of deleted sessions from the files, and return the data that could not be removed.

        If sessions were deleted since the last rewrite, the file is rewritten. Other processes cannot write meanwhile.
        `max_bytes` is the size in bytes of the largest file to rewrite. None means no limit.
        """
        self._database.check_own()
        with self._writing, translate_errors(str(self.path)), self._lock:
            connection = self._writer = self._writer or self._open_writer()
            self._check_files_in_place()
            if not is_rewritten(connection) and (max_bytes is None or self.path.stat().st_size <= max_bytes):
                self._rewrite_file(connection)
            self.deleted = True  # so that the checkpoint empties the log
            self._checkpoint(connection)
            self._record_sizes()
            is_emptied = not (self.deleted or self._wal.stat().st_size)
            reader_pids = [] if is_emptied else find_readers(self.path)
            return list(
                find_remaining_data(self.path, connection, is_emptied=is_emptied, reader_pids=reader_pids)
            )

    def _rewrite_file(self, connection: sqlite3.Connection) -> None:
        self.deleted = True
        connection.execute("VACUUM")
        connection.execute("BEGIN IMMEDIATE")
        record_rewrite(connection)
        connection.execute("COMMIT")

    def _check_files_in_place(self) -> None:
        """Raise an error if the open files were moved or deleted. A write would seem to succeed, and its data would be
        lost.
        """
        files = tuple([_file_id(path) for path in (self.path, self._wal, self._index)])
        self._files = self._files or files
        if files != self._files or None in files[:2]:
            raise self._replacement_error()

    def _check_index(self) -> None:
        """Raise an error if the write-ahead log's index file was replaced. Other processes would then update the new
        file instead of the file that is open here.
        """
        if self._files and _file_id(self._index) not in (None, self._files[-1]):
            raise self._replacement_error()

    def _replacement_error(self) -> JournalUnavailable:
        return JournalUnavailable(
            f"{self.path}: this file, or its -wal or -shm file, was replaced or deleted while it was open; "
            "restore the original files, or stop all programs that use the journal"
        )

    def _ensure_prepared(self) -> None:
        """Create the file if it is missing, and check its version. Only the first read of a storage needs this."""
        self._database.check_own()
        if self._reader is None and self._writer is None:
            with self.transaction():
                pass

    @contextmanager
    def read_snapshot(self) -> Generator[sqlite3.Connection]:
        """Provide a connection with a snapshot of the file. Only one caller can use it at a time.

        A read neither waits for a transaction in another thread nor delays it.
        """
        self._ensure_prepared()
        with self._reading, translate_errors(str(self.path)):
            if self._reader is None:
                self._check_files_in_place()
                self._reader = self._connect()
            self._check_index()
            self._reader.execute("BEGIN")
            try:
                check_version(self._reader, str(self.path))
                yield self._reader
            finally:
                self._reader.rollback()

    def copy_journal(self, path: Path, check: Callable[[], object]) -> None:
        """Copy the journal to a new file while other processes write. `check` may stop the copy; see `copy_into`."""
        check_target(path)
        self._ensure_prepared()
        with translate_errors(str(self.path)):
            with self._reading:
                self._check_files_in_place()
                self._check_index()
                connection = self._connect()
            try:
                copy_into(connection, path, check)
            finally:
                # SQLite runs a checkpoint when the last connection closes, so hold the write lock
                with self._writing, self._lock:
                    self._database.close(connection)

    def _checkpoint(self, connection: sqlite3.Connection) -> None:
        """Move the write-ahead log into the file if the log is long, or if it must be emptied after a deletion.

        A failed checkpoint is not reported, because commits are durable without it. The next transaction retries it. A
        checkpoint fails if the disk is full, or if the log must be emptied while another process reads. The checkpoint
        waits for the reader of this process only if the log must be emptied or has at least `OVERDUE` pages. The wait
        is short, because a read covers at most one page of a session's log.
        """
        if not self.deleted and self.pages < CHECKPOINT:
            return
        if not self._reading.acquire(blocking=self.deleted or self.pages >= OVERDUE):
            return
        how = "TRUNCATE" if self.deleted else "PASSIVE"
        try:
            with suppress(sqlite3.Error):
                connection.execute("PRAGMA busy_timeout = 0").fetchall()
                ((busy, frames, moved),) = connection.execute(f"PRAGMA wal_checkpoint({how})").fetchall()
                self.deleted, self.pages = self.deleted and bool(busy), 0
                self._unmoved = max(0, frames - moved)
        finally:
            self._reading.release()
        connection.execute(f"PRAGMA busy_timeout = {self._patience * 1000:.0f}").fetchall()

    def _record_sizes(self) -> None:
        """Record the current sizes of the file and its write-ahead log, for statistics."""
        with suppress(OSError):
            file, log = self.path.stat().st_size, self._wal.stat().st_size
            self.sizes = StorageSizes(file, log, min(log, _PAGE * (self._unmoved + self.pages)))

    def _extend_wal(self) -> None:
        """If the write-ahead log has grown, double its length by appending zeros, up to `MAX_EXTENDED` bytes.

        Later commits then overwrite zeros instead of extending the file. A sync takes several times as long if the
        file's length has changed.
        """
        if self._durability != "power" or (size := self._wal.stat().st_size) == self._extended_size:
            return
        with suppress(OSError), self._wal.open("ab") as file:
            file.write(bytes(max(0, min(size, MAX_EXTENDED - size))))
        self._extended_size = self._wal.stat().st_size

    def close(self) -> None:
        """Close the connections. Committed data is safe even if closing fails."""
        if self._database.is_inherited:
            return
        with self._writing, self._reading, translate_errors(str(self.path)):
            if self._writer is not None or self._reader is not None:
                with self._lock:
                    for connection in (self._reader, self._writer):
                        if connection is not None:
                            self._database.close(connection)
            self._reader = self._writer = None
            self._data_version, self._files = -1, ()
            self._lock.close()

    def _open_writer(self) -> sqlite3.Connection:
        """Check the write-ahead log, and open the writing connection. Create the file and its tables if necessary."""
        self._check_wal()
        # The log may contain data that was deleted by a process that has ended.
        if self._wal.exists() and self._wal.stat().st_size:
            self.deleted = True
        if not self.path.exists():  # SQLite would create a file that other users can read
            os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        connection = self._connect()
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
            connection.execute("BEGIN IMMEDIATE")
            prepare(connection, self.path)
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                connection.rollback()
            self._database.close(connection)
            raise
        return connection

    def _check_wal(self) -> None:
        """Check the write-ahead log for damage.

        With durability `process`, damage is not an error. A copy of the files is saved, because SQLite will discard the
        damaged end of the log.

        Raises:
            JournalDamaged: The log is damaged, and the durability is `power`.
        """
        try:
            check_wal(self.path)
        except JournalDamaged as damage:
            if self._durability == "power":
                raise
            copy_damaged_log(self.path, damage)

    def _connect(self) -> sqlite3.Connection:
        connection = self._database.connect(
            lambda: sqlite3.connect(
                self.path,
                timeout=self._patience,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=_CACHED,
            )
        )
        try:
            self._configure_connection(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _configure_connection(self, connection: sqlite3.Connection) -> None:
        synchronous = "FULL" if self._durability == "power" else "NORMAL"
        for pragma in (
            f"synchronous = {synchronous}",
            "wal_autocheckpoint = 0",
            "secure_delete = ON",
            "trusted_schema = OFF",
        ):
            connection.execute(f"PRAGMA {pragma}").fetchall()


def _file_id(path: Path) -> FileId | None:
    """Return the id of the file at `path`, or None if the file is missing. A replacement file has a different id."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
