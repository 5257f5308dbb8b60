"""The look at a write-ahead log: beside those who write it, and however long a crash left it."""

import errno
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from shutil import copy
from tempfile import TemporaryDirectory

import pytest

from actors import Runtime
from actors.errors import JournalDamaged, JournalUnavailable
from actors.journal.storage import Durability, Entry
from actors.journal.storage.sqlite import SqliteStorage
from actors.journal.storage.sqlite.check import JournalFile
from actors.journal.storage.sqlite.wal import check_wal
from tests.journal.storages import begin, to

PAGE = 4096
_pread = os.pread


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """Give a journal whose write-ahead log has many transactions, and that is open."""
    with closing(SqliteStorage(tmp_path / "sessions.db")) as storage:
        claim = begin(storage, "one")
        for number in range(20):
            storage.append([Entry("one", claim.fence, (to(f"{number}"),))])
        yield storage.path


CRASH = """
import os, sys
from actors.journal.storage import Entry
from actors.journal.storage.sqlite import SqliteStorage
from tests.journal.storages import begin, to
storage = SqliteStorage(sys.argv[1], durability=sys.argv[2])
claim = begin(storage, "one")
for number in range(20):
    storage.append([Entry("one", claim.fence, (to(str(number)),))])
os._exit(0)
"""
"""A host that writes twenty events, each in a transaction, and ends as by `kill -9`."""


@cache
def left_by_a_crash(durability: Durability) -> dict[str, bytes]:
    """Have a host crash; return the files that it leaves, by their names."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "sessions.db"
        subprocess.run([sys.executable, "-c", CRASH, str(path), durability], check=True)
        return {each.name: each.read_bytes() for each in Path(folder).iterdir()}


def crashed(path: Path, durability: Durability, frame: int) -> tuple[bytes, bytes]:
    """Make the files that a crash leaves, and damage a frame of the write-ahead log; return the file and the log."""
    for name, data in left_by_a_crash(durability).items():
        path.with_name(name).write_bytes(data)
    log = bytearray(log_of(path).read_bytes())
    log[32 + (frame - 1) * (24 + PAGE) + 100] ^= 1
    log_of(path).write_bytes(log)
    return path.read_bytes(), log_of(path).read_bytes()


def copy_of(path: Path) -> Path:
    """Return the one copy that was kept of a damaged journal."""
    (copy,) = path.parent.glob(f"{path.name}-damaged-????????????")
    return copy


@pytest.mark.anyio
@pytest.mark.requirement("PROMISE-13")
@pytest.mark.parametrize("frame", [1, 45])
async def test_a_journal_that_lost_acknowledged_events_is_refused_and_not_changed_at_level_power(
    frame: int, tmp_path: Path
) -> None:
    path = tmp_path / "sessions.db"
    before = crashed(path, "power", frame)
    for _ in range(2):
        with pytest.raises(JournalDamaged, match=f"sessions.db-wal: frame {frame} has changed, and whole"):
            async with Runtime(journal=SqliteStorage(path)):
                pass
        assert (path.read_bytes(), log_of(path).read_bytes()) == before


@pytest.mark.anyio
@pytest.mark.requirement("PROMISE-13")
async def test_a_journal_that_lost_acknowledged_events_is_copied_and_the_loss_is_logged_at_level_process(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "sessions.db"
    before = crashed(path, "process", 45)
    for _ in range(2):
        async with Runtime(journal=SqliteStorage(path, durability="process")) as runtime:
            (stored,) = await runtime.journal.list()
            assert 0 < stored.events < 21
    copy = copy_of(path)
    assert (copy.read_bytes(), log_of(copy).read_bytes()) == before
    (line,) = [line for line in caplog.messages if "journal_damaged" in line]
    assert "frame 45 has changed, and whole ones follow" in line
    assert str(copy) in line
    with closing(JournalFile(copy)) as file:
        assert [each.what[-45:] for each in file.damage()] == [
            "-wal: frame 45 has changed, and whole ones follow"[-45:]
        ]


@pytest.mark.requirement("PROMISE-13")
def test_a_journal_that_lost_acknowledged_events_is_not_opened_before_the_copy_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sessions.db"
    before = crashed(path, "process", 45)

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with closing(SqliteStorage(path, durability="process")) as storage:
        with monkeypatch.context() as patch:
            patch.setattr("actors.journal.storage.sqlite.evidence.copyfileobj", fail)
            with pytest.raises(JournalUnavailable, match="No space left"):
                storage.open()
        assert (path.read_bytes(), log_of(path).read_bytes()) == before
        storage.open()
    copy = copy_of(path)
    assert (copy.read_bytes(), log_of(copy).read_bytes()) == before


def torn(times: int) -> Callable[[int, int, int], bytes]:
    """Return what reads a file where its second frame is half written the first times that it is read."""
    left = [times]

    def read(file: int, count: int, at: int) -> bytes:
        found = _pread(file, count, at)
        if at != 32 + 24 + PAGE or count < PAGE or not left[0]:
            return found
        left[0] -= 1
        return found[:1000] + bytes(255 - byte for byte in found[1000:])

    return read


@pytest.mark.parametrize(("times", "is_damaged"), [(0, False), (1, False), (100, True)])
def test_what_is_half_written_when_it_is_looked_at_is_damage_only_if_it_stays_so(
    times: int, is_damaged: bool, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "pread", torn(times))
    with closing(JournalFile(path)) as file:
        assert [each.what[-60:] for each in file.damage()] == (
            [f"{path}-wal: frame 2 has changed, and whole ones follow"[-60:]] if is_damaged else []
        )


def test_of_what_a_crash_left_before_its_commit_only_the_heads_of_frames_are_read_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(database(tmp_path / "crashed.db")) as connection:
        connection.execute("PRAGMA cache_size = 5")
        connection.execute("BEGIN")
        for _ in range(100):
            connection.execute("INSERT INTO t VALUES (randomblob(9999))")
        left = log_of(tmp_path / "crashed.db").read_bytes()
    log_of(tmp_path / "left.db").write_bytes(left)
    asked = list[int]()

    def read(file: int, count: int, at: int) -> bytes:
        asked.append(count)
        return _pread(file, count, at)

    monkeypatch.setattr(os, "pread", read)
    check_wal(tmp_path / "left.db")
    assert len(left) > 200 * PAGE
    assert max(asked) <= 24 + PAGE
    assert sum(asked) < len(left) / 2


def test_a_torn_end_is_none_of_damage_where_a_write_that_failed_left_more_behind_it(tmp_path: Path) -> None:
    short, long = tmp_path / "short.db", tmp_path / "long.db"
    with closing(database(long)) as connection:
        for path in (long, log_of(long)):
            copy(path, path.with_name(path.name.replace("long", "short")))
        begun = log_of(long).stat().st_size
        connection.execute("INSERT INTO t VALUES (randomblob(99999))")
        failed = log_of(long).read_bytes()
    with closing(sqlite3.connect(short, isolation_level=None)) as connection:
        connection.execute("INSERT INTO t VALUES (randomblob(9999))")
        written = bytearray(log_of(short).read_bytes())
    assert begun < len(written) < len(failed)
    both = written + failed[len(written) :]
    log_of(tmp_path / "both.db").write_bytes(both)
    check_wal(tmp_path / "both.db")
    both[begun + 500] ^= 1
    log_of(tmp_path / "both.db").write_bytes(both)
    check_wal(tmp_path / "both.db")
    both[begun // 2] ^= 1
    log_of(tmp_path / "both.db").write_bytes(both)
    with pytest.raises(JournalDamaged, match="has changed, and whole ones follow"):
        check_wal(tmp_path / "both.db")


def database(path: Path) -> sqlite3.Connection:
    """Return a new database of a page, in whose write-ahead log are some transactions."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute("PRAGMA wal_autocheckpoint = 0").fetchall()
    connection.execute("CREATE TABLE t (a)")
    for _ in range(5):
        connection.execute("INSERT INTO t VALUES (randomblob(9999))")
    return connection


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


@pytest.mark.parametrize(("frame", "is_damaged"), [(41, False), (40, True)])
def test_a_head_that_two_sectors_share_tells_no_commit_of_what_was_lost_with_the_power(
    frame: int, is_damaged: bool, tmp_path: Path
) -> None:
    """Of the last transaction, in frames 20 to 60, one frame is lost, and the head of one is as it was before."""
    with closing(database(tmp_path / "torn.db")) as connection:
        while log_of(tmp_path / "torn.db").stat().st_size < 32 + 20 * (24 + PAGE):
            connection.execute("INSERT INTO t VALUES (randomblob(10))")
        connection.execute("INSERT INTO t VALUES (zeroblob(200000))")
        log = bytearray(log_of(tmp_path / "torn.db").read_bytes())
    for at, before in ((30, bytes(24 + PAGE)), (frame, b"\0\0\0\4\0\0\1\xea")):
        place = 32 + at * (24 + PAGE)
        log[place : place + len(before)] = before
    log_of(tmp_path / "left.db").write_bytes(log)
    if is_damaged:  # a head in one sector is as it was written
        with pytest.raises(JournalDamaged, match="and whole ones follow"):
            check_wal(tmp_path / "left.db")
    else:
        check_wal(tmp_path / "left.db")
