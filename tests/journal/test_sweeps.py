"""Sweeps: many sessions are deleted in one transaction, and a runtime can be left during a sweep."""

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain
from pathlib import Path

import anyio
import anyio.from_thread
import anyio.lowlevel
import pytest

from actors import Runtime
from actors.config import Config, FileSettings, RuntimeLimits
from actors.config.settings import JournalSettings
from actors.core.log.call_events import Failed
from actors.core.values.identity import CallId
from actors.errors import JournalUnavailable, SessionLeased, TooManySessions
from actors.journal.storage import Entry, Storage
from actors.journal.storage.directory import RemainingData
from actors.journal.storage.memory import MemoryStorage
from actors.journal.storage.postgres import PostgresStorage
from actors.journal.storage.sqlite import SqliteStorage
from actors.runtime.retention import Retention
from actors.telemetry import logger
from actors.telemetry.emission import MAX_ENTRIES
from tests.journal.postgres import Server
from tests.journal.storages import begin, open_storage, to
from tests.journal.test_erasure import copies, open_reader, write
from tests.journal.test_retention import (
    DAY,
    KEEP,
    Clock,
    Stuck,
    retention,
    stored_ids,
    sweep_hourly,
    sweep_monthly,
    write_closed_log,
)
from tests.runtime_support import openai, runtime_with

pytestmark = pytest.mark.anyio

KINDS = pytest.mark.parametrize("kind", ["sqlite-process", "postgres"])


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.setattr("actors.runtime.retention.PAUSE", 0)
    return Clock(monkeypatch)


@pytest.fixture
def storage(kind: str, request: pytest.FixtureRequest, clock: Clock) -> Iterator[Storage]:
    with closing(open_storage(kind, request, clock)) as storage:
        storage.open()
        yield storage


@pytest.fixture
def deletions(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The sessions of each deleting transaction."""
    calls, delete = list[tuple[str, ...]](), storage.delete

    def noting(*sessions: str) -> None:
        calls.append(sessions)
        delete(*sessions)

    monkeypatch.setattr(storage, "delete", noting)
    return calls


@pytest.mark.alternating
@KINDS
async def test_a_sweep_deletes_many_sessions_in_one_transaction(
    storage: Storage, clock: Clock, deletions: list[tuple[str, ...]]
) -> None:
    names = {f"s{number}" for number in range(70)}
    for name in names:
        write_closed_log(storage, name)
    async with runtime_with(a=openai(), storage=storage) as runtime:
        await runtime.open("a", id="open")
        assert await sweep_monthly(clock, retention(runtime, clock), 4) == [0, 0, 0, 70]
    assert len(deletions) == 5
    assert {*chain.from_iterable(deletions)} == names
    assert stored_ids(storage) == ["open"]
    assert storage.claim("s1").last == 0


@pytest.mark.parametrize("kind", ["sqlite-process"])
async def test_the_bytes_deleted_in_one_transaction_are_bounded(
    storage: Storage, clock: Clock, deletions: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        write_closed_log(storage, name)
    size = max(stored.bytes for stored in storage.sessions())
    monkeypatch.setattr("actors.runtime.retention.BYTES", 2 * size)
    async with runtime_with(a=openai(), storage=storage) as runtime:
        await sweep_monthly(clock, retention(runtime, clock), 4)
    assert sorted(map(len, deletions)) == [1, 2]


async def test_a_session_that_cannot_be_deleted_does_not_block_the_sweep(clock: Clock) -> None:
    storage = Stuck(clock=clock)
    async with runtime_with(a=openai(), storage=storage) as runtime:
        for number in range(3):
            write_closed_log(storage, f"s{number}")
        assert await sweep_monthly(clock, retention(runtime, clock), 4) == [0, 0, 0, 2]
        (left,) = storage.sessions()
        assert (left.id, left.owner) == ("s1", None)


@KINDS
async def test_a_session_used_after_the_sweep_listed_it_is_kept_and_released(storage: Storage) -> None:
    write_closed_log(storage, "used")
    write_closed_log(storage, "unused")
    listed = storage.sessions()
    claim = storage.claim("used")
    storage.append([Entry("used", claim.fence, (to("b"),))])
    storage.release("used", claim.fence)
    async with runtime_with(a=openai(), storage=storage) as runtime:
        assert await runtime.journal._session_removal(runtime._running_host()).delete_unused(listed) == [
            "unused"
        ]
        (left,) = storage.sessions()
        assert (left.id, left.owner) == ("used", None)


@KINDS
def test_a_deletion_of_several_logs_is_atomic(kind: str, request: pytest.FixtureRequest) -> None:
    mine, other = _two_hosts(kind, request)
    with closing(mine):
        begin(mine, "mine")
        with closing(other):
            begin(other, "theirs")
            with pytest.raises(SessionLeased):
                mine.delete("mine", "nobody", "theirs")
            assert stored_ids(mine) == ["mine", "theirs"]
        mine.delete("mine", "nobody", "theirs")
        assert stored_ids(mine) == []


def _two_hosts(kind: str, request: pytest.FixtureRequest) -> tuple[Storage, Storage]:
    """Return two storages of one journal."""
    if kind == "postgres":
        server: Server = request.getfixturevalue("postgres")
        url = server.url(server.schema())
        return PostgresStorage(url), PostgresStorage(url)
    path: Path = request.getfixturevalue("tmp_path") / "sessions.db"
    return SqliteStorage(path, durability="process"), SqliteStorage(path, durability="process")


@KINDS
@pytest.mark.requirement("PROMISE-11", "PROMISE-12")
async def test_exiting_the_runtime_during_a_sweep_logs_no_crash(
    storage: Storage, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    is_sweeping, delete, close = anyio.Event(), storage.delete, storage.close

    def deleting(*sessions: str) -> None:
        anyio.from_thread.run_sync(is_sweeping.set)
        delete(*sessions)

    def closing_slowly() -> None:
        anyio.from_thread.run(anyio.sleep, 0.05)  # the sweep continues meanwhile
        close()

    for name in "abcd":
        write_closed_log(storage, name)
    for _ in range(4):
        clock.advance(30 * DAY)
        storage.record_clock(int(clock.now), 30 * DAY)
    monkeypatch.setattr("actors.runtime.retention.BATCH", 1)
    monkeypatch.setattr("actors.runtime.retention.PAUSE", 0.01)
    monkeypatch.setattr(
        "actors.runtime.retention.Retention", partial(Retention, clock=clock, steady=clock.steady)
    )
    monkeypatch.setattr(storage, "delete", deleting)
    monkeypatch.setattr(storage, "close", closing_slowly)
    settings = FileSettings(journal=JournalSettings.model_validate({"retention": f"{KEEP // DAY} days"}))
    with anyio.fail_after(60):
        async with Runtime(Config(settings, {}), journal=storage):
            await is_sweeping.wait()
    assert [line for line in caplog.messages if "crashed" in line] == []
    monkeypatch.setattr(storage, "close", close)


class SlowDeletion(MemoryStorage):
    """A storage that may block: its deletion waits until `freed` is set."""

    blocking = True

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock=clock)
        self.begun, self.freed = anyio.Event(), threading.Event()

    def delete(self, *sessions: str) -> None:
        anyio.from_thread.run_sync(self.begun.set)
        assert self.freed.wait(60)
        super().delete(*sessions)


async def test_sessions_claimed_by_a_sweep_do_not_count_towards_the_session_limit(clock: Clock) -> None:
    storage = SlowDeletion(clock)
    for number in range(8):
        write_closed_log(storage, f"s{number}")
    stored = storage.sessions()
    limits = RuntimeLimits(sessions=2)
    async with (
        runtime_with(a=openai(), storage=storage, limits=limits) as runtime,
        anyio.create_task_group() as tasks,
    ):
        await runtime.open("a", id="open")
        tasks.start_soon(runtime.journal._session_removal(runtime._running_host()).delete_unused, stored)
        await storage.begun.wait()
        tasks.start_soon(partial(runtime.open, "a", id="new"))
        try:
            while "new" not in runtime._registry._reserved:
                await anyio.lowlevel.checkpoint()
            with pytest.raises(TooManySessions):
                await runtime.open("a", id="third")
        finally:
            storage.freed.set()
    assert stored_ids(storage) == ["new", "open"]


async def test_a_sweep_remembers_a_bounded_number_of_doubtful_sessions(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, logged = MemoryStorage(clock=clock), list[tuple[int, int]]()
    monkeypatch.setattr(logger, "retention_waits", lambda names, count, _: logged.append((len(names), count)))
    async with runtime_with(a=openai(), storage=storage) as runtime:
        swept = retention(runtime, clock)
        await sweep_monthly(clock, swept, 1)
        for number in range(MAX_ENTRIES + 20):
            write_closed_log(storage, f"s{number}")
        clock.now += 400 * DAY
        assert await swept.sweep() == 0
    assert logged == [(MAX_ENTRIES, MAX_ENTRIES + 20)]


async def test_a_sweep_logs_remaining_data_and_retries_the_next_day(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("actors.runtime.retention.READER_TIMEOUT", 0)
    path = tmp_path / "sessions.db"
    storage = SqliteStorage(path, clock=clock)
    write(storage, "gone")
    async with runtime_with(a=openai(), storage=storage) as runtime:
        swept = retention(runtime, clock)
        await sweep_monthly(clock, swept, 3)
        with open_reader(path):
            assert await sweep_monthly(clock, swept, 1) == [1]
            (event,) = remaining_data(caplog)
            assert copies(path) > 0
            caplog.clear()
            assert await sweep_hourly(clock, swept, 23) == [0] * 23
            assert remaining_data(caplog) == []
            assert await sweep_hourly(clock, swept, 2) == [0] * 2
            assert len(remaining_data(caplog)) == 1
            caplog.clear()
        assert await sweep_hourly(clock, swept, 26) == [0] * 26
        assert remaining_data(caplog) == []
        assert copies(path) == 0
    assert event.levelname == "WARNING"
    assert f"{path}-wal" in event.getMessage()
    assert "still reads the earlier state of the file" in event.getMessage()
    assert "count=2" in event.getMessage()


class Failing(MemoryStorage):
    """Fails the vacuums and deletions whose flag is True, in order, and counts the vacuums."""

    def __init__(self, clock: Clock, vacuums: Sequence[bool] = (), deletions: Sequence[bool] = ()) -> None:
        super().__init__(clock=clock)
        self.vacuums, self._fails, self._keeps = 0, iter(vacuums), iter(deletions)

    def vacuum(self, max_bytes: int | None = None) -> Sequence[RemainingData]:
        self.vacuums += 1
        if next(self._fails, False):
            raise JournalUnavailable("the disk is slow")
        return super().vacuum(max_bytes)

    def delete(self, *sessions: str) -> None:
        if next(self._keeps, False):
            raise JournalUnavailable("the disk is slow")
        super().delete(*sessions)


async def test_data_left_by_an_outage_is_removed_the_next_day(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    storage = Failing(clock, vacuums=[True])
    write_closed_log(storage, "gone")
    async with runtime_with(a=openai(), storage=storage) as runtime:
        swept = retention(runtime, clock)
        assert await sweep_monthly(clock, swept, 4) == [0, 0, 0, 1]
        assert "the disk is slow" in remaining_data(caplog)[0].getMessage()
        assert await sweep_hourly(clock, swept, 50) == [0] * 50
    assert storage.vacuums == 2


async def test_a_failed_batch_leaves_no_data_of_earlier_batches(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actors.runtime.retention.BATCH", 1)
    storage = Failing(clock, deletions=[False, True])
    write_closed_log(storage, "s0")
    write_closed_log(storage, "s1")
    async with runtime_with(a=openai(), storage=storage) as runtime:
        swept = retention(runtime, clock)
        await sweep_monthly(clock, swept, 3)
        with pytest.raises(JournalUnavailable):
            await sweep_monthly(clock, swept, 1)
        (left,) = stored_ids(storage)
        fence = storage.claim(left).fence
        storage.append([Entry(left, fence, (Failed(CallId("c")),))])  # recently used, so it has not expired
        storage.release(left, fence)
        assert (await sweep_hourly(clock, swept, 1), storage.vacuums) == ([0], 1)


def remaining_data(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if "deleted_data_remains" in record.getMessage()]
