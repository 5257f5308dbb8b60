"""CPU time of this thread, in interleaved passes: what the machine does besides is left out."""

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


@dataclass(frozen=True, slots=True)
class Passes:
    """What works took in interleaved passes.

    Args:
        columns: One for each work, a value for each pass.
    """

    columns: tuple[tuple[float, ...], ...]

    @classmethod
    def of(cls, rows: Iterable[Sequence[float]]) -> "Passes":
        """Return passes that were made one after the other."""
        return cls(tuple(zip(*rows, strict=True)))

    @property
    def medians(self) -> list[float]:
        """The median of each work."""
        return [median(column) for column in self.columns]

    def filled(self, row: Figure, work: int = 0, baseline: int | None = 1) -> Figure:
        """Return a row with the medians of a work and of what it is held against."""
        against = None if baseline is None else self.medians[baseline]
        return replace(row, value=self.medians[work], baseline=against, spread=self.spread(work, baseline))

    def spread(self, work: int = 0, baseline: int | None = 1) -> float | None:
        """Return by how much a work's ratio to another differs from pass to pass; see `Figure.spread`."""
        ours = self.columns[work]
        base = (1.0,) * len(ours) if baseline is None else self.columns[baseline]
        return spread([mine / theirs for mine, theirs in zip(ours, base, strict=True)])


def spread(values: Sequence[float]) -> float | None:
    """Return half the distance between the quartiles over the median; None for fewer than three values."""
    if len(values) < 3:
        return None
    least, middle, most = quantiles(values, n=4, method="inclusive")
    return (most - least) / 2 / middle


def interleaved(
    repeats: int, *works: Callable[[], float], beside: Callable[[], object] = lambda: None
) -> Passes:
    """Return what each of `works` returns; one pass over all of them, then the next.

    What was built before does not weigh on the collector: it is frozen meanwhile. `beside` is called after each pass.
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


def on_loop(backend: Loop, work: Callable[[], Awaitable[float]]) -> float:
    """Run `work` in an event loop of its own."""
    return anyio.run(work, backend=backend)
