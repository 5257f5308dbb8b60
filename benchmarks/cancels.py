"""Measure the time from a cancel until every call is closed in the log (X1).

Five tools run at the time of the cancel. Cooperative tools end at once. A tool that ignores the cancellation, because
it blocks a thread or shields itself, is closed when the grace period ends. The figure is the wall-clock time that the
caller of `cancel` waits. The goal is an absolute time, because people wait for it.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import quantiles
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel

from actors.runtime.handle import Session
from actors.runtime.runtime import Runtime
from actors.tools import Tool, tool
from benchmarks.figures import Extent, Figure, Loop, Measure
from benchmarks.turn import TARGET, open_runtime

DEAF = 0.8
"""Seconds for which the tools `deaf` and `blocking` ignore a cancellation."""
CONCURRENT_CANCELS = 4
"""Number of concurrent cancels of deaf or blocking tools. Each cancel mostly waits for the grace period."""


class StallingTools:
    """Variants of the tool `search` that do not return.

    The event `all_run` is set when all five calls of a message run.
    """

    def __init__(self) -> None:
        self._running = 0
        self._loop = anyio.lowlevel.current_token()
        self.all_run = anyio.Event()

    def _count_start(self) -> None:
        self._running += 1
        if self._running == 5:
            self.all_run.set()

    async def cooperative(self, query: str, limit: int = 10) -> str:
        """Wait until cancelled."""
        self._count_start()
        await anyio.sleep_forever()
        return query

    async def deaf(self, query: str, limit: int = 10) -> str:
        """Ignore every cancellation for a while."""
        self._count_start()
        with anyio.CancelScope(shield=True):
            await anyio.sleep(DEAF)
        return query

    def blocking(self, query: str, limit: int = 10) -> str:
        """Block a thread for a while."""
        anyio.from_thread.run_sync(self._count_start, token=self._loop)
        time.sleep(DEAF)
        return query


async def _cancel_waits_ms(kind: str, count: int) -> list[float]:
    """Return the milliseconds of each of at least `count` cancels. `kind` is a method name of `StallingTools`."""
    waits = list[float]()

    async def cancel() -> None:
        async with open_runtime() as runtime:
            waits.append(await _cancel_ms(runtime, kind))

    at_once = 1 if kind == "cooperative" else CONCURRENT_CANCELS
    while len(waits) < count:
        async with anyio.create_task_group() as tasks:
            for _ in range(at_once):
                tasks.start_soon(cancel)
    return waits


async def _cancel_ms(runtime: Runtime, kind: str) -> float:
    bench = StallingTools()
    stalling_tool: Tool[..., Any] = tool(name="search")(getattr(bench, kind))  # Any: the tool's result
    session = await runtime.open(TARGET, tools=[stalling_tool])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_ask, session)
        await bench.all_run.wait()
        began = time.perf_counter()
        await session.cancel()
        took = (time.perf_counter() - began) * 1e3
    ledger = await session.ledger()
    assert len(ledger) == 5, ledger
    assert all(each.status != "pending" for each in ledger.interactions()), ledger
    return took


async def _ask(session: Session) -> None:
    result = await session.ask("Please settle the question with five searches.")
    assert result.status == "cancelled", result


def _measure_x1(options: Extent) -> list[Figure]:
    cases: Sequence[tuple[str, int, float]] = (
        ("cooperative", 60 if options.quick else 500, 20.0),
        ("deaf", 4 if options.quick else 20, 1000.0),
        ("blocking", 4 if options.quick else 20, 1000.0),
    )
    return [_cancel_row(backend, *case) for backend in options.backends for case in cases]


def _cancel_row(backend: Loop, kind: str, count: int, limit: float) -> Figure:
    work: Callable[[], Any] = partial(_cancel_waits_ms, kind, count)  # Any: a coroutine
    waits = anyio.run(work, backend=backend)
    centiles = quantiles(waits, n=100, method="inclusive")
    note = f"p99 of {count} cancels, by the clock; p50 {centiles[49]:.3g} ms"
    return Figure("X1", _QUESTION, f"{backend}, {kind}", "ms", limit, centiles[98], note=note)


_QUESTION = "from cancel to all five calls closed in the log"
MEASURES = (Measure("X1", _QUESTION, _measure_x1),)
