"""E2: sessions that are nowhere but in a file.

A session of some 200 blocks is resumed in a runtime that has never seen it: its log is read and folded, and nothing is
asked yet. CPU time of the process, the journal's thread included; the file is in the page cache, as after a restart.
"""

import time
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import anyio

from actors.runtime import Runtime
from actors.storage.named import storage_at
from actors.testing.bench.canned import Canned
from actors.testing.bench.figures import Extent, Figure, Loop, Measure
from actors.testing.bench.timing import spread
from actors.testing.bench.turn import ENVIRON, SEARCH, TARGET

ASKS = 12
"""Asks of a session: each is a user message, two of the model, five calls and five results."""
WAKE_MS = 3.0
RESIDENT_KIB = 1.0
_WAKE = "a session of 200 blocks, resumed from a file"
_RESIDENT = "a hibernated session"


def _runtime(file: Path) -> Runtime:
    return Runtime(environ=ENVIRON, transport=Canned(), journal=storage_at(file, "process"))


async def lived(file: Path, count: int) -> int:
    """Have sessions talk, and leave them in a file; return how many blocks the last one has."""
    async with _runtime(file) as runtime:
        return [await _lived(runtime, f"s{number}") for number in range(count)][-1]


async def _lived(runtime: Runtime, name: str) -> int:
    session = await runtime.open(TARGET, tools=[SEARCH], id=name)
    for _ in range(ASKS):
        result = await session.ask("Please settle the question with five searches.")
        assert result.status == "complete", result
    said = sum(len(message.blocks) for message in await session.history())
    return said + len((await session.ledger()).interactions())


async def waits(file: Path, count: int) -> list[float]:
    """Return the CPU milliseconds that each of these sessions took to be resumed."""
    took = []
    async with _runtime(file) as runtime:
        for number in range(count):
            began = time.process_time()
            await runtime.resume(f"s{number}", tools=[SEARCH])
            took.append((time.process_time() - began) * 1e3)
    return took


def _row(backend: Loop, count: int) -> Figure:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "journal.db"
        blocks = anyio.run(lived, file, count, backend=backend)
        took = anyio.run(partial(waits, file), count, backend=backend)
    note = f"the median of {count} sessions of {blocks} blocks"
    return Figure("E2", _WAKE, backend, "ms", WAKE_MS, median(took), note=note, spread=spread(took))


def _e2(extent: Extent) -> list[Figure]:
    count = 10 if extent.quick else 200
    rows = [_row(backend, count) for backend in extent.backends]
    why = "idle sessions do not hibernate to a file yet"
    return [*rows, Figure("E2", _RESIDENT, "-", "KiB", RESIDENT_KIB, note=why)]


MEASURES = (Measure("E2", _WAKE, _e2),)
