"""Many turns in one process: the resources held at rest are the same at the end as near the beginning.

    python -m tests.commands.endurance --turns 200000

Sessions on a file journal are opened and deleted: they ask, call tools, are cancelled during a turn, switched and
compacted, and sleep, because only a few keep their actors. After each lap all sessions are at rest, and the resources
of the process are measured. Tasks, threads and descriptors must be the same as after the first three laps. Memory may
grow by 1 MiB in 100,000 turns, measured as the slope of the resident bytes after the first fifth of the laps. The model
runs in this process, so it has no connections.
"""

import argparse
import ctypes
import gc
import json
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from random import Random
from statistics import linear_regression
from time import monotonic
from typing import Any

import anyio
from msgspec import Struct
from msgspec.structs import replace
from trio._core._run import GLOBAL_RUN_CONTEXT

from actors import Compaction, Runtime, tool
from actors.config import BackendSettings, Config, FileSettings, RuntimeLimits
from actors.core.data.persistent import Segments
from actors.core.stream_events.ask_events import AskResult, CompleteEvent, ErrorEvent
from actors.errors import CompactionFailed, JournalUnavailable
from actors.journal.storage.sqlite import SqliteStorage
from actors.runtime.handle import Session
from actors.testing.stressing import ResourceCounts, find_leaks
from actors.transport import Response, Timeouts
from benchmarks.canned import CALLS_ANSWER, text_stream
from benchmarks.memory import resident
from tests.saying import say

TARGETS = ("one", "other")
SESSIONS, ACTIVE = 24, 4
LIFE = 0.06
"""The probability, after each turn, that a session is deleted and replaced by a new one."""
CANCELLED, SWITCHED, COMPACTED = 0.1, 0.1, 0.05
MOST = 1.0
"""The MiB that memory may grow by in 100,000 turns."""
MEMORY = Path("/dev/shm")
"""A folder in memory, because the disk is not measured."""
EARLY = 3
"""The number of first laps; later laps may hold at most their maximum."""
WARM = 0.2
"""The share of the laps that the slope ignores."""


class Lap(Struct, frozen=True):
    """The resources of the process when all sessions are at rest.

    Args:
        turns: The turns so far.
        resident: Resident bytes.
        blocks: Memory blocks allocated by Python.
        modules: The number of imported modules.
        asleep: Sessions without actors.
    """

    turns: int
    held: ResourceCounts
    resident: int
    blocks: int
    modules: int
    asleep: int


class Model:
    """A transport with a model that calls tools when asked, and answers with text after their results."""

    def __init__(self) -> None:
        self.words = text_stream(3)

    @asynccontextmanager
    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AsyncIterator[Response]:
        """Return an answer of the model; see `Transport.send`."""
        await anyio.lowlevel.checkpoint()
        message = json.loads(b"".join(segments))["messages"][-1]
        calls = message["role"] == "user" and str(message["content"]).endswith("Search.")
        yield Answer(CALLS_ANSWER if calls else self.words)

    async def close(self) -> None:
        """Do nothing."""


class Answer:
    """A streamed answer."""

    status = 200
    headers: Mapping[str, str] = {"content-type": "text/event-stream"}

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the answer in two pieces."""
        half = len(self._body) // 2
        yield self._body[:half]
        await anyio.lowlevel.checkpoint()
        yield self._body[half:]


@tool(effects="pure")
async def search(query: str, limit: int) -> str:
    """Search."""
    await anyio.lowlevel.checkpoint()
    return f"{query}: {limit}".ljust(300, ".")


class Endurance:
    """Sessions of one runtime that are opened and deleted."""

    def __init__(self, runtime: Runtime, seed: int) -> None:
        self._runtime, self._random = runtime, Random(seed)
        self._opened = 0
        self.turns = 0
        self.did = Counter[str]()

    async def lap(self, turns: int) -> None:
        """Make about this many turns in all sessions, and wait until they are at rest."""
        async with anyio.create_task_group() as tasks:
            for _ in range(SESSIONS):
                tasks.start_soon(self._continue, turns // SESSIONS)

    async def _continue(self, turns: int) -> None:
        session = await self._new()
        for _ in range(turns):
            try:
                await self._turn(session)
            except JournalUnavailable:  # the disk of a busy machine stalled for seconds
                self.did["refused because the journal was slow"] += 1
            if self._random.random() < LIFE:
                await self._runtime.journal.delete(session.id)
                session = await self._new()
        await self._runtime.journal.delete(session.id)

    async def _new(self) -> Session:
        self._opened += 1
        while True:
            try:
                return await self._runtime.open(TARGETS[0], tools=[search], id=f"s{self._opened}")
            except JournalUnavailable:  # as in `_continue`
                await anyio.sleep(1)

    async def _turn(self, session: Session) -> None:
        chance = self._random.random
        words = "Please. Search." if chance() < 0.5 else "Please."
        if chance() < SWITCHED:
            await session.switch(TARGETS[session.target == TARGETS[0]])
            self.did["switched"] += 1
        if chance() < CANCELLED:
            async with session.stream(words) as events:
                for _ in range(self._random.randrange(30)):
                    await anyio.lowlevel.checkpoint()
                await session.cancel()
                async for event in events:
                    if isinstance(event, CompleteEvent | ErrorEvent):
                        self._count_end(event.result)
        else:
            self._count_end(await session.ask(words, check=False))
        if chance() < COMPACTED:
            try:
                self.did["compacted"] += (await session.compact()).messages > 0
            except CompactionFailed:
                self.did["not compacted"] += 1

    def _count_end(self, result: AskResult) -> None:
        self.did[result.status] += 1
        self.turns += 1


def idle_tasks() -> int:
    """Return the number of idle tasks kept on trio for later tools: the highest number of tools that ran at once."""
    runner = getattr(GLOBAL_RUN_CONTEXT, "runner", None)
    names = () if runner is None else [task.name for task in runner.tasks]
    return sum(name.endswith("ContainedTasks._contain") for name in names)


async def measure(runtime: Runtime, turns: int, first: ResourceCounts | None) -> Lap:
    """Measure the resources of the process after pending work has ended and free memory was returned."""
    kept = idle_tasks()
    if first is not None:
        await find_leaks(replace(first, tasks=first.tasks + kept))
    held = ResourceCounts.now()
    held = replace(held, tasks=held.tasks - kept)
    if (runner := getattr(GLOBAL_RUN_CONTEXT, "runner", None)) is not None:
        runner.deadlines._prune()  # trio keeps moved deadlines until there are a thousand
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
    stats = runtime.stats()
    asleep = stats.sessions - stats.active
    return Lap(turns, held, resident(), sys.getallocatedblocks(), len(sys.modules), asleep)


async def run_laps(folder: Path, turns: int, lap: int, seed: int) -> tuple[list[Lap], Counter[str]]:
    """Make this many turns; return the measurement after each lap, and the counts of the actions."""
    import_module(
        "structlog"
    )  # the first log event imports it, and a busy machine logs slow handlers at any time
    backend = {"kind": "openai", "dialect": "openai_chat", "model": "m", "base_url": "http://127.0.0.1:9/v1"}
    backends = {name: BackendSettings.model_validate(backend) for name in TARGETS}
    limits = RuntimeLimits(max_active_sessions=ACTIVE)
    config = Config(FileSettings(backends=backends, limits=limits), {})
    journal = SqliteStorage(folder / "sessions.db", durability="process")
    laps = list[Lap]()
    made = Runtime(config, transport=Model(), journal=journal, compaction=Compaction(keep_turns=1), seed=seed)
    async with made as runtime:
        work = Endurance(runtime, seed)
        for _ in range(SESSIONS):  # these sessions sleep until the end
            await (await runtime.open(TARGETS[0], tools=[search])).ask("Please. Search.")
        while work.turns < turns:
            await work.lap(lap)
            laps.append(await measure(runtime, work.turns, early(laps) if laps else None))
            if len(laps) % 20 == 0:
                say(f"{work.turns:,} turns: {laps[-1].resident / 2**20:.1f} MiB, {laps[-1].blocks:,} blocks")
        return laps, work.did


def early(laps: Sequence[Lap]) -> ResourceCounts:
    """Return the maximum of the first laps for each resource.

    The number of active sessions at the end of a lap varies.
    """
    first = [each.held for each in laps[:EARLY]]
    return ResourceCounts(
        *[max(getattr(held, name) for held in first) for name in ResourceCounts.__struct_fields__]
    )


def slope(laps: Sequence[Lap], held: str) -> float:
    """Return the growth of a figure in 100,000 turns, after the first laps."""
    warm = laps[int(WARM * len(laps)) :]
    turns, amounts = [each.turns for each in warm], [float(getattr(each, held)) for each in warm]
    return linear_regression(turns, amounts).slope * 100_000


def main() -> int:
    """Make the turns on each backend; print the measurements, and exit with 1 if they grew."""
    parser = argparse.ArgumentParser(
        "python -m tests.commands.endurance", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--turns", type=int, default=200_000, help="the total, half of it on each backend")
    parser.add_argument("--lap", type=int, default=480, help="turns between two measurements")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--backend", choices=["asyncio", "trio", "both"], default="both")
    options = parser.parse_args()
    wrong = 0
    backends = ("asyncio", "trio") if options.backend == "both" else (options.backend,)
    for backend in backends:
        began = monotonic()
        with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
            work: Any = (run_laps, Path(folder), options.turns // len(backends), options.lap, options.seed)
            laps, did = anyio.run(*work, backend=backend)
        grew = slope(laps, "resident") / 2**20
        same = not any(each.held.exceeds(early(laps)) for each in laps[EARLY:])
        wrong += grew > MOST or not same
        said = ", ".join(f"{count:,} {what}" for what, count in sorted(did.items()))
        say(f"{backend}: {laps[-1].turns:,} turns in {monotonic() - began:.0f} s: {said}")
        say(
            f"  at rest {early(laps)}, {'always' if same else f'at last {laps[-1].held}'}; {laps[-1].asleep} asleep"
        )
        say(f"  in 100,000 turns memory grows by {grew:.2f} MiB, and by {slope(laps, 'blocks'):,.0f} blocks")
        if late := laps[-1].modules - laps[0].modules:
            say(f"  {late} modules were imported after the first lap; the growth includes them")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
