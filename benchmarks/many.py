"""H: thousands of sessions in one process, which asks with `gc="tuned"`, as a process that belongs to the runtime does.

    H1   sessions in rotation: what turn 60 costs more than turn 10, with default limits; the model is in this process
    H2   a turn over HTTP where N sessions ask at once behind 64 connections; baseline: the loop by hand with as many
    H3   how late the event loop is meanwhile
    H4   1,500 sessions behind 64 connections and a model that takes 300 ms: when the first turn ends, and half of them
    H5   4,000 blocking tools of 50 ms on 64 threads

Each case runs in a process of its own, so that its heap and its collector are new. H4 and H5 are measured by the clock,
because they are about waiting.
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
from benchmarks.http import configured
from benchmarks.others import Others
from benchmarks.start import ROOT
from benchmarks.stub import running
from benchmarks.timing import async_cpu_ms
from benchmarks.turn import SEARCH

Turn: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
CONNECTIONS = 64
LOOK = 0.01
"""Seconds between two looks at the event loop."""
DELAY = 0.3
"""Seconds that the model of H4 takes for an answer."""
NAP = 0.05
"""Seconds that a tool of H5 keeps its thread."""


class TurnFigures(Struct, frozen=True):
    """The figures of one case; a figure that is not about the case is 0.

    Args:
        ms: CPU milliseconds of a turn; in rotation, of a late one.
        early_ms: CPU milliseconds of an early turn in rotation, on the machine as it was later.
        lag_ms: Milliseconds by which 99 of 100 looks at the event loop were late at most.
        first, middle, last: Seconds until the first turn ended, half of them, and all.
        failed: ConcurrentTurns that failed.
        rebuilds: Sessions that were made of their logs again.
    """

    ms: float = 0.0
    early_ms: float = 0.0
    lag_ms: float = 0.0
    first: float = 0.0
    middle: float = 0.0
    last: float = 0.0
    failed: int = 0
    rebuilds: int = 0


# ---- what a process of its own measures

EARLY, LATE = 10, 60
_NEAR = 2
"""Rounds before and after an early or a late one that are measured too."""


EVERY = 10
"""Turns of sessions for each turn by hand."""


async def rotation(count: int) -> TurnFigures:
    """Let sessions take turns in random order until each has had `LATE` and a few more.

    The loop by hand takes a turn after every tenth, and the early figure is scaled by what that costs later: minutes
    lie between the two, and a machine whose speed changes meanwhile would decide otherwise.
    """
    config = configured("http://127.0.0.1:9/v1", stream=True)
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
    """CPU milliseconds of a turn in a round: of a session, and by hand."""

    ours: float
    by_hand: float


def _around(rounds: Mapping[int, RoundCost], number: int) -> RoundCost:
    near = [rounds[each] for each in range(number - _NEAR, number + _NEAR + 1)]
    return RoundCost(*(median(column) for column in zip(*near, strict=True)))


async def _round(sessions: Sequence[Session]) -> RoundCost:
    """Let each session ask once."""
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
    """Many turns at once: when each ended, how many failed, and how late the event loop was meanwhile."""

    def __init__(self) -> None:
        self.ends: list[float] = []
        self.failed = 0
        self._late: list[float] = []

    async def ask(self, session: Session) -> None:
        """Ask a session once."""
        result = await session.ask(by_hand.QUESTION, check=False)
        self.failed += result.status != "complete"
        self.ends.append(time.perf_counter())

    async def all(self, turns: Sequence[Turn]) -> None:
        """Run turns at once, and look at the event loop until all have ended."""
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
        """Run turns at once and return their figures."""
        began = time.perf_counter()
        ms = await async_cpu_ms(partial(self.all, turns)) / len(turns)
        first, *_ = ends = sorted(end - began for end in self.ends)
        late = sorted(self._late) or [0.0]
        lag = late[int(0.99 * (len(late) - 1))] * 1e3
        return TurnFigures(ms, 0.0, lag, first, ends[len(ends) // 2], ends[-1], self.failed)


@asynccontextmanager
async def _sessions(url: str, count: int, search: Tool[..., Any]) -> AsyncIterator[list[Session]]:
    """Open sessions on the stub; a few more have asked before, so that its connections are there."""
    async with Runtime(configured(url, stream=True, connections=CONNECTIONS), gc="tuned") as runtime:
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
    """Let sessions ask at once a model that does not think."""
    with running() as url:
        return await _ours(url, count, SEARCH)


async def behind_a_model(count: int) -> TurnFigures:
    """Let sessions ask at once a model that takes its time."""
    with running(delay=DELAY) as url:
        return await _ours(url, count, SEARCH)


@tool
def search(query: str, limit: int = 10) -> str:
    """Search the records, in a thread.

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
    """Let sessions call a blocking tool each at once."""
    with running(calls=1) as url:
        return await _ours(url, count, search)


async def without_threads(count: int) -> TurnFigures:
    """The same with a tool that needs no thread."""
    with running(calls=1) as url:
        return await _ours(url, count, search_async)


_Clients: TypeAlias = tuple[MemoryObjectSendStream[by_hand.Client], MemoryObjectReceiveStream[by_hand.Client]]
"""Where a client that is free is put, and taken from."""


@asynccontextmanager
async def _clients(url: str) -> AsyncIterator[_Clients]:
    """Open connections by hand."""
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
    """The loop by hand: as many conversations at once over as many connections."""
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


def measured(
    work: Callable[[int], Coroutine[Any, Any, TurnFigures]], count: int, backend: Loop
) -> TurnFigures:
    """Return the figures of a case, measured in a process of its own."""
    name = next(name for name, each in WORKS.items() if each is work)
    command = (sys.executable, "-m", "benchmarks.many", name, str(count), backend)
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return decode(done.stdout, type=TurnFigures)


# ---- rows


def _h1(options: Extent) -> list[Figure]:
    rows = []
    for backend in options.backends:
        for count in (20,) if options.quick else (150, 1000, 5000):
            sample = measured(rotation, count, backend)
            note = f"turns {LATE} and {EARLY}; {sample.rebuilds:,} sessions were made of their logs again"
            case = f"{backend}, {count:,}"
            rows.append(Figure("H1", _QUESTIONS["H1"], case, "ms", 1.2, sample.ms, sample.early_ms, note))
    return rows


def _h2(options: Extent) -> list[Figure]:
    sizes = ((20, 0.0), (100, 1.5)) if options.quick else ((100, 0.0), (5000, 1.5), (20_000, 1.8))
    counts = [count for count, _ in sizes]
    peers = {count: _peers(options.libraries, count) for count in counts if count <= _MOST_OF_PEERS}
    rows = []
    for backend in options.backends:
        minima = {count: measured(by_hand_at_once, count, backend) for count in counts}
        ours = {count: measured(at_once, count, backend) for count in counts}
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
"""Conversations at once for which another library is measured: it takes minutes of a core for as many."""


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
        minimum, ours = (measured(work, count, backend) for work in (by_hand_at_once, at_once))
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
        sample, case = measured(behind_a_model, count, backend), f"{backend}, {count:,}"
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
        sample = measured(blocking, count, backend)
        asynchronous = measured(without_threads, count, backend).last
        least, case = max(count * NAP / CONNECTIONS, asynchronous), f"{backend}, {count:,}"
        note = f"by the clock; baseline: 64 threads, or async tools, which take {asynchronous:.3g} s"
        rows.append(Figure("H5", _QUESTIONS["H5"], case, "s", 1.3, sample.last, least, note))
        rows.append(Figure("H5", _REFUSED, case, "turns", 0, sample.failed))
    return rows


_GROWTH = "the same, against few sessions"
_FAILED = "turns that failed"
_REFUSED = "turns that failed, or whose call was refused"
_HALF = "until half of the turns have ended"
_QUESTIONS = {
    "H1": "a late turn where sessions take turns in random order",
    "H2": "a turn over HTTP where all sessions ask at once",
    "H3": "how late the event loop is while all sessions ask at once",
    "H4": "until the first turn has ended, behind 64 connections and a slow model",
    "H5": "until blocking tools of 50 ms have run on 64 threads",
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
