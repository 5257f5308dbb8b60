"""The event loop keeps iterating while many sessions have work at the same time."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from math import inf
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel
import anyio.to_thread
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from actors import Runtime, Session
from actors.core.log.events import LogEvent
from actors.core.session.lanes import LogReplay, rebuild
from actors.core.stats.stats import LoopLag
from actors.journal.log import SLICE, fold_in_slices
from actors.kernel.turnstile import WIDTH
from actors.runtime.claims import Claims
from actors.telemetry import PrometheusCollector
from actors.transport.connection import Connection
from benchmarks.turn import SEARCH, TARGET, open_runtime
from tests.runtime.polls import Polls, counting_polls

pytestmark = pytest.mark.anyio

CROWD = 4 * WIDTH
MOST = 2 * WIDTH
"""Calls of one iteration, plus those of the next one within the same poll."""
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def counting(polls: Polls, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Return a method that counts its calls."""

    async def count_and_call(*arguments: object, **more: object) -> Any:
        polls.note()
        return await method(*arguments, **more)

    return count_and_call


class AnsweredStream(anyio.abc.ByteStream):
    """A stream that has received a response."""

    async def receive(self, max_bytes: int = 65536) -> bytes:
        await anyio.lowlevel.checkpoint()
        return ANSWER

    async def send(self, item: bytes) -> None:
        """Accept anything."""

    async def send_eof(self) -> None:
        """Accept the end."""

    async def aclose(self) -> None:
        """Do nothing."""

    @property
    def extra_attributes(self) -> Mapping[Any, Callable[[], Any]]:
        return {anyio.abc.SocketAttribute.raw_socket: lambda: None}


async def test_only_a_few_of_many_simultaneous_answers_are_read_between_two_event_loop_polls() -> None:
    connections = [Connection(AnsweredStream()) for _ in range(CROWD)]
    with anyio.fail_after(30), counting_polls() as polls:

        async def read(connection: Connection) -> None:
            await connection.receive()
            polls.note()

        async with anyio.create_task_group() as tasks:
            for connection in connections:
                tasks.start_soon(read, connection)
    assert polls.total == CROWD
    assert polls.most_at_once <= MOST


async def test_only_a_few_of_many_simultaneous_opens_and_asks_begin_between_two_event_loop_polls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with open_runtime() as runtime:
        with anyio.fail_after(60), counting_polls() as opened:
            monkeypatch.setattr(Claims, "claim_new", counting(opened, Claims.claim_new))
            sessions = await _open_together(runtime)
        with anyio.fail_after(60), counting_polls() as asked:
            monkeypatch.setattr(Session, "_deliver", counting(asked, Session._deliver))
            async with anyio.create_task_group() as tasks:
                for session in sessions:
                    tasks.start_soon(_ask, session)
    assert (opened.total, asked.total) == (CROWD, CROWD)
    assert max(opened.most_at_once, asked.most_at_once) <= MOST


async def _open_together(runtime: Runtime) -> list[Session]:
    sessions = list[Session]()

    async def open_one() -> None:
        sessions.append(await runtime.open(TARGET, tools=[SEARCH]))

    async with anyio.create_task_group() as tasks:
        for _ in range(CROWD):
            tasks.start_soon(open_one)
    return sessions


async def _ask(session: Session) -> None:
    await session.ask("Search.", check=False)  # the model answers one session at a time


async def test_event_loop_lag_is_reported_in_the_stats_and_in_prometheus() -> None:
    async with open_runtime() as runtime:
        assert (await (await runtime.open(TARGET, tools=[SEARCH])).ask("Search.")).status == "complete"
        while not sum(runtime.stats().loop_lag.counts.values()):
            await anyio.lowlevel.checkpoint()
        lag = runtime.stats().loop_lag
        assert 0 < lag.centile(50) <= lag.centile(99) <= lag.longest <= lag.seconds
        registry = CollectorRegistry()
        registry.register(PrometheusCollector(runtime.stats))
        lines = generate_latest(registry).decode().splitlines()
        known = {line.split(" ")[0] for line in lines}
        assert {"actors_loop_lag_seconds_sum", "actors_loop_lag_seconds_count"} <= known
        assert {
            'actors_loop_lag_seconds_bucket{le="0.25"}',
            'actors_loop_lag_seconds_bucket{le="+Inf"}',
        } <= known
        assert await anyio.to_thread.run_sync(lambda: runtime.stats().loop_lag.longest) > 0


async def test_a_percentile_of_the_event_loop_lag_is_the_upper_bound_of_its_bucket() -> None:
    lag = LoopLag({0.01: 98, 0.1: 1, 1.0: 0, inf: 1}, 20.0, 19.0)
    assert [lag.centile(percent) for percent in (50, 98, 99, 100)] == [0.01, 0.01, 0.1, 19.0]
    assert LoopLag().centile(99) == 0


@pytest.mark.requirement("PROMISE-3")
async def test_a_long_log_is_folded_in_slices_to_the_same_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with open_runtime() as runtime:
        session = await runtime.open(TARGET, tools=[SEARCH])
        while len(log := runtime._storage.read(session.id)) <= 3 * SLICE:
            assert (await session.ask("Search.")).status == "complete"
        state, lanes = rebuild(log, runtime._backends.rules)
        with anyio.fail_after(60), counting_polls() as polls:
            fold = LogReplay.add

            def count_and_add(folding: LogReplay, part: Sequence[LogEvent]) -> None:
                polls.note()
                assert len(part) <= SLICE
                fold(folding, part)

            monkeypatch.setattr(LogReplay, "add", count_and_add)
            again, lanes_again = await fold_in_slices(log, runtime._backends.rules)
        assert (polls.total, polls.most_at_once) == (-(-len(log) // SLICE), 1)
        assert (again, again.ledger) == (state, state.ledger)
        (binding,) = lanes.bindings()
        assert b"".join(lanes_again.of(binding)._segments) == b"".join(lanes.of(binding)._segments)


async def test_a_reactivated_session_with_a_long_log_is_folded_in_slices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parts = list[int]()
    async with open_runtime() as runtime:
        session = await runtime.open(TARGET, tools=[SEARCH])
        while len(runtime._storage.read(session.id)) <= 2 * SLICE:
            assert (await session.ask("Search.")).status == "complete"
        while not session._lifecycle.passivate():
            await anyio.lowlevel.checkpoint()
        runtime._running_host().residency.evict_replays(0)
        fold = LogReplay.add

        def count_and_add(folding: LogReplay, part: Sequence[LogEvent]) -> None:
            parts.append(len(part))
            fold(folding, part)

        monkeypatch.setattr(LogReplay, "add", count_and_add)
        assert (await session.ask("And again.")).status == "complete"
    assert sum(parts) > 2 * SLICE
    assert max(parts) <= SLICE
