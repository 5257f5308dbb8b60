"""Measure turns over loopback HTTP against a stub provider that answers immediately (B2, B3, C1H).

    B2   a new session's turn, plain and streamed, over a persistent connection; baseline: a hand-written loop with h11
    B3   a streamed turn while 1,000 and 5,000 sessions have a connection each; baseline: 100 sessions
    C1H  extra cost of turn 500 of one session over turn 10; baseline: the extra cost of sending as many more bytes

The provider runs in a separate process. The figures are CPU time of this process.
"""

import gc
import resource
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import partial
from statistics import median, quantiles

import anyio

from actors.config import Config
from actors.config.settings import BackendLimits, BackendSettings, FileSettings, RuntimeLimits
from actors.core.data.persistent import Segments
from actors.runtime.handle import Session
from actors.runtime.runtime import Runtime
from actors.transport import HttpTransport, Response, Timeouts
from benchmarks.by_hand import QUESTION, Client
from benchmarks.figures import Extent, Figure, Library, Loop, Measure, Peer
from benchmarks.others import OtherLibraries
from benchmarks.stub import DESCRIPTORS, run_stub
from benchmarks.timing import Passes, async_calls, async_cpu_ms, run_on_loop
from benchmarks.turn import SEARCH


def stub_config(url: str, *, stream: bool, connections: int = 64) -> Config:
    """Return a configuration with one backend named `stub`, at the address of a stub provider."""
    limits = BackendLimits(concurrency=connections, waiting=100_000, first_byte_timeout=600, idle_timeout=600)
    stub = BackendSettings(kind="openai", model="model-1", base_url=url, stream=stream, limits=limits)
    whole = RuntimeLimits(connections=connections)
    return Config(FileSettings(backends={"stub": stub}, limits=whole), {})


async def _ask_once(session: Session) -> None:
    result = await session.ask(QUESTION)
    assert (result.status, result.rounds) == ("complete", 2), result


async def _ask_each(sessions: Sequence[Session]) -> None:
    for session in sessions:
        await _ask_once(session)


# ---- B2


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a turn: CPU milliseconds and Python function calls."""

    ms: float
    calls: float


async def _turn_cost(url: str, stream: bool, count: int) -> Cost:
    """Return the mean cost of the first turn of a session, over `count` sessions."""
    async with Runtime(stub_config(url, stream=stream)) as runtime:
        sessions = [await runtime.open("stub", tools=[SEARCH]) for _ in range(count + 6)]
        await _ask_each(sessions[:3])
        calls = await async_calls(partial(_ask_each, sessions[3:6])) / 3
        return Cost(await async_cpu_ms(partial(_ask_each, sessions[6:])) / count, calls)


async def _baseline_cost(url: str, stream: bool, count: int) -> Cost:
    client = Client(url, stream=stream)
    await client.open()

    async def turns(number: int) -> None:
        for _ in range(number):
            await client.run_turn()

    await turns(3)
    calls = await async_calls(partial(turns, 3)) / 3
    cost = Cost(await async_cpu_ms(partial(turns, count)) / count, calls)
    await client.close()
    return cost


def _measure_b2(options: Extent) -> list[Figure]:
    passes, count = (3, 20) if options.quick else (9, 50)
    rows = []
    with run_stub() as url:
        for stream in (False, True):
            works: list[tuple[Loop, Callable[[], Awaitable[Cost]]]]
            works = [("asyncio", partial(_baseline_cost, url, stream, count))]
            works += [(backend, partial(_turn_cost, url, stream, count)) for backend in options.backends]
            others, samples = OtherLibraries(options.libraries), list[list[Cost]]()
            for _ in range(passes):
                samples.append([anyio.run(work, backend=backend) for backend, work in works])
                others.measure_each(partial(_library_turn_ms, url, stream, count))
            baseline, *ours = (_median_cost(column) for column in zip(*samples, strict=True))
            taken = Passes.of([cost.ms for cost in costs] for costs in samples)
            case, limit = ("streamed", 3.0) if stream else ("plain", 4.0)
            for work, (backend, cost) in enumerate(zip(options.backends, ours, strict=True), 1):
                row = _turn_row("B2", f"{backend}, {case}", limit, cost, baseline, "")
                rows.append(replace(row, spread=taken.spread(work, 0), peers=others.peers()))
    return rows


def _library_turn_ms(url: str, stream: bool, count: int, library: Library) -> float:
    return library.turns(url, count, stream=stream)


def _turn_row(
    goal: str, case: str, limit: float, cost: "Cost | CrowdCost", baseline: "Cost | CrowdCost", note: str
) -> Figure:
    question = _QUESTIONS[goal]
    return Figure(goal, question, case, "ms", limit, cost.ms, baseline.ms, note, cost.calls, baseline.calls)


def _median_cost(costs: Sequence[Cost]) -> Cost:
    return Cost(median(cost.ms for cost in costs), median(cost.calls for cost in costs))


# ---- B3


@dataclass(frozen=True, slots=True)
class CrowdCost:
    """The cost of a turn while many turns run concurrently.

    Args:
        ms: CPU milliseconds per turn.
        calls: Python function calls per turn.
        p50, p99: Percentiles of the wall-clock duration of a turn, in milliseconds.
        failed: Number of failed turns.
    """

    ms: float
    calls: float
    p50: float
    p99: float
    failed: int


async def _measure_crowd(count: int, rounds: int) -> CrowdCost:
    with run_stub(together=count) as url:
        async with Runtime(stub_config(url, stream=True, connections=count)) as runtime:
            sessions = [await runtime.open("stub", tools=[SEARCH]) for _ in range(count)]
            waits: list[float] = []
            failed = 0

            async def ask(session: Session) -> None:
                nonlocal failed
                began = time.perf_counter()
                result = await session.ask(QUESTION, check=False)
                waits.append(time.perf_counter() - began)
                failed += (result.status, result.rounds) != ("complete", 2)

            async def once() -> None:
                async with anyio.create_task_group() as tasks:
                    for session in sessions:
                        tasks.start_soon(ask, session)

            await once()  # the first pass opens the connections
            waits.clear()
            gc.collect()
            took = [await async_cpu_ms(once) / count for _ in range(rounds)]
            centiles = quantiles(waits, n=100)
            calls = await async_calls(once) / count
            return CrowdCost(median(took), calls, centiles[49] * 1e3, centiles[98] * 1e3, failed)


def _measure_b3(options: Extent) -> list[Figure]:
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    sizes = ((10, 0.0), (50, 1.5)) if options.quick else ((100, 0.0), (1000, 1.5), (5000, 3.0))
    rows = []
    (least, _), *larger = sizes
    peers = {count: _library_crowds(options.libraries, count) for count, _ in larger}
    for backend in options.backends:
        few = _run_crowd(backend, least)
        for count, limit in larger:
            many = _run_crowd(backend, count)
            case = f"{backend}, {count:,}"
            row = _turn_row("B3", case, limit, many, few, f"baseline: {least} sessions")
            rows.append(replace(row, peers=peers[count]))
            rows.append(Figure("B3", _TAIL, case, "ms", 1.5, many.p99, many.p50, "by the clock"))
            rows.append(Figure("B3", _FAILED, case, "turns", 0, many.failed))
    return rows


def _library_crowds(libraries: Sequence[Library], count: int) -> tuple[Peer, ...]:
    """Measure other libraries with `count` concurrent conversations."""
    others = OtherLibraries(libraries)
    others.measure_each(partial(_library_crowd_ms, count))
    return others.peers()


def _library_crowd_ms(count: int, library: Library) -> float:
    with run_stub(together=count) as url:
        return library.turns(url, count, stream=True, at_once=True)


def _run_crowd(backend: Loop, count: int) -> CrowdCost:
    return anyio.run(_measure_crowd, count, 3 if count < 5000 else 1, backend=backend)


# ---- C1 over HTTP


class SizeRecordingTransport(HttpTransport):
    """The real transport, which also records the size of the last request body."""

    size = 0

    def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AbstractAsyncContextManager[Response]:
        self.size = segments.size
        return super().send(url, headers, segments, timeouts)


@dataclass(frozen=True, slots=True)
class LongSessionCost:
    """The cost of an early and of a late turn of one session, and the size of a request in each."""

    early: Cost
    late: Cost
    early_bytes: int
    late_bytes: int


async def _measure_long_session(url: str, turns: int) -> LongSessionCost:
    transport = SizeRecordingTransport()
    async with Runtime(stub_config(url, stream=True), transport=transport) as runtime:
        await _ask_each(
            [await runtime.open("stub", tools=[SEARCH])] * 15
        )  # warm up, so that the early turns are not the first turns of the process
        session = await runtime.open("stub", tools=[SEARCH])
        gc.collect()
        took, sizes, counted = list[float](), list[int](), dict[int, int]()
        for number in range(turns):
            if number in (20, turns - 20):
                counted[number] = await async_calls(partial(_ask_once, session))
            else:
                took.append(await async_cpu_ms(partial(_ask_once, session)))
            sizes.append(transport.size)
    early, late = (
        Cost(median(part), calls)
        for part, calls in zip((took[3:18], took[-15:]), counted.values(), strict=True)
    )
    return LongSessionCost(early, late, sizes[10], sizes[-8])


async def _extra_send_ms(url: str, early: int, late: int) -> float:
    """Return the CPU milliseconds that two requests of `late` bytes cost more than two requests of `early` bytes."""
    client = Client(url, stream=True)
    await client.open()

    async def turn(size: int) -> None:
        body = (b"x" * size, b'"role":"user" "stream":true')
        for _ in range(2):
            await client.post(*body)

    await turn(late)
    pairs = [[await async_cpu_ms(partial(turn, size)) for size in (early, late)] for _ in range(15)]
    await client.close()
    return median(more - less for less, more in pairs)


def _measure_c1h(options: Extent) -> list[Figure]:
    turns = 120 if options.quick else 500
    rows = []
    with run_stub() as url:
        for backend in options.backends:
            ours = anyio.run(_measure_long_session, url, turns, backend=backend)
            baseline = run_on_loop("asyncio", partial(_extra_send_ms, url, ours.early_bytes, ours.late_bytes))
            early, late = ours.early, ours.late
            note = (
                f"turns {turns} and 10, {late.ms:.3g} and {early.ms:.3g} ms, and their calls; "
                f"baseline: {ours.late_bytes / 1e6:.2g} MB in one piece"
            )
            rows.append(
                Figure(
                    "C1H",
                    _QUESTIONS["C1H"],
                    backend,
                    "ms",
                    1.5,
                    late.ms - early.ms,
                    baseline,
                    note,
                    late.calls,
                    early.calls,
                )
            )
    return rows


_TAIL = "99th percentile of those waits, against the median"
_FAILED = "failed turns"
_QUESTIONS = {
    "B2": "a turn over loopback HTTP: model, 5 tools, model",
    "B3": "a turn while each session holds a connection",
    "C1H": "extra cost of a late turn over HTTP",
}
MEASURES = (
    Measure("B2", _QUESTIONS["B2"], _measure_b2),
    Measure("B3", _QUESTIONS["B3"], _measure_b3),
    Measure("C1H", _QUESTIONS["C1H"], _measure_c1h),
)
