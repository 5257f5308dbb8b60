"""Faults of a journal's disk or lock: requests fail with a typed error, and work again when the cause is removed."""

import errno
import os
import resource
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import pytest

from actors.errors import JournalUnavailable
from actors.journal.storage import Entry
from actors.journal.storage.sqlite import SqliteStorage
from actors.journal.storage.sqlite.locks import WriteLock
from tests.journal.storages import begin, to
from tests.runtime.test_takeover import Child

Fault: TypeAlias = Callable[[SqliteStorage], AbstractContextManager[None]]


@contextmanager
def file_lock(storage: SqliteStorage) -> Iterator[None]:
    """Lock the file as another program would."""
    other = sqlite3.connect(storage.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.rollback()
        other.close()


@contextmanager
def full_disk(storage: SqliteStorage) -> Iterator[None]:
    """Prevent the database file from growing."""
    with storage._connections.transaction() as connection:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")
    try:
        yield
    finally:
        with storage._connections.transaction() as connection:
            connection.execute("PRAGMA max_page_count = 1000000")


@contextmanager
def file_size_limit(storage: SqliteStorage) -> Iterator[None]:
    """Prevent the files of this process from growing: one write is short, and the next is refused."""
    size = storage.path.with_name(f"{storage.path.name}-wal").stat().st_size + 6000
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def failing_lock(_: SqliteStorage) -> Iterator[None]:
    """Simulate a failing disk for the lock file, which no real disk here can do."""

    def fails(*_: object) -> bool:
        raise OSError(errno.EIO, "Input/output error")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("actors.journal.storage.sqlite.locks._try_lock", fails)
        yield


@contextmanager
def folder_moved_away(storage: SqliteStorage) -> Iterator[None]:
    """Move the folder away."""
    folder = storage.path.parent
    away = folder.with_name(f"{folder.name}-away")
    folder.rename(away)
    try:
        yield
    finally:
        away.rename(folder)


@contextmanager
def file_replacement(storage: SqliteStorage) -> Iterator[None]:
    """Replace the file by another."""
    away = storage.path.with_suffix(".away")
    storage.path.rename(away)
    storage.path.touch()
    try:
        yield
    finally:
        away.rename(storage.path)


@contextmanager
def without_log(storage: SqliteStorage) -> Iterator[None]:
    """Move the write-ahead log away."""
    with _without(storage.path.with_name(f"{storage.path.name}-wal")):
        yield


@contextmanager
def without_index(storage: SqliteStorage) -> Iterator[None]:
    """Delete the index of the write-ahead log. The next process to open the file creates a separate one."""
    with _without(storage.path.with_name(f"{storage.path.name}-shm")):
        yield


@contextmanager
def _without(path: Path) -> Iterator[None]:
    away = path.with_suffix(".away")
    path.rename(away)
    try:
        yield
    finally:
        away.rename(path)


@contextmanager
def unprivileged_user() -> Iterator[None]:
    """Run as a user that file modes apply to."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


AWAY: dict[str, Fault] = {
    "moved": folder_moved_away,
    "replaced": file_replacement,
    "without log": without_log,
    "without index": without_index,
}
FAULTS: dict[str, Fault] = AWAY | {
    "locked": file_lock,
    "full": full_disk,
    "limited": file_size_limit,
    "failing": failing_lock,
}


@pytest.mark.requirement("PROMISE-6")
@pytest.mark.parametrize("fault", FAULTS)
def test_writes_fail_with_a_typed_error_during_a_disk_fault_and_lose_nothing(
    fault: str, tmp_path: Path
) -> None:
    (folder := tmp_path / "logs").mkdir()
    storage = SqliteStorage(folder / "sessions.db", patience=0.01)
    claim, written = begin(storage, "one"), 1
    if fault in AWAY:
        assert len(storage.read("one")) == 1  # an open file stays readable
    for round_ in range(5):
        with FAULTS[fault](storage):
            written += appends_before_refusal(storage, claim.fence)
            assert len(storage.read("one")) == written
        assert storage.append([Entry("one", claim.fence, (to(f"{round_}"),))]) == [written + 1]
        written += 1
    storage.close()
    assert len(SqliteStorage(storage.path).read("one")) == written


def appends_before_refusal(storage: SqliteStorage, fence: int) -> int:
    """Append until an append is refused as expected; return the number of appends before that."""
    for number in range(100):
        try:
            storage.append([Entry("one", fence, (to(f"{number}" * 5000),))])
        except JournalUnavailable:
            return number
    raise AssertionError("no append was refused")


@pytest.mark.parametrize("fault", AWAY)
def test_a_journal_that_is_not_open_is_not_read_from_a_replaced_file(fault: str, tmp_path: Path) -> None:
    (folder := tmp_path / "logs").mkdir()
    storage = SqliteStorage(folder / "sessions.db")
    begin(storage, "one")
    with AWAY[fault](storage), pytest.raises(JournalUnavailable):
        storage.read("one")
    assert len(storage.read("one")) == 1
    storage.close()


def test_a_wal_with_a_replaced_index_is_no_longer_read(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "sessions.db")
    begin(storage, "one")
    assert len(storage.read("one")) == 1
    with without_index(storage):
        index = tmp_path / "sessions.db-shm"
        index.touch()
        with pytest.raises(JournalUnavailable, match="file, was replaced or deleted while it was open"):
            storage.read("one")
        index.unlink()
        assert len(storage.read("one")) == 1
    storage.close()


def test_a_read_only_file_is_refused_until_it_is_writable() -> None:
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        storage = SqliteStorage(Path(folder) / "sessions.db")
        claim = begin(storage, "one")
        storage.close()
        storage.path.chmod(0o444)
        storage.path.with_name("sessions.db-lock").chmod(0o666)
        with unprivileged_user():
            for _ in range(3):
                with pytest.raises(JournalUnavailable, match="it is read-only; make it writable"):
                    storage.append([Entry("one", claim.fence, (to("a"),))])
        storage.close()
        for file in Path(folder).iterdir():  # SQLite created the files beside it with the same mode
            file.chmod(0o666)
        with unprivileged_user():
            assert storage.append([Entry("one", claim.fence, (to("a"),))]) == [2]
            storage.close()


def test_a_deleted_lock_file_still_excludes_a_second_writer(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db-lock"
    one, two = WriteLock(path, 0.01), WriteLock(path, 0.01)
    with one:
        assert path.exists()
    path.unlink()
    with one, pytest.raises(JournalUnavailable, match=r"another process \(pid \d+\) has been writing"), two:
        raise AssertionError("both processes hold the lock")
    with two:
        assert path.exists()
    one.close()
    two.close()


def test_a_lock_error_names_the_process_that_holds_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    host = Child(str(path), "tests.runtime.takeover_child", "600")
    try:
        assert host.read_words() == ["open"]
        assert host.ask("claim", "one") == ["claimed", "1", "0"]
        assert host.ask("write", "one", 1) == ["writing"]
        with (
            closing(SqliteStorage(path, patience=0.05)) as mine,
            pytest.raises(
                JournalUnavailable, match=rf"-lock: another process \(pid {host.pid}\) has been writing"
            ),
        ):
            mine.claim("one")
    finally:
        host.end()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports the holder of an SQLite lock")
def test_an_sqlite_lock_error_names_the_process_that_holds_the_lock(tmp_path: Path) -> None:
    with closing(SqliteStorage(tmp_path / "sessions.db", patience=0.05)) as storage:
        storage.open()
        with (
            file_lock(storage),
            pytest.raises(JournalUnavailable, match=rf"another program \(pid {os.getpid()}\); end"),
        ):
            storage.claim("one")
