"""E2: sessions that are nowhere but in a file.

A session of some 200 blocks is resumed in a runtime that has never seen it, or is used after it slept in one: its log
is read and folded, and nothing is asked yet. CPU time of the process, the journal's thread included; the file is in the
page cache, as after a restart. What a session that sleeps holds is measured in a process of its own (`memory`).
"""

import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import anyio

from actors.config import RuntimeLimits
from actors.journal.storage.named import storage_at
from actors.runtime.runtime import Runtime
from benchmarks.figures import Extent, Figure, Loop, Measure
from benchmarks.memory import measured
from benchmarks.timing import spread
from benchmarks.turn import SEARCH, TARGET, hosted

ASKS = 12
"""Asks of a session: each is a user message, two of the model, five calls and five results."""
WAKE_MS = 3.0
RESIDENT_KIB = 1.0
_RESUME = "a session of 200 blocks, resumed from a file"
_WAKE = "a session of 200 blocks, woken"
_RESIDENT = "a hibernated session"


async def lived(file: Path, count: int) -> int:
    """Have sessions talk, and leave them in a file; return how many blocks the last one has."""
    async with hosted(journal=storage_at(file, "process")) as runtime:
        return [await _lived(runtime, f"s{number}") for number in range(count)][-1]


async def _lived(runtime: Runtime, name: str) -> int:
    session = await runtime.open(TARGET, tools=[SEARCH], id=name)
    for _ in range(ASKS):
        result = await session.ask("Please settle the question with five searches.")
        assert result.status == "complete", result
    said = sum(len(message.blocks) for message in await session.history())
    return said + len((await session.ledger()).interactions())


async def resumed(file: Path, count: int) -> list[float]:
    """Return the CPU milliseconds that each of these sessions took to be resumed."""
    took = []
    async with hosted(journal=storage_at(file, "process")) as runtime:
        for number in range(count):
            began = time.process_time()
            await runtime.resume(f"s{number}", tools=[SEARCH])
            took.append((time.process_time() - began) * 1e3)
    return took


async def woken(file: Path, count: int) -> list[float]:
    """Return the CPU milliseconds that each of these sessions took to be used after it slept."""
    took = []
    limits = RuntimeLimits(max_active_sessions=1, memory=64 * 1024)
    async with hosted(limits, storage_at(file, "process")) as runtime:
        sessions = [await runtime.resume(f"s{number}", tools=[SEARCH]) for number in range(count)]
        for session in (*sessions, *sessions):  # the last ones that were resumed are not asleep at first
            before = session._lifecycle.holding.total
            began = time.process_time()
            await session.ledger()
            if not before:
                took.append((time.process_time() - began) * 1e3)
    return took


def _rows(backend: Loop, count: int) -> Iterator[Figure]:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "journal.db"
        blocks = anyio.run(lived, file, count, backend=backend)
        for question, take in ((_RESUME, resumed), (_WAKE, woken)):
            took = anyio.run(take, file, count, backend=backend)
            note = f"the median of {len(took)} times, sessions of {blocks} blocks"
            yield Figure("E2", question, backend, "ms", WAKE_MS, median(took), note=note, spread=spread(took))


def _e2(extent: Extent) -> list[Figure]:
    count, many = (10, 4_000) if extent.quick else (200, 100_000)
    rows = [row for backend in extent.backends for row in _rows(backend, count)]
    ours = measured("hibernated", many, "asyncio")
    note = f"{many:,} sessions, {ours.tracked:.1f} objects of each tracked by the garbage collector"
    return [*rows, Figure("E2", _RESIDENT, "asyncio", "KiB", RESIDENT_KIB, ours.resident / 1024, note=note)]


MEASURES = (Measure("E2", _WAKE, _e2),)
