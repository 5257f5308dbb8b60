"""Measure the memory of sessions (E1, E3, C2 and part of E2). Each measurement runs in a separate process.

    E1   idle sessions of 50 messages: opened from an import, and after an ask on each of two backends
    E2   hibernated sessions in a file
    E3   deleted sessions, half of them closed first
    C2   one live session at turn 500

python -m benchmarks.memory sessions 1000 asyncio              # prints one JSON object
python -m benchmarks.memory asked_sessions 1000 asyncio        # sessions asked on two backends
python -m benchmarks.memory buffers 1000 asyncio               # the baseline: one byte buffer per session
python -m benchmarks.memory hibernated_sessions 1000 asyncio   # hibernated sessions
python -m benchmarks.memory deleted_sessions 1000 asyncio      # sessions asked on two backends and deleted
python -m benchmarks.memory live_session 500 asyncio           # one session after 500 turns
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
from actors.journal.storage.named import create_storage
from actors.runtime.handle import Session
from actors.runtime.runtime import Runtime
from benchmarks.figures import Extent, Figure, Library, Loop, Measure, Peer
from benchmarks.others import Others
from benchmarks.start import ROOT
from benchmarks.turn import OTHER, SEARCH, TARGET, open_runtime
from benchmarks.workload import Author, Live, binding, blocks, imported_messages, payload


@dataclass(frozen=True, slots=True)
class Weight:
    """Memory per idle session: bytes, tracked objects, and the milliseconds of one collection over all sessions."""

    resident: float
    payload: float
    tracked: float
    collection_ms: float


def conversation(number: int) -> list[Message]:
    """Return 50 messages that share no text with any other conversation."""
    return imported_messages(list(blocks(Author(binding("anthropic"), number), 60)))[:50]


def resident() -> int:
    """Return the resident bytes of this process."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _bytes() -> int:
    """Return the bytes that `tracemalloc` traces, or the resident bytes if it is off."""
    return tracemalloc.get_traced_memory()[0] if tracemalloc.is_tracing() else resident()


def _collection_ms() -> float:
    """Return the CPU milliseconds of one full collection."""
    began = time.thread_time()
    gc.collect()
    return (time.thread_time() - began) * 1e3


class Scales:
    """Measures the memory allocated between construction and `weigh`."""

    def __init__(self) -> None:
        import_module("structlog")  # the first log event does, and a busy machine logs slow handlers
        gc.collect()
        self._bytes = _bytes()
        self._tracked = len(gc.get_objects())

    def weigh(self, count: int, said: int) -> Weight:
        """Return the memory of each of `count` sessions with `said` bytes of content in total."""
        gc.collect()
        gc.collect()
        took = median(_collection_ms() for _ in range(3))
        tracked = len(gc.get_objects()) - self._tracked
        return Weight((_bytes() - self._bytes) / count, said / count, tracked / count, took)


_FIRST = 20
"""Sessions opened before the measurement, so that allocations made once per process are not counted."""
IDLE = RuntimeLimits(max_active_sessions=1)
"""Limits that leave almost no session with actors. State other than logs is evicted before the measurement."""


def _let_sleep(runtime: Runtime) -> None:
    """Evict all state but the logs of sessions without actors, as happens to sessions unused for a long time."""
    runtime._running_host().residency.evict_replays(0)  # there is no public method: programs do not need one


async def sessions(count: int) -> Weight:
    """Open sessions and weigh them."""
    async with open_runtime(IDLE) as runtime:
        for number in range(count, count + _FIRST):
            await _open(runtime, conversation(number))
        scales, said = Scales(), 0
        for number in range(count):
            said += await _open(runtime, conversation(number))
        return scales.weigh(count, said)


async def _open(runtime: Runtime, messages: list[Message]) -> int:
    await runtime.open(TARGET, tools=[SEARCH], messages=messages)
    return payload(messages)


async def asked_sessions(count: int) -> Weight:
    """Open sessions with 34 messages, ask each on two backends, and weigh them."""
    async with open_runtime(IDLE) as runtime:
        for number in range(count, count + _FIRST):
            await _on_both(runtime, conversation(number)[:34])
        _let_sleep(runtime)
        scales, said = Scales(), 0
        for number in range(count):
            said += await _on_both(runtime, conversation(number)[:34])
        _let_sleep(runtime)
        return scales.weigh(count, said)


async def _on_both(runtime: Runtime, messages: list[Message]) -> int:
    """Ask a session on each of two backends; return the bytes of its content."""
    return payload(list(await (await _ask_both(runtime, messages)).history()))


async def _ask_both(runtime: Runtime, messages: list[Message]) -> Session:
    session = await runtime.open(TARGET, tools=[SEARCH], messages=messages)
    for target in (TARGET, OTHER):
        await session.switch(target)
        answer = await session.ask("Please settle the question with five searches.")
        assert answer.status == "complete"
    return session


async def hibernated_sessions(count: int) -> Weight:
    """Open sessions in a file, ask one in twenty, and weigh them when all but the last few hibernate."""
    limits = RuntimeLimits(max_active_sessions=1, sessions=1_000_000, memory=512 * 1024)
    with TemporaryDirectory() as folder:
        async with open_runtime(limits, create_storage(Path(folder) / "journal.db", "process")) as runtime:
            await _open_many(runtime, range(_BEFORE))
            scales = Scales()
            await _open_many(runtime, range(_BEFORE, _BEFORE + count))
            assert runtime.stats().hibernated >= count
            return scales.weigh(count, 0)


async def _open_many(runtime: Runtime, numbers: range) -> None:
    async def several(numbers: range) -> None:
        for number in numbers:
            session = await runtime.open(TARGET, tools=[SEARCH], id=f"s{number}")
            if number % 20 == 0:
                assert (await session.ask("Please settle it with five searches.")).status == "complete"

    async with (
        anyio.create_task_group() as tasks
    ):  # concurrently, so that the journal commits many sessions together
        for first in range(_AT_ONCE):
            tasks.start_soon(several, numbers[first::_AT_ONCE])


_AT_ONCE = 16
_BEFORE = 2500
"""Sessions after which the memory of SQLite itself no longer grows."""


async def deleted_sessions(count: int) -> Weight:
    """Open sessions, ask each on two backends, close half of them, delete all; weigh the remaining memory."""
    async with open_runtime() as runtime:
        await _delete_session(runtime, conversation(count)[:10], closed=False)
        tracemalloc.start()  # the amounts are below one page; started before the warm-up, so that its frees are traced
        for number in range(20):  # warm up: allocations made once per process
            await _delete_session(runtime, conversation(number)[:10], closed=False)
        scales = Scales()
        for number in range(count):
            await _delete_session(runtime, conversation(number)[:10], closed=number % 2 == 0)
        return scales.weigh(count, 0)


async def _delete_session(runtime: Runtime, messages: list[Message], *, closed: bool) -> None:
    session = await _ask_both(runtime, messages)
    if closed:
        await session.close()
    await runtime.journal.delete(session.id)


async def live_session(turns: int) -> Weight:
    """Run `turns` turns in one session and weigh it."""
    async with open_runtime() as runtime:
        await runtime.journal.delete(
            (await _ask_often(runtime, turns)).id
        )  # warm up: allocations made once per process
        tracemalloc.start()  # one session is below the resolution of resident pages
        scales = Scales()
        session = await _ask_often(runtime, turns)
        return scales.weigh(1, payload(list(await session.history())))


async def _ask_often(runtime: Runtime, turns: int) -> Session:
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
    weigh = scales.weigh(count, said)
    assert len(kept) == count + _FIRST
    return weigh


def measure(what: str, count: int, backend: Loop) -> Weight:
    """Run one measurement of this module in a new process and return its result."""
    command = (sys.executable, "-m", "benchmarks.memory", what, str(count), backend)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return Weight(**json.loads(done.stdout))


def _e1(options: Extent) -> list[Figure]:
    count = 150 if options.quick else 10_000
    baseline = measure("buffers", count, "asyncio")
    peers = _peers(options.libraries, count)
    rows = []
    for backend in options.backends:
        idle = _rows(_QUESTION, backend, count, measure("sessions", count, backend), baseline)
        rows += [replace(row, peers=found) for row, found in zip(idle, peers, strict=True)]
        rows += _rows(_ASKED, backend, count, measure("asked_sessions", count, backend), baseline)
    return rows


def _peers(libraries: Sequence[Library], count: int) -> list[tuple[Peer, ...]]:
    """Return three rows of peers: kilobytes and objects per conversation, and milliseconds per collection."""
    columns: list[Others] = [Others(libraries) for _ in range(3)]
    with TemporaryDirectory() as folder:
        histories = Path(folder) / "histories.jsonl"
        if libraries:
            histories.write_bytes(b"\n".join(map(_wire, range(count + _FIRST))))
        weighed = cache(lambda library: library.idle_memory(histories))
        for column, (others, unit) in enumerate(zip(columns, (1e3, 1, 1), strict=True)):
            others.take(lambda library, column=column, unit=unit: weighed(library)[column] / unit)  # type: ignore[misc]
    return [others.peers() for others in columns]


def _wire(number: int) -> bytes:
    """Return 50 Chat Completions messages as JSON that share no text with those of another number."""
    live_session = Live("openai_chat", "openai_chat", 60, seed=number)
    return json.dumps(json.loads(b"".join(live_session.cold()))["messages"][:50]).encode()


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
        ours = measure("live_session", turns, backend)
        note = f"turn {turns}; baseline: its messages; goal 1.3 x, and 1 x more for its lane"
        rows.append(Figure("C2", _LIVE, backend, "KB", 2.3, ours.resident / 1e3, ours.payload / 1e3, note))
    return rows


def _e3(options: Extent) -> list[Figure]:
    count = 40 if options.quick else 1000
    rows = []
    for backend in options.backends:
        ours = measure("deleted_sessions", count, backend)
        note = f"{count} sessions, asked on two backends; half of them closed first"
        rows.append(Figure("E3", _DELETED, backend, "bytes", 200, ours.resident, note=note))
        rows.append(Figure("E3", _DELETED, backend, "objects", 0.1, ours.tracked, note=_TRACKED))
    return rows


_QUESTION = "an idle session of 50 messages"
_ASKED = "an idle session of 50 messages, asked on two backends"
_LIVE = "a live session with one lane"
_COLLECTION = "a full collection with idle sessions"
_COLLECTION_NOTE = "baseline: with byte buffers; goal 30 ms where the baseline takes 15"
_DELETED = "a deleted session"
_TRACKED = "tracked by the garbage collector"
MEASURES = (
    Measure("E1", _QUESTION, _e1),
    Measure("E3", _DELETED, _e3),
    Measure("C2", _LIVE, _c2),
)


def main(what: str, count: str, backend: str) -> None:
    """Print the memory of `count` sessions or buffers as JSON."""
    works = {
        each.__name__: each
        for each in (sessions, asked_sessions, hibernated_sessions, deleted_sessions, buffers, live_session)
    }
    work: Any = works[what]  # Any: a coroutine function
    print(json.dumps(asdict(anyio.run(work, int(count), backend=backend))))


if __name__ == "__main__":
    main(*sys.argv[1:])
