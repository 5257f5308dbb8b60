"""E1: idle sessions of 50 messages, each measurement in a process of its own.

python -m benchmarks.memory sessions 1000 asyncio     # prints one JSON object
python -m benchmarks.memory buffers 1000 asyncio      # the floor: one byte buffer a session
"""

import gc
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import anyio

from actors.core.content import Message
from actors.runtime import Runtime
from benchmarks.start import ROOT
from benchmarks.table import Backend, Measure, Options, Row
from benchmarks.turn import SEARCH, TARGET, hosted
from benchmarks.workload import Author, binding, blocks, payload, told


@dataclass(frozen=True, slots=True)
class Held:
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


def _collection_ms() -> float:
    """Return the CPU milliseconds of one full collection."""
    began = time.thread_time()
    gc.collect()
    return (time.thread_time() - began) * 1e3


class Scales:
    """Weighs what is built between its making and `held`."""

    def __init__(self) -> None:
        gc.collect()
        self._resident = resident()
        self._tracked = len(gc.get_objects())

    def held(self, count: int, said: int) -> Held:
        """Return what each of `count` holds, in which `said` bytes were said in all."""
        gc.collect()
        gc.collect()
        took = median(_collection_ms() for _ in range(5))
        tracked = len(gc.get_objects()) - self._tracked
        return Held((resident() - self._resident) / count, said / count, tracked / count, took)


async def sessions(count: int) -> Held:
    """Open sessions and weigh them."""
    async with hosted() as runtime:
        await runtime.open(TARGET, tools=[SEARCH], messages=conversation(count))
        scales, said = Scales(), 0
        for number in range(count):
            said += await _opened(runtime, conversation(number))
        return scales.held(count, said)


async def _opened(runtime: Runtime, messages: list[Message]) -> int:
    await runtime.open(TARGET, tools=[SEARCH], messages=messages)
    return payload(messages)


async def buffers(count: int) -> Held:
    """Weigh the same conversations as one byte buffer each."""
    conversation(count)
    scales, said = Scales(), 0
    kept: list[bytes] = []
    for number in range(count):
        kept.append(b"x" * payload(conversation(number)))
        said += len(kept[-1])
    held = scales.held(count, said)
    assert len(kept) == count
    return held


def _measured(what: str, count: int, backend: Backend) -> Held:
    command = (sys.executable, "-m", "benchmarks.memory", what, str(count), backend)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return Held(**json.loads(done.stdout))


def _e1(options: Options) -> list[Row]:
    count = 1000 if options.quick else 10_000
    floor = _measured("buffers", count, "asyncio")
    rows = []
    for backend in options.backends:
        ours = _measured("sessions", count, backend)
        rows += _rows(backend, count, ours, floor)
    return rows


def _rows(backend: Backend, count: int, ours: Held, floor: Held) -> list[Row]:
    question, per = _QUESTION, f"{count:,} sessions"
    least = f"{per}; floor: the payload; a byte buffer holds {floor.resident / floor.payload:.2f} x"
    return [
        Row("E1", question, backend, "KB", 1.25, ours.resident / 1e3, ours.payload / 1e3, least),
        Row("E1", question, backend, "objects", 10, ours.tracked, note="tracked by the collector"),
        Row("E1", _COLLECTION, backend, "ms", 2.0, ours.collection_ms, floor.collection_ms, _COLLECTION_NOTE),
    ]


_QUESTION = "an idle session of 50 messages"
_COLLECTION = "a full collection with idle sessions"
_COLLECTION_NOTE = "floor: with byte buffers; goal 30 ms where the floor takes 15"
MEASURES = (Measure("E1", _QUESTION, _e1),)


def main(what: str, count: str, backend: str) -> None:
    """Print what `count` idle sessions, or buffers, hold."""
    work: Any = {"sessions": sessions, "buffers": buffers}[what]  # Any: two coroutine functions
    print(json.dumps(asdict(anyio.run(work, int(count), backend=backend))))


if __name__ == "__main__":
    main(*sys.argv[1:])
