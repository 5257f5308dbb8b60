"""A journal whose disk or lock fails: what is asked is refused, typed, and it works again when the cause is gone."""

import errno
import resource
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

from actors.errors import JournalUnavailable
from actors.storage import Entry
from actors.storage.sqlite import SqliteStorage
from tests.storages import begin, to

Fault: TypeAlias = Callable[[SqliteStorage], AbstractContextManager[None]]


@contextmanager
def locked(storage: SqliteStorage) -> Iterator[None]:
    """Hold the file as another program would."""
    other = sqlite3.connect(storage.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    yield
    other.rollback()
    other.close()


@contextmanager
def full(storage: SqliteStorage) -> Iterator[None]:
    """Let the file grow no more."""
    with storage._connections.transaction() as connection:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")
    yield
    with storage._connections.transaction() as connection:
        connection.execute("PRAGMA max_page_count = 1000000")


@contextmanager
def limited(storage: SqliteStorage) -> Iterator[None]:
    """Let no file of this process grow: a write is short, and the next is refused."""
    size = storage.path.with_name(f"{storage.path.name}-wal").stat().st_size + 6000
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def failing(_: SqliteStorage) -> Iterator[None]:
    """Have the disk of the lock fail, as no disk here can be made to."""

    def fails(*_: object) -> bool:
        raise OSError(errno.EIO, "Input/output error")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("actors.storage.sqlite.locks._locked", fails)
        yield


FAULTS: dict[str, Fault] = {
    "locked": locked,
    "full": full,
    "limited": limited,
    "failing": failing,
}


@pytest.mark.requirement("PROMISE-6")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_disk_is_typed_loses_nothing_and_is_over_when_its_cause_is(
    fault: str, tmp_path: Path
) -> None:
    storage = SqliteStorage(tmp_path / "sessions.db", patience=0.01)
    claim, written = begin(storage, "one"), 1
    for round_ in range(5):
        with FAULTS[fault](storage):
            written += refused_in_the_end(storage, claim.fence)
            assert len(storage.read("one")) == written
        assert storage.append([Entry("one", claim.fence, (to(f"{round_}"),))]) == [written + 1]
        written += 1
    storage.close()
    assert len(SqliteStorage(storage.path).read("one")) == written


def refused_in_the_end(storage: SqliteStorage, fence: int) -> int:
    """Append until that is refused as it should be, and return how often it was not."""
    for number in range(100):
        try:
            storage.append([Entry("one", fence, (to(f"{number}" * 5000),))])
        except JournalUnavailable:
            return number
    raise AssertionError("nothing was refused")
