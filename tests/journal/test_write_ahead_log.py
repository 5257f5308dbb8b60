"""The check of a write-ahead log: during writes, and for logs of any length left by a crash."""

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
    """An open journal with many transactions in its write-ahead log."""
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
"""A host that writes twenty events, one per transaction, and ends as after `kill -9`."""


@cache
def crash_files(durability: Durability) -> dict[str, bytes]:
    """Run a host that crashes; return the files that it leaves, by name."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "sessions.db"
        subprocess.run([sys.executable, "-c", CRASH, str(path), durability], check=True)
        return {each.name: each.read_bytes() for each in Path(folder).iterdir()}


def damaged_crash_files(path: Path, durability: Durability, frame: int) -> tuple[bytes, bytes]:
    """Recreate the files of a crash with one damaged frame; return the content of the file and of the log."""
    for name, data in crash_files(durability).items():
        path.with_name(name).write_bytes(data)
    log = bytearray(log_of(path).read_bytes())
    log[32 + (frame - 1) * (24 + PAGE) + 100] ^= 1
    log_of(path).write_bytes(log)
    return path.read_bytes(), log_of(path).read_bytes()


def copy_of(path: Path) -> Path:
    """Return the single copy of a damaged journal."""
    (copy,) = path.parent.glob(f"{path.name}-damaged-????????????")
    return copy


@pytest.mark.anyio
@pytest.mark.requirement("PROMISE-13")
@pytest.mark.parametrize("frame", [1, 45])
async def test_at_the_durability_level_power_a_journal_that_lost_events_is_refused_and_kept(
    frame: int, tmp_path: Path
) -> None:
    path = tmp_path / "sessions.db"
    before = damaged_crash_files(path, "power", frame)
    for _ in range(2):
        with pytest.raises(JournalDamaged, match=f"sessions.db-wal: frame {frame} is corrupt, but valid"):
            async with Runtime(journal=SqliteStorage(path)):
                pass
        assert (path.read_bytes(), log_of(path).read_bytes()) == before


@pytest.mark.anyio
@pytest.mark.requirement("PROMISE-13")
async def test_at_the_level_process_a_journal_that_lost_events_is_copied_and_the_loss_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "sessions.db"
    before = damaged_crash_files(path, "process", 45)
    for _ in range(2):
        async with Runtime(journal=SqliteStorage(path, durability="process")) as runtime:
            (stored,) = await runtime.journal.list()
            assert 0 < stored.events < 21
    copy = copy_of(path)
    assert (copy.read_bytes(), log_of(copy).read_bytes()) == before
    (line,) = [line for line in caplog.messages if "journal_damaged" in line]
    assert "frame 45 is corrupt, but valid frames follow" in line
    assert str(copy) in line
    with closing(JournalFile(copy)) as file:
        assert [each.what[-45:] for each in file.damage()] == [
            "-wal: frame 45 is corrupt, but valid frames follow"[-45:]
        ]


@pytest.mark.requirement("PROMISE-13")
def test_a_journal_that_lost_events_opens_only_after_its_copy_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sessions.db"
    before = damaged_crash_files(path, "process", 45)

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with closing(SqliteStorage(path, durability="process")) as storage:
        with monkeypatch.context() as patch:
            patch.setattr("actors.journal.storage.sqlite.wal.copyfileobj", fail)
            with pytest.raises(JournalUnavailable, match="No space left"):
                storage.open()
        assert (path.read_bytes(), log_of(path).read_bytes()) == before
        storage.open()
    copy = copy_of(path)
    assert (copy.read_bytes(), log_of(copy).read_bytes()) == before


def torn_reads(times: int) -> Callable[[int, int, int], bytes]:
    """Return a read function that shows the second frame of a file half written during the first reads."""
    left = [times]

    def read(file: int, count: int, at: int) -> bytes:
        found = _pread(file, count, at)
        if at != 32 + 24 + PAGE or count < PAGE or not left[0]:
            return found
        left[0] -= 1
        return found[:1000] + bytes(255 - byte for byte in found[1000:])

    return read


@pytest.mark.parametrize(("times", "is_damaged"), [(0, False), (1, False), (100, True)])
def test_a_torn_frame_is_damage_only_if_it_stays_torn(
    times: int, is_damaged: bool, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "pread", torn_reads(times))
    with closing(JournalFile(path)) as file:
        assert [each.what[-60:] for each in file.damage()] == (
            [f"{path}-wal: frame 2 is corrupt, but valid frames follow"[-60:]] if is_damaged else []
        )


def test_only_frame_headers_of_an_uncommitted_transaction_are_read(
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


def test_a_torn_end_followed_by_remains_of_a_failed_write_is_not_damage(tmp_path: Path) -> None:
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
    with pytest.raises(JournalDamaged, match="is corrupt, but valid frames follow"):
        check_wal(tmp_path / "both.db")


def database(path: Path) -> sqlite3.Connection:
    """Return a new one-page database with some transactions in its write-ahead log."""
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
def test_a_frame_header_across_two_sectors_does_not_prove_a_commit(
    frame: int, is_damaged: bool, tmp_path: Path
) -> None:
    """In the last transaction, frames 20 to 60, one frame is lost, and the header of another has its old content."""
    with closing(database(tmp_path / "torn.db")) as connection:
        while log_of(tmp_path / "torn.db").stat().st_size < 32 + 20 * (24 + PAGE):
            connection.execute("INSERT INTO t VALUES (randomblob(10))")
        connection.execute("INSERT INTO t VALUES (zeroblob(200000))")
        log = bytearray(log_of(tmp_path / "torn.db").read_bytes())
    for at, before in ((30, bytes(24 + PAGE)), (frame, b"\0\0\0\4\0\0\1\xea")):
        place = 32 + at * (24 + PAGE)
        log[place : place + len(before)] = before
    log_of(tmp_path / "left.db").write_bytes(log)
    if is_damaged:  # a header within one sector is as it was written
        with pytest.raises(JournalDamaged, match="but valid frames follow"):
            check_wal(tmp_path / "left.db")
    else:
        check_wal(tmp_path / "left.db")
