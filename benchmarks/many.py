"""Measure thousands of sessions in one process with `gc="tuned"` (H1 to H5).

    H1   sessions in rotation: turn 60 against turn 10, with default limits and a model in this process
    H2   a turn over HTTP while N sessions ask concurrently over 64 connections; baseline: N hand-written loops
    H3   delay of the event loop during H2
    H4   1,500 sessions over 64 connections with a model latency of 300 ms: time to the first and the median turn
    H5   4,000 blocking tools of 50 ms on 64 threads

Each case runs in a new process, so that no heap is inherited. H4 and H5 are wall-clock times.
"""

import dataclasses
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from random import Random
from statistics import median
from typing import Any, NamedTuple, TypeAlias

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from msgspec import Struct
from msgspec.json import decode
from msgspec.structs import asdict, replace

from actors.runtime.handle import Session
from actors.runtime.runtime import Runtime
from actors.tools import Tool, tool
from benchmarks import by_hand
from benchmarks.canned import ANSWERING, CALLING, Canned
from benchmarks.figures import Extent, Figure, Library, Loop, Measure, Peer
from benchmarks.http import stub_config
from benchmarks.others import Others
from benchmarks.start import ROOT
from benchmarks.stub import running
from benchmarks.timing import async_cpu_ms
from benchmarks.turn import SEARCH

Turn: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
CONNECTIONS = 64
LOOK = 0.01
"""Seconds between two probes of the event loop."""
DELAY = 0.3
"""Latency of the model in H4, in seconds."""
NAP = 0.05
"""Seconds for which a tool of H5 occupies its thread."""


class TurnFigures(Struct, frozen=True):
    """The figures of one case; 0 where a figure does not apply.

    Args:
        ms: CPU milliseconds per turn; in rotation, per late turn.
        early_ms: CPU milliseconds per early turn in rotation, scaled to the later speed of the machine.
        lag_ms: 99th percentile of the event loop delay, in milliseconds.
        first, middle, last: Seconds until the first turn, half of the turns, and all turns ended.
        failed: Failed turns.
        rebuilds: Sessions rebuilt from their logs.
    """

    ms: float = 0.0
    early_ms: float = 0.0
    lag_ms: float = 0.0
    first: float = 0.0
    middle: float = 0.0
    last: float = 0.0
    failed: int = 0
    rebuilds: int = 0


# ---- cases, each run in a separate process

EARLY, LATE = 10, 60
_NEAR = 2
"""Rounds on each side of `EARLY` and `LATE` that are included in the median."""


EVERY = 10
"""Session turns per turn of the hand-written loop."""


async def rotation(count: int) -> TurnFigures:
    """Ask sessions in random order, `LATE` rounds and a few more.

    Minutes lie between the early and the late rounds, and the machine may change its speed. The hand-written loop
    therefore runs after every tenth turn, and the early figure is scaled by the ratio of its late to its early cost.
    """
    config = stub_config("http://127.0.0.1:9/v1", stream=True)
    random, rounds = Random(1), dict[int, RoundCost]()
    async with Runtime(config, transport=Canned(), gc="tuned") as runtime:
        sessions = [await runtime.open("stub", tools=[SEARCH]) for _ in range(count)]
        for number in range(1, LATE + _NEAR + 1):
            random.shuffle(sessions)
            rounds[number] = await _round(sessions)
        early, late = (_around(rounds, number) for number in (EARLY, LATE))
        scaled = early.ours * late.by_hand / early.by_hand
        return TurnFigures(ms=late.ours, early_ms=scaled, rebuilds=runtime.stats().reuse.rebuilds)


class RoundCost(NamedTuple):
    """CPU milliseconds per turn in one round: of a session, and of the hand-written loop."""

    ours: float
    by_hand: float


def _around(rounds: Mapping[int, RoundCost], number: int) -> RoundCost:
    near = [rounds[each] for each in range(number - _NEAR, number + _NEAR + 1)]
    return RoundCost(*(median(column) for column in zip(*near, strict=True)))


async def _round(sessions: Sequence[Session]) -> RoundCost:
    """Ask each session once."""
    costs = [
        RoundCost(
            await async_cpu_ms(partial(_each, sessions[start : start + EVERY])),
            await async_cpu_ms(_turn_by_hand),
        )
        for start in range(0, len(sessions), EVERY)
    ]
    return RoundCost(sum(cost.ours for cost in costs) / len(sessions), median(cost.by_hand for cost in costs))


async def _each(sessions: Sequence[Session]) -> None:
    for session in sessions:
        assert (await session.ask(by_hand.QUESTION)).status == "complete"


async def _turn_by_hand() -> None:
    async def post(body: bytes) -> bytes:
        return ANSWERING if b'"role": "tool"' in body else CALLING

    await by_hand.turn(post, stream=True)


class ConcurrentTurns:
    """Runs turns concurrently; records their end times, failures and the delay of the event loop."""

    def __init__(self) -> None:
        self.ends: list[float] = []
        self.failed = 0
        self._late: list[float] = []

    async def ask(self, session: Session) -> None:
        """Ask a session and record the result."""
        result = await session.ask(by_hand.QUESTION, check=False)
        self.failed += result.status != "complete"
        self.ends.append(time.perf_counter())

    async def all(self, turns: Sequence[Turn]) -> None:
        """Run turns concurrently and probe the event loop until all have ended."""
        async with anyio.create_task_group() as watching:
            watching.start_soon(self._watch)
            async with anyio.create_task_group() as tasks:
                for turn in turns:
                    tasks.start_soon(turn)
            watching.cancel_scope.cancel()

    async def _watch(self) -> None:
        while True:
            began = time.perf_counter()
            await anyio.sleep(LOOK)
            self._late.append(time.perf_counter() - began - LOOK)

    async def sample(self, turns: Sequence[Turn]) -> TurnFigures:
        """Run turns concurrently and return their figures."""
        began = time.perf_counter()
        ms = await async_cpu_ms(partial(self.all, turns)) / len(turns)
        first, *_ = ends = sorted(end - began for end in self.ends)
        late = sorted(self._late) or [0.0]
        lag = late[int(0.99 * (len(late) - 1))] * 1e3
        return TurnFigures(ms, 0.0, lag, first, ends[len(ends) // 2], ends[-1], self.failed)


@asynccontextmanager
async def _sessions(url: str, count: int, search: Tool[..., Any]) -> AsyncIterator[list[Session]]:
    """Open sessions on the stub, after other sessions have opened the connections."""
    async with Runtime(stub_config(url, stream=True, connections=CONNECTIONS), gc="tuned") as runtime:
        first = [await runtime.open("stub", tools=[search]) for _ in range(CONNECTIONS)]
        await ConcurrentTurns().all([partial(ConcurrentTurns().ask, session) for session in first])
        yield [await runtime.open("stub", tools=[search]) for _ in range(count)]


async def _ours(url: str, count: int, search: Tool[..., Any]) -> TurnFigures:
    async with _sessions(url, count, search) as sessions:
        turns = ConcurrentTurns()
        sample = await turns.sample([partial(turns.ask, session) for session in sessions])
        wrong = [session for session in sessions if not await _has_results(session)]
        return replace(sample, failed=max(sample.failed, len(wrong)))


async def _has_results(session: Session) -> bool:
    calls = (await session.ledger()).interactions()
    return all(call.status == "complete" for call in calls)


async def at_once(count: int) -> TurnFigures:
    """Ask all sessions concurrently; the model answers immediately."""
    with running() as url:
        return await _ours(url, count, SEARCH)


async def behind_a_model(count: int) -> TurnFigures:
    """Ask all sessions concurrently; the model has a latency of `DELAY`."""
    with running(delay=DELAY) as url:
        return await _ours(url, count, SEARCH)


@tool
def search(query: str, limit: int = 10) -> str:
    """Search the records and block the thread.

    Args:
        query: Words to look for.
        limit: Most results.
    """
    time.sleep(NAP)
    return "found"


@tool(name="search")
async def search_async(query: str, limit: int = 10) -> str:
    """Search the records.

    Args:
        query: Words to look for.
        limit: Most results.
    """
    await anyio.sleep(NAP)
    return "found"


async def blocking(count: int) -> TurnFigures:
    """Ask all sessions concurrently; each calls one blocking tool."""
    with running(calls=1) as url:
        return await _ours(url, count, search)


async def without_threads(count: int) -> TurnFigures:
    """Ask all sessions concurrently; each calls one async tool."""
    with running(calls=1) as url:
        return await _ours(url, count, search_async)


_Clients: TypeAlias = tuple[MemoryObjectSendStream[by_hand.Client], MemoryObjectReceiveStream[by_hand.Client]]
"""The ends of a pool of idle clients."""


@asynccontextmanager
async def _clients(url: str) -> AsyncIterator[_Clients]:
    """Open a pool of hand-written clients."""
    clients = [by_hand.Client(url, stream=True) for _ in range(CONNECTIONS)]
    put, free = anyio.create_memory_object_stream[by_hand.Client](CONNECTIONS)
    for client in clients:
        await client.open()
        put.send_nowait(client)
    try:
        with put, free:
            yield put, free
    finally:
        for client in clients:
            await client.close()


async def by_hand_at_once(count: int) -> TurnFigures:
    """Run hand-written conversations concurrently over the same number of connections."""
    turns = ConcurrentTurns()
    with running() as url:
        async with _clients(url) as (put, free):

            async def post(body: bytes) -> bytes:
                client = await free.receive()
                try:
                    return await client.post(body)
                finally:
                    put.send_nowait(client)

            async def turn() -> None:
                await by_hand.turn(post, stream=True)
                turns.ends.append(time.perf_counter())

            await ConcurrentTurns().all([turn] * CONNECTIONS)
            turns.ends.clear()
            return await turns.sample([turn] * count)


WORKS: dict[str, Callable[[int], Coroutine[Any, Any, TurnFigures]]] = {
    each.__name__: each
    for each in (rotation, at_once, behind_a_model, blocking, without_threads, by_hand_at_once)
}


def measure(
    work: Callable[[int], Coroutine[Any, Any, TurnFigures]], count: int, backend: Loop
) -> TurnFigures:
    """Run a case in a new process and return its figures."""
    name = next(name for name, each in WORKS.items() if each is work)
    command = (sys.executable, "-m", "benchmarks.many", name, str(count), backend)
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return decode(done.stdout, type=TurnFigures)


# ---- rows


def _h1(options: Extent) -> list[Figure]:
    rows = []
    for backend in options.backends:
        for count in (20,) if options.quick else (150, 1000, 5000):
            sample = measure(rotation, count, backend)
            note = f"turns {LATE} and {EARLY}; {sample.rebuilds:,} sessions were rebuilt from their logs"
            case = f"{backend}, {count:,}"
            rows.append(Figure("H1", _QUESTIONS["H1"], case, "ms", 1.2, sample.ms, sample.early_ms, note))
    return rows


def _h2(options: Extent) -> list[Figure]:
    sizes = ((20, 0.0), (100, 1.5)) if options.quick else ((100, 0.0), (5000, 1.5), (20_000, 1.8))
    counts = [count for count, _ in sizes]
    peers = {count: _peers(options.libraries, count) for count in counts if count <= _MOST_OF_PEERS}
    rows = []
    for backend in options.backends:
        minima = {count: measure(by_hand_at_once, count, backend) for count in counts}
        ours = {count: measure(at_once, count, backend) for count in counts}
        for count, limit in sizes:
            case, mine = f"{backend}, {count:,}", ours[count]
            row = Figure(
                "H2", _QUESTIONS["H2"], case, "ms", 4.0, mine.ms, minima[count].ms, "baseline: by hand"
            )
            rows.append(dataclasses.replace(row, peers=peers.get(count, ())))
            if limit:
                few = f"baseline: {counts[0]} sessions"
                rows.append(Figure("H2", _GROWTH, case, "ms", limit, mine.ms, ours[counts[0]].ms, few))
            rows.append(Figure("H2", _FAILED, case, "turns", 0, mine.failed))
    return rows


_MOST_OF_PEERS = 5000
"""Maximal number of concurrent conversations for other libraries; more would take minutes of CPU time."""


def _peers(libraries: Sequence[Library], count: int) -> tuple[Peer, ...]:
    others = Others(libraries)
    others.take(partial(_of_library, count))
    return others.peers()


def _of_library(count: int, library: Library) -> float:
    with running() as url:
        return library.turns(url, count, stream=True, at_once=True)


def _h3(options: Extent) -> list[Figure]:
    count = 100 if options.quick else 5000
    rows = []
    for backend in options.backends:
        minimum, ours = (measure(work, count, backend) for work in (by_hand_at_once, at_once))
        note = f"99 of 100 looks; by hand {minimum.lag_ms:.3g} ms"
        rows.append(
            Figure("H3", _QUESTIONS["H3"], f"{backend}, {count:,}", "ms", 250, ours.lag_ms, note=note)
        )
    return rows


def _h4(options: Extent) -> list[Figure]:
    count = 150 if options.quick else 1500
    least = count * DELAY / CONNECTIONS  # half of two requests for each
    rows = []
    for backend in options.backends:
        sample, case = measure(behind_a_model, count, backend), f"{backend}, {count:,}"
        clock = f"by the clock; the model alone takes {2 * DELAY:g} s"
        rows.append(Figure("H4", _QUESTIONS["H4"], case, "s", 2.0, sample.first, note=clock))
        half = "by the clock; baseline: the model's own time for half of the requests"
        rows.append(Figure("H4", _HALF, case, "s", 1.26, sample.middle, least, half))
        rows.append(Figure("H4", _FAILED, case, "turns", 0, sample.failed))
    return rows


def _h5(options: Extent) -> list[Figure]:
    count = 400 if options.quick else 4000
    rows = []
    for backend in options.backends:
        sample = measure(blocking, count, backend)
        asynchronous = measure(without_threads, count, backend).last
        least, case = max(count * NAP / CONNECTIONS, asynchronous), f"{backend}, {count:,}"
        note = f"by the clock; baseline: 64 threads, or async tools, which take {asynchronous:.3g} s"
        rows.append(Figure("H5", _QUESTIONS["H5"], case, "s", 1.3, sample.last, least, note))
        rows.append(Figure("H5", _REFUSED, case, "turns", 0, sample.failed))
    return rows


_GROWTH = "the same, against few sessions"
_FAILED = "turns that failed"
_REFUSED = "turns that failed or whose call was rejected"
_HALF = "until half of the turns have ended"
_QUESTIONS = {
    "H1": "a late turn of sessions asked in random order",
    "H2": "a turn over HTTP while all sessions ask concurrently",
    "H3": "event loop delay while all sessions ask concurrently",
    "H4": "until the first turn ends, with 64 connections and a slow model",
    "H5": "until all blocking tools of 50 ms have run on 64 threads",
}
MEASURES = tuple(
    Measure(goal, _QUESTIONS[goal], run)
    for goal, run in (("H1", _h1), ("H2", _h2), ("H3", _h3), ("H4", _h4), ("H5", _h5))
)


def main(name: str, count: str, backend: str) -> None:
    """Print the figures of a case as JSON."""
    print(json.dumps(asdict(anyio.run(WORKS[name], int(count), backend=backend))))


if __name__ == "__main__":
    main(*sys.argv[1:])
