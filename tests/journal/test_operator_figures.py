"""Figures for operators: journal size, checkpoint lag and commit times."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from actors.core.stats.stats import StorageSizes
from actors.errors import JournalUnavailable
from actors.journal.health import JournalHealth
from actors.journal.storage import Entry
from actors.journal.storage.sqlite import SqliteStorage, connection
from actors.testing import Say, Turn
from tests.journal.storages import begin, to
from tests.runtime_support import openai, runtime_with
from tests.scripted import scripted

pytestmark = pytest.mark.anyio


def sizes_of(path: Path) -> tuple[int, int]:
    return path.stat().st_size, path.with_name(f"{path.name}-wal").stat().st_size


async def test_stats_report_file_sizes_and_commit_times(path: Path) -> None:
    storage = SqliteStorage(path, lease=1000)  # no heartbeat during the test
    async with runtime_with(a=openai(Turn(Say("Yes."))), storage=storage) as runtime:
        session = await runtime.open("a")
        before = runtime.stats().journal
        await session.ask("Well?")
        after = runtime.stats().journal
        assert (after.sizes.file_bytes, after.sizes.log_bytes) == sizes_of(path)
        assert after.sizes.checkpoint_lag_bytes
        assert 0 < before.commits.count < after.commits.count
        assert 0 < after.commits.longest <= after.commits.seconds
        await runtime.journal.vacuum()
        sizes = runtime.stats().journal.sizes
        assert (sizes.file_bytes, sizes.log_bytes, sizes.checkpoint_lag_bytes) == (*sizes_of(path), 0)


async def test_a_journal_without_files_reports_no_file_sizes() -> None:
    async with scripted("openai_chat", Turn(Say("Yes."))) as (_, runtime, session):
        await session.ask("Well?")
        journal = runtime.stats().journal
        assert (journal.sizes, journal.commits.count) == (StorageSizes(), 0)


def test_the_lag_of_checkpoints_grows_while_a_program_reads_the_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "CHECKPOINT", 1)
    storage = SqliteStorage(path, durability="process")
    claim, lags = begin(storage, "one"), list[int]()

    def write() -> None:
        storage.append([Entry("one", claim.fence, (to("b"),))])
        lags.append(storage.sizes.checkpoint_lag_bytes or 0)

    write()
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM record").fetchone()
        for _ in range(3):
            write()
    write()
    assert lags[0] == lags[-1] == 0
    assert 0 < lags[1] < lags[2] < lags[3]
    storage.close()


def test_a_failed_commit_is_not_counted() -> None:
    meter = JournalHealth()

    def fail() -> None:
        raise JournalUnavailable("the disk is full")

    with pytest.raises(JournalUnavailable):
        meter.time_commit(fail)
    assert meter.commits.stats.count == 0
    assert meter.time_commit(lambda: 3) == 3
    assert meter.commits.stats.count == 1
