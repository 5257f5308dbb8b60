"""Measure CPU time and Python calls in interleaved passes. All measurements use this module.

The CPU time of one thread excludes the work of other processes.
"""

import gc
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import median, quantiles
from types import FrameType

import anyio

from benchmarks.figures import Figure, Loop


def cpu_ms(work: Callable[[], object]) -> float:
    """Return the CPU milliseconds that this thread spends in `work`."""
    began = time.thread_time()
    work()
    return (time.thread_time() - began) * 1e3


async def async_cpu_ms(work: Callable[[], Awaitable[object]]) -> float:
    """Return the CPU milliseconds of this thread until `work` has ended, including the work of the event loop."""
    began = time.thread_time()
    await work()
    return (time.thread_time() - began) * 1e3


@contextmanager
def _counting() -> Iterator[list[int]]:
    """Count the calls of Python functions in the block. Functions written in C are not counted.

    Unlike a time, the count does not depend on the load of the machine.
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
    """Return the number of Python function calls in `work`."""
    with _counting() as counted:
        work()
    return counted[0]


async def async_calls(work: Callable[[], Awaitable[object]]) -> int:
    """Return the number of Python function calls until `work` has ended, including calls of the event loop."""
    with _counting() as counted:
        await work()
    return counted[0]


@dataclass(frozen=True, slots=True)
class Passes:
    """The samples of several functions that were measured in interleaved passes.

    Args:
        columns: One column per function, with one sample per pass.
    """

    columns: tuple[tuple[float, ...], ...]

    @classmethod
    def of(cls, rows: Iterable[Sequence[float]]) -> "Passes":
        """Create passes from rows. A row contains one sample of each work."""
        return cls(tuple(zip(*rows, strict=True)))

    @property
    def medians(self) -> list[float]:
        """The median of each work."""
        return [median(column) for column in self.columns]

    def fill(self, row: Figure, work: int = 0, baseline: int | None = 1) -> Figure:
        """Return a copy of `row` with the medians of a work and of its baseline, which are given by column number."""
        against = None if baseline is None else self.medians[baseline]
        return replace(row, value=self.medians[work], baseline=against, spread=self.spread(work, baseline))

    def spread(self, work: int = 0, baseline: int | None = 1) -> float | None:
        """Return the variation of the ratio between a work and its baseline; see `Figure.spread`."""
        ours = self.columns[work]
        base = (1.0,) * len(ours) if baseline is None else self.columns[baseline]
        return spread([mine / theirs for mine, theirs in zip(ours, base, strict=True)])


def spread(values: Sequence[float]) -> float | None:
    """Return half the interquartile range over the median; None for fewer than three values."""
    if len(values) < 3:
        return None
    least, middle, most = quantiles(values, n=4, method="inclusive")
    return (most - least) / 2 / middle


def interleave(
    repeats: int, *works: Callable[[], float], beside: Callable[[], object] = lambda: None
) -> Passes:
    """Call all `works` once per pass, and return their values. Call `beside` after each pass.

    Existing objects are frozen meanwhile, so that the garbage collector does not traverse them.
    """
    gc.collect()
    gc.freeze()
    try:
        rows = []
        for _ in range(repeats):
            rows.append([work() for work in works])
            beside()
        return Passes.of(rows)
    finally:
        gc.unfreeze()


def run_on_loop(backend: Loop, work: Callable[[], Awaitable[float]]) -> float:
    """Run `work` in a new event loop and return its result."""
    return anyio.run(work, backend=backend)
