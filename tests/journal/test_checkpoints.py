"""SQLite checkpoints: moving the write-ahead log into the file never fails a committed write."""

import sqlite3
from pathlib import Path
from typing import Literal

import pytest

from actors.core.log.events import AskStarted
from actors.core.values.content import Message, Text
from actors.core.values.packed import pack
from actors.journal.storage import Entry
from actors.journal.storage.sqlite import SqliteStorage, connection
from tests.journal.storages import begin, to

SECRET = "the text that the user deletes"


class FullDisk(sqlite3.Connection):
    """A connection that finds the disk full during checkpoints."""

    def execute(self, sql: str, *parameters: object) -> sqlite3.Cursor:
        if "wal_checkpoint" in sql:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        return super().execute(sql, *parameters)  # type: ignore[arg-type]


def test_a_commit_is_acknowledged_even_if_its_checkpoint_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "CHECKPOINT", 1)
    connect, path = sqlite3.connect, tmp_path / "sessions.db"
    with monkeypatch.context() as disk:
        disk.setattr(sqlite3, "connect", lambda *args, **options: connect(*args, factory=FullDisk, **options))
        storage = SqliteStorage(path)
        claim = begin(storage, "one")
        assert storage.append([Entry("one", claim.fence, (to("b"),))]) == [2]
        storage.close()
    again = SqliteStorage(path)
    assert len(again.read("one")) == 2
    again.close()


def test_a_checkpoint_runs_before_the_wal_grows_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "CHECKPOINT", 64)
    storage = SqliteStorage(tmp_path / "sessions.db", durability="process")
    claim = begin(storage, "one")
    for _ in range(400):
        storage.append([Entry("one", claim.fence, (to("b"),))])
    assert (tmp_path / "sessions.db-wal").stat().st_size < 200 * 4096
    storage.close()


@pytest.mark.parametrize("durability", ["process", "power"])
def test_the_durability_level_power_preallocates_the_wal(
    durability: Literal["process", "power"], tmp_path: Path
) -> None:
    storage, lengths = SqliteStorage(tmp_path / "sessions.db", durability=durability), set[int]()
    claim = begin(storage, "one")
    for _ in range(100):
        storage.append([Entry("one", claim.fence, (to("b"),))])
        lengths.add((tmp_path / "sessions.db-wal").stat().st_size)
    assert len(lengths) < 8 if durability == "power" else len(lengths) == 100
    assert max(lengths) < connection.MAX_EXTENDED
    storage.close()


def test_preallocation_of_the_wal_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MAX_EXTENDED", 40 * 4120)
    storage, path = SqliteStorage(tmp_path / "sessions.db"), tmp_path / "sessions.db-wal"
    claim = begin(storage, "one")
    while (size := path.stat().st_size) < connection.MAX_EXTENDED:
        storage.append([Entry("one", claim.fence, (to("b"),))])
    assert size < connection.MAX_EXTENDED + 10 * 4120  # an append is several frames
    while path.stat().st_size == size:
        storage.append([Entry("one", claim.fence, (to("b"),))])
    assert path.stat().st_size < size + 10 * 4120
    storage.close()


def test_deleted_data_leaves_the_wal_after_its_last_reader(tmp_path: Path) -> None:
    storage, path = SqliteStorage(tmp_path / "sessions.db", patience=0.05), tmp_path / "sessions.db"
    claim = begin(storage, "one")
    storage.append([Entry("one", claim.fence, (AskStarted(1, pack(Message("user", (Text(SECRET),)))),))])
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM record").fetchone() == (2,)
    storage.delete("one")
    assert contains_secret(tmp_path)
    reader.close()
    begin(storage, "two")
    assert not contains_secret(tmp_path)
    assert storage.read("one") == []
    storage.close()


def test_a_deletion_without_readers_removes_data_at_once(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "sessions.db")
    claim = begin(storage, "one")
    storage.append([Entry("one", claim.fence, (AskStarted(1, pack(Message("user", (Text(SECRET),)))),))])
    assert contains_secret(tmp_path)
    storage.delete("one")
    assert not contains_secret(tmp_path)
    storage.close()


def contains_secret(folder: Path) -> bool:
    """Return True if any file contains the secret."""
    return any(SECRET.encode() in file.read_bytes() for file in folder.iterdir())
