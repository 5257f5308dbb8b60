"""CPU time of this thread, in interleaved passes: what the machine does besides is left out."""

import gc
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from statistics import median
from types import FrameType

import anyio

from actors.testing.bench.figures import Loop


def cpu_ms(work: Callable[[], object]) -> float:
    """Return the CPU milliseconds this thread spends in `work`."""
    began = time.thread_time()
    work()
    return (time.thread_time() - began) * 1e3


async def async_cpu_ms(work: Callable[[], Awaitable[object]]) -> float:
    """Return the CPU milliseconds this thread spends until `work` has ended, the event loop's included."""
    began = time.thread_time()
    await work()
    return (time.thread_time() - began) * 1e3


@contextmanager
def _counting() -> Iterator[list[int]]:
    """Count the Python functions that are called in the block. Those written in C are not counted.

    A count does not depend on what else the machine does.
    """
    counted = [0]

    def count(frame: FrameType, event: str, argument: object) -> None:
        counted[0] += event == "call"

    sys.setprofile(count)
    try:
        yield counted
    finally:
        sys.setprofile(None)


def python_calls(work: Callable[[], object]) -> int:
    """Return how many Python functions `work` calls."""
    with _counting() as counted:
        work()
    return counted[0]


async def async_calls(work: Callable[[], Awaitable[object]]) -> int:
    """Return how many Python functions are called until `work` has ended, the event loop's included."""
    with _counting() as counted:
        await work()
    return counted[0]


def interleaved(repeats: int, *works: Callable[[], float]) -> list[float]:
    """Return the median of what each of `works` returns; one pass over all of them, then the next.

    What was built before does not weigh on the collector: it is frozen meanwhile.
    """
    gc.collect()
    gc.freeze()
    try:
        samples = [[work() for work in works] for _ in range(repeats)]
    finally:
        gc.unfreeze()
    return [median(column) for column in zip(*samples, strict=True)]


def on_loop(backend: Loop, work: Callable[[], Awaitable[float]]) -> float:
    """Run `work` in an event loop of its own."""
    return anyio.run(work, backend=backend)
