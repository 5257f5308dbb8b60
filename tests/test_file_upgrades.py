"""A SQLite file that is brought up to date while programs of several versions use it."""

import sqlite3
from contextlib import closing
from pathlib import Path
from shutil import copy

import pytest

from actors.errors import JournalDamaged, JournalError, JournalUnavailable
from actors.journal.storage import Entry
from actors.journal.storage.sqlite import SqliteStorage
from actors.journal.storage.sqlite.check import JournalFile
from actors.journal.storage.sqlite.locks import HostLock
from actors.journal.storage.sqlite.salvage import salvage
from tests.storages import begin, to
from tests.test_sqlite import GOLDEN, LOG

OLD = "name, key, fence, owner, last, size, tenant, target, state, opened, used, checksum"
"""What a program of version 1 writes of a session."""


def older(folder: Path) -> Path:
    """Return a file of version 1."""
    path = folder / "sessions.db"
    copy(next(each for each in GOLDEN if each.stem == "v1.2"), path)
    return path


def test_an_older_file_is_left_as_it_is_while_a_host_has_it_open(tmp_path: Path) -> None:
    path, host = older(tmp_path), "machine:1:a"
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("INSERT INTO host VALUES (?, 0)", (host,))
    before = path.read_bytes()
    lock = HostLock(path.with_name("sessions.db-host-machine-1-a"))
    with closing(SqliteStorage(path)) as storage:
        for _ in range(2):
            with pytest.raises(JournalUnavailable, match="format version 1, and a program that writes that"):
                storage.read("one")
        assert path.read_bytes() == before
        lock.close()
        assert storage.read("one") == list(LOG)


def test_an_older_program_that_has_the_file_open_cannot_write_a_row_that_leads_nowhere(
    tmp_path: Path,
) -> None:
    path = older(tmp_path)
    with closing(sqlite3.connect(path)) as old:
        row = old.execute(f"SELECT {OLD} FROM session WHERE name = 'one'").fetchone()
        with closing(SqliteStorage(path)) as storage:
            assert storage.read("one") == list(LOG)
            with pytest.raises(sqlite3.IntegrityError, match=r"session\.place"):
                old.execute(
                    f"INSERT OR REPLACE INTO session ({OLD}) VALUES ({','.join('?' * 12)})",
                    row,
                )
            old.rollback()
            assert storage.read("one") == list(LOG)


def test_a_program_whose_file_a_newer_one_brought_up_to_date_says_so_and_touches_it_no_more(
    tmp_path: Path,
) -> None:
    path = tmp_path / "sessions.db"
    with closing(SqliteStorage(path)) as storage:
        claim = begin(storage, "one")
        assert len(storage.read("one")) == 1
        with closing(sqlite3.connect(path)) as newer, newer:
            newer.execute("PRAGMA user_version = 4")
        for use in (
            lambda: storage.append([Entry("one", claim.fence, (to("b"),))]),
            lambda: storage.read("one"),
            lambda: storage.claim("two"),
        ):
            with pytest.raises(JournalError, match="format version 4 is newer than this program's, 3"):
                use()
        with closing(sqlite3.connect(path)) as newer, newer:
            newer.execute("PRAGMA user_version = 3")
        assert len(storage.read("one")) == 1


def test_an_older_file_that_is_too_damaged_to_be_brought_up_to_date_is_saved_as_it_is(
    tmp_path: Path,
) -> None:
    path = older(tmp_path)
    with closing(JournalFile(path)) as file:
        assert list(file.damage()) == []
        assert (file.sessions, file.records) == (3, 39)
    data = bytearray(path.read_bytes())
    with closing(sqlite3.connect(path)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'record'").fetchone()
    last = int.from_bytes(
        data[(root - 1) * 4096 + 8 :][:4]
    )  # of the pages below it: what is in no log but the last
    data[(last - 1) * 4096 : (last - 1) * 4096 + 100] = bytes(100)
    path.write_bytes(data)
    with closing(SqliteStorage(path)) as storage, pytest.raises(JournalDamaged):
        storage.open()
    with closing(JournalFile(path)) as file:
        assert {each.session for each in file.damage()} == {"", "every"}
    with closing(SqliteStorage(tmp_path / "saved.db")) as storage:
        kept = dict(salvage(path, storage))
        assert (kept["one"], kept["two"]) == (5, 6)
        assert storage.read("one") == list(LOG)
