"""E1, E3, C2 and part of E2: what sessions hold, each measurement in a process of its own.

    E1   idle sessions of 50 messages: opened on an import; and after an ask on each of two backends
    E2   sessions that sleep in a file
    E3   sessions that were asked, closed and forgotten
    C2   one live session at turn 500

python -m benchmarks.memory sessions 1000 asyncio     # prints one JSON object
python -m benchmarks.memory asked 1000 asyncio        # sessions that lived on two backends
python -m benchmarks.memory buffers 1000 asyncio      # the baseline: one byte buffer a session
python -m benchmarks.memory hibernated 1000 asyncio   # sessions that sleep
python -m benchmarks.memory forgotten 1000 asyncio    # sessions that lived there and were forgotten
python -m benchmarks.memory live 500 asyncio          # one session after 500 turns
"""

import gc
import json
import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import anyio

from actors.config import RuntimeLimits
from actors.core.values.content import Message
from actors.journal.storage.named import storage_at
from actors.runtime.handle import Session
from actors.runtime.runtime import Runtime
from benchmarks.figures import Extent, Figure, Library, Loop, Measure, Peer
from benchmarks.others import Others
from benchmarks.start import ROOT
from benchmarks.turn import OTHER, SEARCH, TARGET, hosted
from benchmarks.workload import Author, Live, binding, blocks, payload, told


@dataclass(frozen=True, slots=True)
class Weight:
    """What idle sessions hold: bytes and tracked objects of one, milliseconds to collect with all of them."""

    resident: float
    payload: float
    tracked: float
    collection_ms: float


def conversation(number: int) -> list[Message]:
    """Return 50 messages that share no text with any other conversation."""
    return told(list(blocks(Author(binding("anthropic"), number), 60)))[:50]


def resident() -> int:
    """Return this process's resident bytes."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _bytes() -> int:
    """Return the bytes that are traced; the resident ones where none are."""
    return tracemalloc.get_traced_memory()[0] if tracemalloc.is_tracing() else resident()


def _collection_ms() -> float:
    """Return the CPU milliseconds of one full collection."""
    began = time.thread_time()
    gc.collect()
    return (time.thread_time() - began) * 1e3


class Scales:
    """Weighs what is built between its making and `held`."""

    def __init__(self) -> None:
        import_module("structlog")  # the first log event does, and a busy machine logs slow handlers
        gc.collect()
        self._bytes = _bytes()
        self._tracked = len(gc.get_objects())

    def held(self, count: int, said: int) -> Weight:
        """Return what each of `count` holds, in which `said` bytes were said in all."""
        gc.collect()
        gc.collect()
        took = median(_collection_ms() for _ in range(3))
        tracked = len(gc.get_objects()) - self._tracked
        return Weight((_bytes() - self._bytes) / count, said / count, tracked / count, took)


_FIRST = 20
"""Sessions that are there before others are weighed: what the process keeps, it keeps then."""
IDLE = RuntimeLimits(max_active_sessions=1)
"""With few actors. What sessions keep beside their logs is dropped before they are weighed."""


def _let_sleep(runtime: Runtime) -> None:
    """Have sessions without actors keep nothing but their logs, as those do that were not used for long."""
    runtime._running().residency.evict_folds(0)  # a program has no use for it


async def sessions(count: int) -> Weight:
    """Open sessions and weigh them."""
    async with hosted(IDLE) as runtime:
        for number in range(count, count + _FIRST):
            await _opened(runtime, conversation(number))
        scales, said = Scales(), 0
        for number in range(count):
            said += await _opened(runtime, conversation(number))
        return scales.held(count, said)


async def _opened(runtime: Runtime, messages: list[Message]) -> int:
    await runtime.open(TARGET, tools=[SEARCH], messages=messages)
    return payload(messages)


async def asked(count: int) -> Weight:
    """Open sessions on 34 messages, ask each on two backends, and weigh them."""
    async with hosted(IDLE) as runtime:
        for number in range(count, count + _FIRST):
            await _on_both(runtime, conversation(number)[:34])
        _let_sleep(runtime)
        scales, said = Scales(), 0
        for number in range(count):
            said += await _on_both(runtime, conversation(number)[:34])
        _let_sleep(runtime)
        return scales.held(count, said)


async def _on_both(runtime: Runtime, messages: list[Message]) -> int:
    """Ask a session on each of two backends; return the bytes of what was said."""
    return payload(list(await (await _lived(runtime, messages)).history()))


async def _lived(runtime: Runtime, messages: list[Message]) -> Session:
    session = await runtime.open(TARGET, tools=[SEARCH], messages=messages)
    for target in (TARGET, OTHER):
        await session.switch(target)
        answer = await session.ask("Please settle the question with five searches.")
        assert answer.status == "complete"
    return session


async def hibernated(count: int) -> Weight:
    """Open sessions on a file, some at a time, ask one in twenty, and weigh them when all but the last few sleep."""
    limits = RuntimeLimits(max_active_sessions=1, sessions=1_000_000, memory=512 * 1024)
    with TemporaryDirectory() as folder:
        async with hosted(limits, storage_at(Path(folder) / "journal.db", "process")) as runtime:
            await _hibernated(runtime, range(_BEFORE))
            scales = Scales()
            await _hibernated(runtime, range(_BEFORE, _BEFORE + count))
            assert runtime.stats().hibernated >= count
            return scales.held(count, 0)


async def _hibernated(runtime: Runtime, numbers: range) -> None:
    async def several(numbers: range) -> None:
        for number in numbers:
            session = await runtime.open(TARGET, tools=[SEARCH], id=f"s{number}")
            if number % 20 == 0:
                assert (await session.ask("Please settle it with five searches.")).status == "complete"

    async with anyio.create_task_group() as tasks:  # so that many are written at once
        for first in range(_AT_ONCE):
            tasks.start_soon(several, numbers[first::_AT_ONCE])


_AT_ONCE = 16
_BEFORE = 2500
"""Sessions after which SQLite's own memory no longer grows."""


async def forgotten(count: int) -> Weight:
    """Open sessions, ask each on two backends and delete it, closed before or not; weigh what is left."""
    async with hosted() as runtime:
        await _forgotten(runtime, conversation(count)[:10], closed=False)
        tracemalloc.start()  # so little cannot be seen in pages; what is replaced from now on was traced too
        for number in range(20):  # what the process keeps, it keeps now
            await _forgotten(runtime, conversation(number)[:10], closed=False)
        scales = Scales()
        for number in range(count):
            await _forgotten(runtime, conversation(number)[:10], closed=number % 2 == 0)
        return scales.held(count, 0)


async def _forgotten(runtime: Runtime, messages: list[Message], *, closed: bool) -> None:
    session = await _lived(runtime, messages)
    if closed:
        await session.close()
    await runtime.journal.delete(session.id)


async def live(turns: int) -> Weight:
    """Hold one session for so many turns and weigh it."""
    async with hosted() as runtime:
        await runtime.journal.delete(
            (await _asked_often(runtime, turns)).id
        )  # what the process keeps, it keeps now
        tracemalloc.start()  # one session cannot be seen in pages
        scales = Scales()
        session = await _asked_often(runtime, turns)
        return scales.held(1, payload(list(await session.history())))


async def _asked_often(runtime: Runtime, turns: int) -> Session:
    session = await runtime.open(TARGET, tools=[SEARCH])
    for _ in range(turns):
        await session.ask("Please settle the question with five searches.")
    return session


async def buffers(count: int) -> Weight:
    """Weigh the same conversations as one byte buffer each."""
    kept = [b"x" * payload(conversation(number)) for number in range(count, count + _FIRST)]
    scales, said = Scales(), 0
    for number in range(count):
        kept.append(b"x" * payload(conversation(number)))
        said += len(kept[-1])
    held = scales.held(count, said)
    assert len(kept) == count + _FIRST
    return held


def measured(what: str, count: int, backend: Loop) -> Weight:
    """Return what a measurement of this module found in a process of its own."""
    command = (sys.executable, "-m", "benchmarks.memory", what, str(count), backend)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return Weight(**json.loads(done.stdout))


def _e1(options: Extent) -> list[Figure]:
    count = 150 if options.quick else 10_000
    baseline = measured("buffers", count, "asyncio")
    peers = _peers(options.libraries, count)
    rows = []
    for backend in options.backends:
        idle = _rows(_QUESTION, backend, count, measured("sessions", count, backend), baseline)
        rows += [replace(row, peers=found) for row, found in zip(idle, peers, strict=True)]
        rows += _rows(_ASKED, backend, count, measured("asked", count, backend), baseline)
    return rows


def _peers(libraries: Sequence[Library], count: int) -> list[tuple[Peer, ...]]:
    """Return what other libraries hold and what that costs: kilobytes, objects, milliseconds of a collection."""
    held: list[Others] = [Others(libraries) for _ in range(3)]
    with TemporaryDirectory() as folder:
        histories = Path(folder) / "histories.jsonl"
        if libraries:
            histories.write_bytes(b"\n".join(map(_wire, range(count + _FIRST))))
        weighed = cache(lambda library: library.held(histories))
        for column, (others, unit) in enumerate(zip(held, (1e3, 1, 1), strict=True)):
            others.take(lambda library, column=column, unit=unit: weighed(library)[column] / unit)  # type: ignore[misc]
    return [others.peers() for others in held]


def _wire(number: int) -> bytes:
    """Return 50 messages as Chat Completions has them, which share no text with those of another number."""
    live = Live("openai_chat", "openai_chat", 60, seed=number)
    return json.dumps(json.loads(b"".join(live.cold()))["messages"][:50]).encode()


def _rows(question: str, backend: Loop, count: int, ours: Weight, baseline: Weight) -> list[Figure]:
    per = f"{count:,} sessions"
    least = f"{per}; baseline: the payload; a byte buffer holds {baseline.resident / baseline.payload:.2f} x"
    return [
        Figure("E1", question, backend, "KB", 1.3, ours.resident / 1e3, ours.payload / 1e3, least),
        Figure("E1", question, backend, "objects", 10, ours.tracked, note=_TRACKED),
        Figure(
            "E1",
            _COLLECTION,
            backend,
            "ms",
            2.0,
            ours.collection_ms,
            baseline.collection_ms,
            _COLLECTION_NOTE,
        ),
    ]


def _c2(options: Extent) -> list[Figure]:
    turns = 50 if options.quick else 500
    rows = []
    for backend in options.backends:
        ours = measured("live", turns, backend)
        note = f"turn {turns}; baseline: its messages; goal 1.3 x, and 1 x more for its lane"
        rows.append(Figure("C2", _LIVE, backend, "KB", 2.3, ours.resident / 1e3, ours.payload / 1e3, note))
    return rows


def _e3(options: Extent) -> list[Figure]:
    count = 40 if options.quick else 1000
    rows = []
    for backend in options.backends:
        ours = measured("forgotten", count, backend)
        note = f"{count} sessions, asked on two backends; half of them closed first"
        rows.append(Figure("E3", _FORGOTTEN, backend, "bytes", 200, ours.resident, note=note))
        rows.append(Figure("E3", _FORGOTTEN, backend, "objects", 0.1, ours.tracked, note=_TRACKED))
    return rows


_QUESTION = "an idle session of 50 messages"
_ASKED = "an idle session of 50 messages, asked on two backends"
_LIVE = "a live session with one lane"
_COLLECTION = "a full collection with idle sessions"
_COLLECTION_NOTE = "baseline: with byte buffers; goal 30 ms where the baseline takes 15"
_FORGOTTEN = "a session that was forgotten"
_TRACKED = "tracked by the garbage collector"
MEASURES = (
    Measure("E1", _QUESTION, _e1),
    Measure("E3", _FORGOTTEN, _e3),
    Measure("C2", _LIVE, _c2),
)


def main(what: str, count: str, backend: str) -> None:
    """Print what `count` idle sessions, or buffers, hold."""
    works = {each.__name__: each for each in (sessions, asked, hibernated, forgotten, buffers, live)}
    work: Any = works[what]  # Any: a coroutine function
    print(json.dumps(asdict(anyio.run(work, int(count), backend=backend))))


if __name__ == "__main__":
    main(*sys.argv[1:])
