"""Measure the memory of sessions (E1, E3, C2 and part of E2). Each measurement runs in a separate process.

E1   idle sessions of 50 messages: opened with an imported history, and after an ask on each of two backends
E2   hibernated sessions whose logs are in a file
E3   deleted sessions, half of which were closed first
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
from benchmarks.others import OtherLibraries
from benchmarks.start import ROOT
from benchmarks.turn import OTHER, SEARCH, TARGET, open_runtime
from benchmarks.workload import (
    Author,
    LiveConversation,
    content_bytes,
    conversation_steps,
    dialect_binding,
    imported_messages,
)


@dataclass(frozen=True, slots=True)
class Weight:
    """Memory per idle session: resident bytes, content bytes, objects that the garbage collector tracks.

    `collection_ms` is the CPU time of one full collection over all sessions, in milliseconds.
    """

    resident: float
    content_bytes: float
    tracked: float
    collection_ms: float


def conversation(number: int) -> list[Message]:
    """Return 50 messages that share no text with the conversation of any other number."""
    return imported_messages(list(conversation_steps(Author(dialect_binding("anthropic"), number), 60)))[:50]


def resident() -> int:
    """Return the resident bytes of this process."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _allocated_bytes() -> int:
    """Return the bytes that `tracemalloc` traces, or the resident bytes if `tracemalloc` is off."""
    return tracemalloc.get_traced_memory()[0] if tracemalloc.is_tracing() else resident()


def _collection_ms() -> float:
    """Return the CPU milliseconds of one full garbage collection."""
    began = time.thread_time()
    gc.collect()
    return (time.thread_time() - began) * 1e3


class MemoryMeter:
    """A meter of the memory that is allocated between its construction and the call of `weigh`."""

    def __init__(self) -> None:
        import_module(
            "structlog"
        )  # otherwise the first log event, such as a slow handler, would import it later
        gc.collect()
        self._bytes = _allocated_bytes()
        self._tracked = len(gc.get_objects())

    def weigh(self, count: int, said: int) -> Weight:
        """Return the memory per session of `count` sessions, whose content has `said` bytes in total."""
        gc.collect()
        gc.collect()
        took = median(_collection_ms() for _ in range(3))
        tracked = len(gc.get_objects()) - self._tracked
        return Weight((_allocated_bytes() - self._bytes) / count, said / count, tracked / count, took)


_WARM_UP_SESSIONS = 20
"""Number of sessions opened before the measurement, so that one-time allocations are not counted."""
IDLE_LIMITS = RuntimeLimits(max_active_sessions=1)
"""Limits with which only one idle session keeps its actors. Folded state is evicted before the measurement."""


def _evict_folded_state(runtime: Runtime) -> None:
    """Evict all state except logs from sessions without actors, as if they had not been used for a long time."""
    runtime._running_host().residency.evict_replays(0)  # there is no public method: programs do not need one


async def sessions(count: int) -> Weight:
    """Open sessions with an imported history, and measure their memory."""
    async with open_runtime(IDLE_LIMITS) as runtime:
        for number in range(count, count + _WARM_UP_SESSIONS):
            await _open_session(runtime, conversation(number))
        scales, said = MemoryMeter(), 0
        for number in range(count):
            said += await _open_session(runtime, conversation(number))
        return scales.weigh(count, said)


async def _open_session(runtime: Runtime, messages: list[Message]) -> int:
    await runtime.open(TARGET, tools=[SEARCH], messages=messages)
    return content_bytes(messages)


async def asked_sessions(count: int) -> Weight:
    """Open sessions with 34 messages, ask each on two backends, and measure their memory."""
    async with open_runtime(IDLE_LIMITS) as runtime:
        for number in range(count, count + _WARM_UP_SESSIONS):
            await _ask_both_and_size(runtime, conversation(number)[:34])
        _evict_folded_state(runtime)
        scales, said = MemoryMeter(), 0
        for number in range(count):
            said += await _ask_both_and_size(runtime, conversation(number)[:34])
        _evict_folded_state(runtime)
        return scales.weigh(count, said)


async def _ask_both_and_size(runtime: Runtime, messages: list[Message]) -> int:
    """Open a session and ask it on two backends; return the bytes of its content."""
    return content_bytes(list(await (await _ask_both(runtime, messages)).history()))


async def _ask_both(runtime: Runtime, messages: list[Message]) -> Session:
    session = await runtime.open(TARGET, tools=[SEARCH], messages=messages)
    for target in (TARGET, OTHER):
        await session.switch(target)
        answer = await session.ask("Please settle the question with five searches.")
        assert answer.status == "complete"
    return session


async def hibernated_sessions(count: int) -> Weight:
    """Open sessions in a file, ask one in twenty, and measure the memory when all but the last few hibernate."""
    limits = RuntimeLimits(max_active_sessions=1, sessions=1_000_000, memory=512 * 1024)
    with TemporaryDirectory() as folder:
        async with open_runtime(limits, create_storage(Path(folder) / "journal.db", "process")) as runtime:
            await _open_many(runtime, range(_BEFORE))
            scales = MemoryMeter()
            await _open_many(runtime, range(_BEFORE, _BEFORE + count))
            assert runtime.stats().hibernated >= count
            return scales.weigh(count, 0)


async def _open_many(runtime: Runtime, numbers: range) -> None:
    async def open_every(numbers: range) -> None:
        for number in numbers:
            session = await runtime.open(TARGET, tools=[SEARCH], id=f"s{number}")
            if number % 20 == 0:
                assert (await session.ask("Please settle it with five searches.")).status == "complete"

    async with (
        anyio.create_task_group() as tasks
    ):  # concurrently, so that the journal commits many sessions together
        for first in range(_AT_ONCE):
            tasks.start_soon(open_every, numbers[first::_AT_ONCE])


_AT_ONCE = 16
_BEFORE = 2500
"""Number of sessions after which the memory of SQLite itself no longer grows."""


async def deleted_sessions(count: int) -> Weight:
    """Open sessions, ask each on two backends, close half of them and delete all; measure the memory that remains."""
    async with open_runtime() as runtime:
        await _delete_session(runtime, conversation(count)[:10], closed=False)
        tracemalloc.start()  # the amounts are below one page; started before the warm-up, so that its frees are traced
        for number in range(20):  # warm up: allocations made once per process
            await _delete_session(runtime, conversation(number)[:10], closed=False)
        scales = MemoryMeter()
        for number in range(count):
            await _delete_session(runtime, conversation(number)[:10], closed=number % 2 == 0)
        return scales.weigh(count, 0)


async def _delete_session(runtime: Runtime, messages: list[Message], *, closed: bool) -> None:
    session = await _ask_both(runtime, messages)
    if closed:
        await session.close()
    await runtime.journal.delete(session.id)


async def live_session(turns: int) -> Weight:
    """Run `turns` turns in one session, and measure its memory."""
    async with open_runtime() as runtime:
        await runtime.journal.delete(
            (await _ask_often(runtime, turns)).id
        )  # warm up: allocations made once per process
        tracemalloc.start()  # one session is below the resolution of resident pages
        scales = MemoryMeter()
        session = await _ask_often(runtime, turns)
        return scales.weigh(1, content_bytes(list(await session.history())))


async def _ask_often(runtime: Runtime, turns: int) -> Session:
    session = await runtime.open(TARGET, tools=[SEARCH])
    for _ in range(turns):
        await session.ask("Please settle the question with five searches.")
    return session


async def buffers(count: int) -> Weight:
    """Measure the memory of the same conversations, stored as one byte buffer each."""
    kept = [b"x" * content_bytes(conversation(number)) for number in range(count, count + _WARM_UP_SESSIONS)]
    scales, said = MemoryMeter(), 0
    for number in range(count):
        kept.append(b"x" * content_bytes(conversation(number)))
        said += len(kept[-1])
    weigh = scales.weigh(count, said)
    assert len(kept) == count + _WARM_UP_SESSIONS
    return weigh


def measure(what: str, count: int, backend: Loop) -> Weight:
    """Run one measurement of this module in a new process, and return its result. `what` is the name of a function."""
    command = (sys.executable, "-m", "benchmarks.memory", what, str(count), backend)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return Weight(**json.loads(done.stdout))


def _measure_e1(options: Extent) -> list[Figure]:
    count = 150 if options.quick else 10_000
    baseline = measure("buffers", count, "asyncio")
    peers = _library_peers(options.libraries, count)
    rows = []
    for backend in options.backends:
        idle = _idle_rows(_QUESTION, backend, count, measure("sessions", count, backend), baseline)
        rows += [replace(row, peers=found) for row, found in zip(idle, peers, strict=True)]
        rows += _idle_rows(_ASKED, backend, count, measure("asked_sessions", count, backend), baseline)
    return rows


def _library_peers(libraries: Sequence[Library], count: int) -> list[tuple[Peer, ...]]:
    """Return the peers of three rows: kilobytes and objects per conversation, and milliseconds per collection."""
    columns: list[OtherLibraries] = [OtherLibraries(libraries) for _ in range(3)]
    with TemporaryDirectory() as folder:
        histories = Path(folder) / "histories.jsonl"
        if libraries:
            histories.write_bytes(b"\n".join(map(_wire_messages, range(count + _WARM_UP_SESSIONS))))
        weighed = cache(lambda library: library.idle_memory(histories))
        for column, (others, unit) in enumerate(zip(columns, (1e3, 1, 1), strict=True)):
            others.measure_each(lambda library, column=column, unit=unit: weighed(library)[column] / unit)  # type: ignore[misc]
    return [others.peers() for others in columns]


def _wire_messages(number: int) -> bytes:
    """Return 50 Chat Completions messages as JSON, which share no text with the messages of another number."""
    live_session = LiveConversation("openai_chat", "openai_chat", 60, seed=number)
    return json.dumps(json.loads(b"".join(live_session.first_request()))["messages"][:50]).encode()


def _idle_rows(question: str, backend: Loop, count: int, ours: Weight, baseline: Weight) -> list[Figure]:
    per = f"{count:,} sessions"
    least = f"{per}; baseline: the payload; a byte buffer holds {baseline.resident / baseline.content_bytes:.2f} x"
    return [
        Figure("E1", question, backend, "KB", 1.3, ours.resident / 1e3, ours.content_bytes / 1e3, least),
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


def _measure_c2(options: Extent) -> list[Figure]:
    turns = 50 if options.quick else 500
    rows = []
    for backend in options.backends:
        ours = measure("live_session", turns, backend)
        note = f"turn {turns}; baseline: its messages; goal 1.3 x, and 1 x more for its lane"
        rows.append(
            Figure("C2", _LIVE, backend, "KB", 2.3, ours.resident / 1e3, ours.content_bytes / 1e3, note)
        )
    return rows


def _measure_e3(options: Extent) -> list[Figure]:
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
    Measure("E1", _QUESTION, _measure_e1),
    Measure("E3", _DELETED, _measure_e3),
    Measure("C2", _LIVE, _measure_c2),
)


def main(what: str, count: str, backend: str) -> None:
    """Run the measurement `what` with `count` sessions in this process, and print the memory as JSON."""
    works = {
        each.__name__: each
        for each in (sessions, asked_sessions, hibernated_sessions, deleted_sessions, buffers, live_session)
    }
    work: Any = works[what]  # Any: a coroutine function
    print(json.dumps(asdict(anyio.run(work, int(count), backend=backend))))


if __name__ == "__main__":
    main(*sys.argv[1:])
