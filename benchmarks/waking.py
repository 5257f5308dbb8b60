"""Measure the activation of sessions whose state is only in a file (E2).

A session of about 200 blocks is resumed in a new runtime, or used again after hibernation: its log is read and folded,
without an ask. The figure is CPU time of the process, including the journal's thread. The file is in the page cache.
`benchmarks.memory` measures the memory of a hibernated session in a separate process.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import anyio

from actors.config import RuntimeLimits
from actors.journal.storage.named import create_storage
from actors.runtime.runtime import Runtime
from benchmarks.figures import Extent, Figure, Loop, Measure
from benchmarks.memory import measure
from benchmarks.timing import spread
from benchmarks.turn import SEARCH, TARGET, open_runtime

ASKS = 12
"""Number of asks per session. An ask adds a user message, two model messages, five calls and five results."""
WAKE_MS = 3.0
RESIDENT_KIB = 1.0
_RESUME = "a session of 200 blocks, resumed from a file"
_WAKE = "a session of 200 blocks, activated"
_RESIDENT = "a hibernated session"


async def write_sessions(file: Path, count: int) -> int:
    """Write `count` sessions to a journal file, and return the number of blocks in the last session."""
    async with open_runtime(journal=create_storage(file, "process")) as runtime:
        return [await _write_session(runtime, f"s{number}") for number in range(count)][-1]


async def _write_session(runtime: Runtime, name: str) -> int:
    session = await runtime.open(TARGET, tools=[SEARCH], id=name)
    for _ in range(ASKS):
        result = await session.ask("Please settle the question with five searches.")
        assert result.status == "complete", result
    said = sum(len(message.blocks) for message in await session.history())
    return said + len((await session.ledger()).interactions())


async def resume_times(file: Path, count: int) -> list[float]:
    """Resume each session in a new runtime, and return the CPU milliseconds of each."""
    took = []
    async with open_runtime(journal=create_storage(file, "process")) as runtime:
        for number in range(count):
            began = time.process_time()
            await runtime.resume(f"s{number}", tools=[SEARCH])
            took.append((time.process_time() - began) * 1e3)
    return took


async def wake_times(file: Path, count: int) -> list[float]:
    """Return the CPU milliseconds of the first query to each hibernated session."""
    took = []
    limits = RuntimeLimits(max_active_sessions=1, memory=64 * 1024)
    async with open_runtime(limits, create_storage(file, "process")) as runtime:
        sessions = [await runtime.resume(f"s{number}", tools=[SEARCH]) for number in range(count)]
        for session in (
            *sessions,
            *sessions,
        ):  # twice: the sessions resumed last are still active in the first pass
            before = session._lifecycle.memory_use.total
            began = time.process_time()
            await session.ledger()
            if not before:
                took.append((time.process_time() - began) * 1e3)
    return took


def _activation_rows(backend: Loop, count: int) -> Iterator[Figure]:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "journal.db"
        blocks = anyio.run(write_sessions, file, count, backend=backend)
        for question, take in ((_RESUME, resume_times), (_WAKE, wake_times)):
            took = anyio.run(take, file, count, backend=backend)
            note = f"the median of {len(took)} times, sessions of {blocks} blocks"
            yield Figure("E2", question, backend, "ms", WAKE_MS, median(took), note=note, spread=spread(took))


def _measure_e2(extent: Extent) -> list[Figure]:
    count, many = (10, 4_000) if extent.quick else (200, 100_000)
    rows = [row for backend in extent.backends for row in _activation_rows(backend, count)]
    ours = measure("hibernated_sessions", many, "asyncio")
    note = f"{many:,} sessions, {ours.tracked:.1f} objects of each tracked by the garbage collector"
    return [*rows, Figure("E2", _RESIDENT, "asyncio", "KiB", RESIDENT_KIB, ours.resident / 1024, note=note)]


MEASURES = (Measure("E2", _WAKE, _measure_e2),)
