"""Alternating between more sessions than may be active: their folded logs stay in memory if there is room."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from actors import Runtime, Session
from actors.config import RuntimeLimits
from actors.core.stats.stats import ReuseStats
from actors.journal.storage import PAGE, LogPage
from actors.journal.storage.memory import MemoryStorage
from actors.runtime.machine import usable_memory
from actors.runtime.residency import HITS, REBUILDS
from actors.telemetry import PrometheusCollector
from benchmarks.turn import SEARCH, TARGET, open_runtime

pytestmark = pytest.mark.anyio

MEGABYTE = "x" * 1024 * 1024
ONE_ACTIVE = RuntimeLimits(max_active_sessions=1)


class CountedReads(MemoryStorage):
    """Logs in memory with a count of full reads."""

    reads = 0

    def page(self, session: str, after: int = 0, limit: int = PAGE) -> LogPage:
        self.reads += not after
        return super().page(session, after, limit)


async def ask(session: Session, words: str = "Search.") -> None:
    """Ask, and wait until the session is idle."""
    assert (await session.ask(words)).status == "complete"
    await anyio.wait_all_tasks_blocked()


@asynccontextmanager
async def rotating_sessions(
    limits: RuntimeLimits, count: int
) -> AsyncIterator[tuple[Runtime, list[Session]]]:
    """Yield a runtime with new sessions."""
    async with open_runtime(limits) as runtime:
        yield runtime, [await runtime.open(TARGET, tools=[SEARCH], id=f"s{n}") for n in range(count)]


@pytest.mark.requirement("PROMISE-9")
async def test_sessions_used_alternately_are_not_rebuilt_while_memory_suffices() -> None:
    storage = CountedReads()
    async with open_runtime(ONE_ACTIVE, storage) as runtime:
        sessions = [await runtime.open(TARGET, tools=[SEARCH]) for _ in range(12)]
        for session in sessions:
            await ask(session, MEGABYTE)
        before = storage.reads
        for session in (*sessions, *reversed(sessions)):
            await ask(session)
        stats = runtime.stats()
        assert storage.reads == before
        assert stats.reuse == ReuseStats(24, 0, 0)
        assert (stats.active, stats.memory > 24 * 1024 * 1024) == (1, True)


async def passivate(*sessions: Session) -> None:
    """Passivate sessions, as if others had been used since."""
    for session in sessions:
        while session._lifecycle.actors is not None:
            session._lifecycle.host.residency._passivate(session._lifecycle)
            await anyio.lowlevel.checkpoint()


async def test_reuse_and_rebuilds_of_sessions_are_counted() -> None:
    async with rotating_sessions(RuntimeLimits(), 2) as (runtime, (first, second)):
        for session in (first, second):
            await ask(session)  # the first use counts as neither
        assert runtime.stats().reuse == ReuseStats(0, 0, 0)
        await first.ledger()  # the session is active
        await passivate(first, second)
        await ask(first)  # its fold is still in memory
        assert runtime.stats().reuse == ReuseStats(2, 0, 0)
        await passivate(first)
        runtime._running_host().residency.evict_replays(0)
        await ask(first)
        await second.ledger()
        assert runtime.stats().reuse == ReuseStats(2, 2, 2)
        registry = CollectorRegistry()
        registry.register(PrometheusCollector(runtime.stats))
        lines = generate_latest(registry).decode().splitlines()
    hits, rebuilds, dropped = (
        f"actors_sessions_{name}_total 2.0" for name in ("hits", "rebuilds", "dropped")
    )
    assert {hits, rebuilds, dropped} <= {*lines}


async def test_passivated_sessions_are_evicted_before_active_sessions() -> None:
    async with rotating_sessions(RuntimeLimits(memory=400_000), 5) as (runtime, sessions):
        *passive, active, last = sessions
        for session in sessions:
            await ask(session, MEGABYTE[:10_000])
        await passivate(*passive)
        before = runtime.stats()
        assert (before.active, before.reuse.dropped) == (2, 0)
        await ask(last, MEGABYTE[: (400_000 - before.memory) // 2])  # counts twice: in the log, and rendered
        after = runtime.stats()
        assert (after.active, after.reuse.dropped > 0) == (2, True)
        assert after.memory < 400_000
        assert set(runtime._running_host().residency.active) == {active.id, last.id}


async def test_a_runtime_with_too_little_memory_logs_the_shortage_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with rotating_sessions(RuntimeLimits(), 1) as (runtime, (session,)):
        await ask(session)
        for rebuilds in range(3 * REBUILDS):
            assert ("memory_short" in caplog.text) == (rebuilds >= REBUILDS)
            await passivate(session)
            runtime._running_host().residency.evict_replays(0)
            await session.ledger()
        assert caplog.text.count("memory_short") == 1
        assert "limits.memory" in caplog.text


async def test_a_runtime_that_seldom_rebuilds_a_session_logs_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with rotating_sessions(RuntimeLimits(), 1) as (runtime, (session,)):
        await ask(session)
        for _ in range(2 * REBUILDS):
            await passivate(session)
            runtime._running_host().residency.evict_replays(0)
            for _ in range(HITS + 2):
                await session.ledger()
        assert runtime.stats().reuse.rebuilds == 2 * REBUILDS
    assert "memory_short" not in caplog.text


async def test_the_memory_limit_defaults_to_half_of_the_memory_of_the_machine() -> None:
    async with open_runtime() as runtime:
        assert runtime.stats().memory_limit == (usable_memory() or 0) // 2
    async with open_runtime(RuntimeLimits(memory=100_000)) as runtime:
        assert runtime.stats().memory_limit == 100_000
