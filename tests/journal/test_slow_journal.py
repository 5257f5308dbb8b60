"""A slow or unavailable journal: waiting callers, refused work, the order of writes, and the stats."""

import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
import anyio.from_thread
import anyio.lowlevel
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from actors import Runtime, Session, ToolResult
from actors.errors import JournalUnavailable
from actors.journal.commands import DeleteLog, RenewLease
from actors.journal.health import LAG, JournalHealth
from actors.journal.journal_actor import MAX_BATCH, JournalActor
from actors.journal.log import MAX_SENT
from actors.journal.storage import Appended, Entry
from actors.journal.storage.directory import HostStatus
from actors.journal.storage.memory import MemoryStorage
from actors.kernel import SHARED, System
from actors.telemetry import PrometheusCollector
from actors.testing import Call, Say, Turn
from tests.commands.at_scale import extent
from tests.journal.test_outages import DONE, Outage
from tests.runtime_support import Gate, openai, runtime_with

pytestmark = pytest.mark.anyio


class Slow(MemoryStorage):
    """A storage whose appends wait until they are released. `batches` records the sessions of each append."""

    blocking = True

    def __init__(self) -> None:
        super().__init__()
        self.is_slow = False
        self.batches: list[list[str]] = []
        self.passes = threading.Semaphore(0)
        self.begun = anyio.Event()

    def append(self, entries: Sequence[Entry]) -> Sequence[Appended]:
        if self.is_slow:
            self.batches.append([entry.session for entry in entries])
            anyio.from_thread.run_sync(self.begun.set)
            assert self.passes.acquire(timeout=60)
        return super().append(entries)

    def fast(self) -> None:
        """Release all appends from now on."""
        self.is_slow = False
        self.passes.release(100)  # more than are waiting


@asynccontextmanager
async def slow_runtime(storage: Slow) -> AsyncIterator[Runtime]:
    """Yield a runtime with sessions one and two whose journal has just become slow."""
    async with runtime_with(a=openai(*DONE), b=openai(*DONE), storage=storage) as runtime:
        for name in ("one", "two"):
            await (await runtime.open("a", id=name)).switch("a")
        storage.is_slow = True
        try:
            yield runtime
        finally:
            storage.fast()


@pytest.mark.requirement("PROMISE-8", "PROMISE-9")
async def test_a_flood_of_writes_from_one_session_does_not_delay_other_sessions() -> None:
    storage = Slow()
    with anyio.fail_after(60):
        async with slow_runtime(storage) as runtime, anyio.create_task_group() as tasks:
            for number in range(extent(200, 1000)):
                tasks.start_soon(runtime.session("one").switch, "ab"[number % 2])
            await storage.begun.wait()
            await anyio.wait_all_tasks_blocked()
            assert runtime.stats().journal.waiting < MAX_SENT
            tasks.start_soon(runtime.session("two").switch, "b")
            await anyio.wait_all_tasks_blocked()
            storage.passes.release(2)  # the running batch and the one queued after it
            while runtime.session("two").target != "b":
                await anyio.lowlevel.checkpoint()
            assert 1 < max(batch.count("one") for batch in storage.batches) <= MAX_SENT
            storage.fast()


@pytest.mark.requirement("PROMISE-9")
async def test_a_slow_journal_first_delays_callers_and_then_refuses_new_work() -> None:
    storage = Slow()
    with anyio.fail_after(60):
        async with slow_runtime(storage) as runtime:
            one, two = runtime.session("one"), runtime.session("two")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(one.ask, "Hello.")
                await storage.begun.wait()
                tasks.start_soon(two.ask, "Hello.")  # it waits
                await anyio.wait_all_tasks_blocked()
                meter = runtime._backends.meters.journal
                assert meter.batch_began is not None
                meter.batch_began -= LAG + 1
                for refused in (
                    lambda: one.ask("And you?"),
                    lambda: two.switch("b"),
                    lambda: runtime.open("a"),
                ):
                    with pytest.raises(
                        JournalUnavailable, match=r"The journal is slow: an event would wait \d+ s"
                    ):
                        await refused()
                assert (await one.history()).length == 1  # reading still works
                storage.fast()
            assert [(await each.history()).length for each in (one, two)] == [2, 2]
            assert (await two.ask("And now?")).status == "complete"


@pytest.mark.requirement("PROMISE-6")
async def test_ledger_history_and_preview_show_only_durable_results() -> None:
    storage, gate = Slow(), Gate()
    turns = (Turn(Call("work", {"name": "x"})), *DONE)
    with anyio.fail_after(60):
        async with runtime_with(a=openai(*turns), storage=storage) as runtime:
            session = await runtime.open("a", tools=[gate.tool])
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(session.ask, "Work.")
                await gate.started("x")
                storage.is_slow = True
                try:
                    gate.open("x")
                    await storage.begun.wait()
                    await anyio.wait_all_tasks_blocked()
                    assert await result_visibility(session) == ("running", False, False)
                finally:
                    storage.fast()
            assert await result_visibility(session) == ("complete", True, True)


async def result_visibility(session: Session) -> tuple[str, bool, bool]:
    """Return the state of the session's call, and whether history and preview show its result."""
    (known,) = (await session.ledger()).interactions()
    status = str(known.reason if known.completion is None else known.completion.status)
    blocks = [block for message in await session.history() for block in message.blocks]
    has_result = any(isinstance(block, ToolResult) and block.status == "complete" for block in blocks)
    return status, has_result, b"x is done" in (await session.preview("a")).body


@pytest.mark.parametrize(("waiting", "seconds"), [(0, 1.5), (1, 1.7), (MAX_BATCH, 1.7), (MAX_BATCH + 1, 1.9)])
def test_the_expected_wait_covers_the_running_and_queued_batches(waiting: int, seconds: float) -> None:
    meter = JournalHealth()
    meter.begin_batch(10.0)
    meter.end_batch(10.2)
    assert meter.lag(0, MAX_BATCH, 100.0) == 0.0
    meter.begin_batch(100.0)
    assert meter.lag(waiting, MAX_BATCH, 101.5) == pytest.approx(seconds)


@pytest.mark.requirement("U-08")
@pytest.mark.parametrize("blocking", [False, True])
async def test_stats_and_prometheus_report_an_outage_with_its_start_and_reason(
    blocking: bool, caplog: pytest.LogCaptureFixture
) -> None:
    storage = Outage(blocking=blocking)
    async with runtime_with(a=openai(Turn(Say("Here.")), *DONE), storage=storage) as runtime:
        registry = CollectorRegistry()
        registry.register(PrometheusCollector(runtime.stats))
        session = await runtime.open("a")
        await session.ask("Hello.")
        before = runtime.stats()
        assert (before.is_ready, before.journal.reason, before.journal.durability) == (True, "", "memory")
        assert "actors_journal_available 1.0" in generate_latest(registry).decode().splitlines()
        storage.at = 0
        for _ in range(2):
            with pytest.raises(JournalUnavailable):
                await session.ask("Say nothing of this.")
        during = runtime.stats()
        assert not during.is_ready
        assert during.journal.unavailable_since is not None
        assert during.journal.reason == "sessions.db: the disk is full; make room"
        assert during.journal.refused >= 2
        shown = generate_latest(registry).decode().splitlines()
        assert "actors_journal_available 0.0" in shown
        assert f"actors_journal_refused_total {during.journal.refused}.0" in shown
        storage.works()
        await session.ask("And now?")
        assert runtime.stats().is_ready
    logged = [record.getMessage() for record in caplog.records if "journal_" in record.getMessage()]
    assert ["unavailable" in line for line in logged] == [True, False]
    assert "Say nothing" not in "".join(logged)


class Leased(MemoryStorage):
    """A storage with a lease in which a deletion takes a second of the test's clock."""

    blocking = True
    lease: float | None = 10.0

    def __init__(self, clock: list[float]) -> None:
        super().__init__()
        self.clock, self.beats, self.longest, self._beaten = clock, 0, 0.0, clock[0]

    def delete(self, *sessions: str) -> None:
        self.clock[0] += len(sessions)
        self.longest = max(self.longest, self.clock[0] - self._beaten)
        super().delete(*sessions)

    def renew_lease(self, status: HostStatus | None = None) -> None:
        self.beats, self._beaten = self.beats + 1, self.clock[0]
        super().renew_lease(status)


@pytest.mark.requirement("PROMISE-9")
async def test_a_host_busy_with_deletions_keeps_its_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """A heartbeat does not wait for the operations queued before it."""
    clock = [0.0]
    storage = Leased(clock)
    async with System() as system:
        journal = system.spawn(lambda: JournalActor(storage), "journal", depth=SHARED)
        await journal.ask(RenewLease())
        clock[0] = storage._beaten = system.now()
        monkeypatch.setattr(system, "now", lambda: clock[0])
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for number in range(300):
                    tasks.start_soon(journal.ask, DeleteLog(f"s{number}"))
        assert storage.longest < 10
        assert 300 / 10 < storage.beats < 300 / 2
