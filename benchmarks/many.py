"""Measure thousands of sessions in one process with `gc="tuned"` (H1 to H5).

    H1   sessions that take turns: turn 60 against turn 10, with default limits and a model in this process
    H2   a turn over HTTP while N sessions ask concurrently over 64 connections; baseline: N hand-written loops
    H3   delay of the event loop during H2
    H4   1,500 sessions over 64 connections with a model latency of 300 ms: time until the first turn and half of the
    turns have ended
    H5   4,000 blocking tools of 50 ms on 64 threads

Each case runs in a new process, so that it starts with an empty heap. H4 and H5 are wall-clock times.
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
from benchmarks.canned import CALLS_ANSWER, TEXT_ANSWER, CannedTransport
from benchmarks.figures import Extent, Figure, Library, Loop, Measure, Peer
from benchmarks.http import stub_config
from benchmarks.others import OtherLibraries
from benchmarks.start import ROOT
from benchmarks.stub import run_stub
from benchmarks.timing import async_cpu_ms
from benchmarks.turn import SEARCH

Turn: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
CONNECTIONS = 64
PROBE_INTERVAL = 0.01
"""Seconds between two probes of the event loop's delay."""
MODEL_LATENCY = 0.3
"""Latency of the model in H4, in seconds."""
TOOL_SECONDS = 0.05
"""Seconds for which a tool of H5 blocks its thread."""


class TurnFigures(Struct, frozen=True):
    """The figures of one case. A figure that does not apply is 0.

    Args:
        ms: CPU milliseconds per turn; for `rotation`, per late turn.
        early_ms: For `rotation`, CPU milliseconds per early turn, scaled to the speed of the machine during the late
            turns.
        lag_ms: 99th percentile of the event loop's delay, in milliseconds.
        first, middle, last: Seconds until the first turn, half of the turns, and all turns have ended.
        failed: Number of failed turns.
        rebuilds: Number of times that a session was rebuilt from its log.
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
_ROUNDS_AROUND = 2
"""Number of rounds before and after `EARLY` and `LATE` whose costs are included in the median."""


EVERY = 10
"""Number of session turns after which the hand-written loop runs one turn."""


async def rotation(count: int) -> TurnFigures:
    """Ask all sessions in random order, in more than `LATE` rounds.

    Minutes pass between the early and the late rounds, and the speed of the machine may change. So the hand-written
    loop runs after every tenth turn, and the early figure is scaled by the ratio of the loop's late to its early cost.
    """
    config = stub_config("http://127.0.0.1:9/v1", stream=True)
    random, rounds = Random(1), dict[int, RoundCost]()
    async with Runtime(config, transport=CannedTransport(), gc="tuned") as runtime:
        sessions = [await runtime.open("stub", tools=[SEARCH]) for _ in range(count)]
        for number in range(1, LATE + _ROUNDS_AROUND + 1):
            random.shuffle(sessions)
            rounds[number] = await _ask_all_once(sessions)
        early, late = (_median_around(rounds, number) for number in (EARLY, LATE))
        scaled = early.ours * late.by_hand / early.by_hand
        return TurnFigures(ms=late.ours, early_ms=scaled, rebuilds=runtime.stats().reuse.rebuilds)


class RoundCost(NamedTuple):
    """CPU milliseconds per turn in one round: of a session, and of the hand-written loop."""

    ours: float
    by_hand: float


def _median_around(rounds: Mapping[int, RoundCost], number: int) -> RoundCost:
    near = [rounds[each] for each in range(number - _ROUNDS_AROUND, number + _ROUNDS_AROUND + 1)]
    return RoundCost(*(median(column) for column in zip(*near, strict=True)))


async def _ask_all_once(sessions: Sequence[Session]) -> RoundCost:
    """Ask each session once, and run the hand-written loop after every tenth session; return the costs."""
    costs = [
        RoundCost(
            await async_cpu_ms(partial(_ask_each, sessions[start : start + EVERY])),
            await async_cpu_ms(_turn_by_hand),
        )
        for start in range(0, len(sessions), EVERY)
    ]
    return RoundCost(sum(cost.ours for cost in costs) / len(sessions), median(cost.by_hand for cost in costs))


async def _ask_each(sessions: Sequence[Session]) -> None:
    for session in sessions:
        assert (await session.ask(by_hand.QUESTION)).status == "complete"


async def _turn_by_hand() -> None:
    async def post(body: bytes) -> bytes:
        return TEXT_ANSWER if b'"role": "tool"' in body else CALLS_ANSWER

    await by_hand.run_turn(post, stream=True)


class ConcurrentTurns:
    """A set of concurrent turns, with their end times, their failures, and the delay of the event loop."""

    def __init__(self) -> None:
        self.ends: list[float] = []
        self.failed = 0
        self._late: list[float] = []

    async def ask(self, session: Session) -> None:
        """Ask a session and record the result."""
        result = await session.ask(by_hand.QUESTION, check=False)
        self.failed += result.status != "complete"
        self.ends.append(time.perf_counter())

    async def run_all(self, turns: Sequence[Turn]) -> None:
        """Run turns concurrently, and probe the event loop until all of them have ended."""
        async with anyio.create_task_group() as watching:
            watching.start_soon(self._watch)
            async with anyio.create_task_group() as tasks:
                for turn in turns:
                    tasks.start_soon(turn)
            watching.cancel_scope.cancel()

    async def _watch(self) -> None:
        while True:
            began = time.perf_counter()
            await anyio.sleep(PROBE_INTERVAL)
            self._late.append(time.perf_counter() - began - PROBE_INTERVAL)

    async def sample(self, turns: Sequence[Turn]) -> TurnFigures:
        """Run turns concurrently and return their figures."""
        began = time.perf_counter()
        ms = await async_cpu_ms(partial(self.run_all, turns)) / len(turns)
        first, *_ = ends = sorted(end - began for end in self.ends)
        late = sorted(self._late) or [0.0]
        lag = late[int(0.99 * (len(late) - 1))] * 1e3
        return TurnFigures(ms, 0.0, lag, first, ends[len(ends) // 2], ends[-1], self.failed)


@asynccontextmanager
async def _open_sessions(url: str, count: int, search: Tool[..., Any]) -> AsyncIterator[list[Session]]:
    """Yield new sessions of the stub.

    Other sessions have used the connections before, so that all connections are open.
    """
    async with Runtime(stub_config(url, stream=True, connections=CONNECTIONS), gc="tuned") as runtime:
        first = [await runtime.open("stub", tools=[search]) for _ in range(CONNECTIONS)]
        await ConcurrentTurns().run_all([partial(ConcurrentTurns().ask, session) for session in first])
        yield [await runtime.open("stub", tools=[search]) for _ in range(count)]


async def _measure_sessions(url: str, count: int, search: Tool[..., Any]) -> TurnFigures:
    async with _open_sessions(url, count, search) as sessions:
        turns = ConcurrentTurns()
        sample = await turns.sample([partial(turns.ask, session) for session in sessions])
        wrong = [session for session in sessions if not await _has_results(session)]
        return replace(sample, failed=max(sample.failed, len(wrong)))


async def _has_results(session: Session) -> bool:
    calls = (await session.ledger()).interactions()
    return all(call.status == "complete" for call in calls)


async def at_once(count: int) -> TurnFigures:
    """Ask all sessions concurrently. The model answers immediately."""
    with run_stub() as url:
        return await _measure_sessions(url, count, SEARCH)


async def behind_a_model(count: int) -> TurnFigures:
    """Ask all sessions concurrently. The model has a latency of `MODEL_LATENCY`."""
    with run_stub(delay=MODEL_LATENCY) as url:
        return await _measure_sessions(url, count, SEARCH)


@tool
def search(query: str, limit: int = 10) -> str:
    """Search the records and block the thread.

    Args:
        query: Words to look for.
        limit: Most results.
    """
    time.sleep(TOOL_SECONDS)
    return "found"


@tool(name="search")
async def search_async(query: str, limit: int = 10) -> str:
    """Search the records.

    Args:
        query: Words to look for.
        limit: Most results.
    """
    await anyio.sleep(TOOL_SECONDS)
    return "found"


async def blocking(count: int) -> TurnFigures:
    """Ask all sessions concurrently. Each calls one blocking tool."""
    with run_stub(calls=1) as url:
        return await _measure_sessions(url, count, search)


async def without_threads(count: int) -> TurnFigures:
    """Ask all sessions concurrently. Each calls one async tool."""
    with run_stub(calls=1) as url:
        return await _measure_sessions(url, count, search_async)


_Clients: TypeAlias = tuple[MemoryObjectSendStream[by_hand.Client], MemoryObjectReceiveStream[by_hand.Client]]
"""A pool of idle clients: the stream to return a client, and the stream to take one."""


@asynccontextmanager
async def _open_clients(url: str) -> AsyncIterator[_Clients]:
    """Yield a pool of hand-written clients with open connections."""
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
    with run_stub() as url:
        async with _open_clients(url) as (put, free):

            async def post(body: bytes) -> bytes:
                client = await free.receive()
                try:
                    return await client.post(body)
                finally:
                    put.send_nowait(client)

            async def turn() -> None:
                await by_hand.run_turn(post, stream=True)
                turns.ends.append(time.perf_counter())

            await ConcurrentTurns().run_all([turn] * CONNECTIONS)
            turns.ends.clear()
            return await turns.sample([turn] * count)


WORKS: dict[str, Callable[[int], Coroutine[Any, Any, TurnFigures]]] = {
    each.__name__: each
    for each in (rotation, at_once, behind_a_model, blocking, without_threads, by_hand_at_once)
}


def measure(
    work: Callable[[int], Coroutine[Any, Any, TurnFigures]], count: int, backend: Loop
) -> TurnFigures:
    """Run a case with `count` sessions in a new process, and return its figures."""
    name = next(name for name, each in WORKS.items() if each is work)
    command = (sys.executable, "-m", "benchmarks.many", name, str(count), backend)
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return decode(done.stdout, type=TurnFigures)


# ---- rows


def _measure_h1(options: Extent) -> list[Figure]:
    rows = []
    for backend in options.backends:
        for count in (20,) if options.quick else (150, 1000, 5000):
            sample = measure(rotation, count, backend)
            note = f"turns {LATE} and {EARLY}; {sample.rebuilds:,} sessions were rebuilt from their logs"
            case = f"{backend}, {count:,}"
            rows.append(Figure("H1", _QUESTIONS["H1"], case, "ms", 1.2, sample.ms, sample.early_ms, note))
    return rows


def _measure_h2(options: Extent) -> list[Figure]:
    sizes = (
        ((20, 0.0), (100, 1.5)) if options.quick else ((100, 0.0), (1000, 1.5), (5000, 1.5), (20_000, 1.8))
    )
    counts = [count for count, _ in sizes]
    peers = {
        count: _library_peers(options.libraries, count)
        for count in counts
        if count <= _MAX_PEER_CONVERSATIONS
    }
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


_MAX_PEER_CONVERSATIONS = 1000
"""Maximum number of concurrent conversations for other libraries. With 5,000, strands-agents takes over 15 minutes."""


def _library_peers(libraries: Sequence[Library], count: int) -> tuple[Peer, ...]:
    others = OtherLibraries(libraries)
    others.measure_each(partial(_library_turn_ms, count))
    return others.peers()


def _library_turn_ms(count: int, library: Library) -> float:
    with run_stub() as url:
        return library.turns(url, count, stream=True, at_once=True)


def _measure_h3(options: Extent) -> list[Figure]:
    count = 100 if options.quick else 5000
    rows = []
    for backend in options.backends:
        minimum, ours = (measure(work, count, backend) for work in (by_hand_at_once, at_once))
        note = f"99 of 100 looks; by hand {minimum.lag_ms:.3g} ms"
        rows.append(
            Figure("H3", _QUESTIONS["H3"], f"{backend}, {count:,}", "ms", 250, ours.lag_ms, note=note)
        )
    return rows


def _measure_h4(options: Extent) -> list[Figure]:
    count = 150 if options.quick else 1500
    least = count * MODEL_LATENCY / CONNECTIONS  # half of the sessions' two requests each
    rows = []
    for backend in options.backends:
        sample, case = measure(behind_a_model, count, backend), f"{backend}, {count:,}"
        clock = f"by the clock; the model alone takes {2 * MODEL_LATENCY:g} s"
        rows.append(Figure("H4", _QUESTIONS["H4"], case, "s", 2.0, sample.first, note=clock))
        half = "by the clock; baseline: the model's own time for half of the requests"
        rows.append(Figure("H4", _HALF, case, "s", 1.26, sample.middle, least, half))
        rows.append(Figure("H4", _FAILED, case, "turns", 0, sample.failed))
    return rows


def _measure_h5(options: Extent) -> list[Figure]:
    count = 400 if options.quick else 4000
    rows = []
    for backend in options.backends:
        sample = measure(blocking, count, backend)
        asynchronous = measure(without_threads, count, backend).last
        least, case = max(count * TOOL_SECONDS / CONNECTIONS, asynchronous), f"{backend}, {count:,}"
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
    for goal, run in (
        ("H1", _measure_h1),
        ("H2", _measure_h2),
        ("H3", _measure_h3),
        ("H4", _measure_h4),
        ("H5", _measure_h5),
    )
)


def main(name: str, count: str, backend: str) -> None:
    """Run the case `name` in this process, and print its figures as JSON."""
    print(json.dumps(asdict(anyio.run(WORKS[name], int(count), backend=backend))))


if __name__ == "__main__":
    main(*sys.argv[1:])
