"""Measure the wait for a durable event while another client reads or exports a long log of the same journal (J2).

One session writes events one after another with durability `power`. The wall-clock wait per event is measured
alternately without and with the client, which runs in the same process and reads continuously.
"""

import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory

import anyio
import anyio.lowlevel

from actors.core.log.events import LogEvent, Opened, TurnEnded, TurnStarted
from actors.core.session.publishing import NO_BINDING
from actors.errors import SessionClosed
from actors.journal.commands import Append, ClaimSession, JournalCommand
from actors.journal.session_events import SessionEvents
from actors.journal.storage.named import create_storage
from actors.kernel import Ref
from actors.runtime.runtime import Runtime
from benchmarks.durable import Writers, user_event
from benchmarks.figures import Extent, Figure, Loop, Measure
from benchmarks.timing import Passes
from benchmarks.turn import open_runtime

LIMIT = 2.0
LOG, WRITER = "bench-long", "bench-writer"
_QUESTION = "a durable event while another client {} a long log"

Client = Callable[[Runtime, Ref[JournalCommand]], Awaitable[None]]


async def _write_long_log(journal: Ref[JournalCommand], asks: int) -> None:
    fence = (await journal.ask(ClaimSession(LOG))).fence
    await journal.ask(Append(LOG, fence, (Opened(LOG, "a"),)))
    for first in range(1, asks + 1, 100):
        events: list[LogEvent] = []
        for turn in range(first, min(first + 100, asks + 1)):
            events += [user_event(), TurnStarted(turn, turn, NO_BINDING), TurnEnded(turn, "complete")]
        await journal.ask(Append(LOG, fence, tuple(events)))


async def _read_log(runtime: Runtime, journal: Ref[JournalCommand]) -> None:
    def session_closed() -> SessionClosed:
        return SessionClosed("the measurement has ended")

    events = SessionEvents(
        LOG,
        0,
        follow=False,
        journal=journal,
        readers=runtime._opening_host().readers,
        check_caller=lambda: None,
        is_over=lambda: False,
        ended_error=session_closed,
    )
    async for _ in events:
        pass


async def _export(runtime: Runtime, journal: Ref[JournalCommand]) -> None:
    await runtime.journal.export(LOG)


_CLIENTS: dict[str, Client] = {"reads": _read_log, "exports": _export}


async def _durable_waits_ms(writers: Writers, count: int) -> list[float]:
    """Write `count` events one after another, and return the milliseconds until each event was durable."""
    waits = []
    for _ in range(count):
        began = time.perf_counter()
        await writers.write(WRITER, 1)
        waits.append((time.perf_counter() - began) * 1e3)
    return waits


async def _waits_with_client(
    client: Client, runtime: Runtime, journal: Ref[JournalCommand], writers: Writers, count: int
) -> list[float]:
    async def run_client_repeatedly() -> None:
        while True:
            await client(runtime, journal)
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_client_repeatedly)
        waits = await _durable_waits_ms(writers, count)
        tasks.cancel_scope.cancel()
    return waits


async def _measure_waits(file: Path, what: str, passes: int, asks: int, count: int) -> tuple[Passes, float]:
    """Measure the waits alternately with and without the client, and return the medians of each pass.

    The second value is the 99th percentile of the waits with the client, in milliseconds.
    """
    rows, beside = [], list[float]()
    async with open_runtime(journal=create_storage(file)) as runtime:
        journal = runtime._opening_host().journal
        writers = Writers(journal)
        await writers.claim(WRITER)
        await _write_long_log(journal, asks)
        for _ in range(passes):
            alone = await _durable_waits_ms(writers, count)
            with_client = await _waits_with_client(_CLIENTS[what], runtime, journal, writers, count)
            rows.append((median(with_client), median(alone)))
            beside += with_client
    return Passes.of(rows), quantiles(beside, n=100)[-1]


def _client_rows(backend: Loop, *, quick: bool) -> Iterator[Figure]:
    passes, asks, count = (3, 500, 30) if quick else (7, 5_000, 200)
    for what in _CLIENTS:
        with TemporaryDirectory() as folder:
            file = Path(folder) / "journal.db"
            passes_taken, late = anyio.run(_measure_waits, file, what, passes, asks, count, backend=backend)
        note = f"the median wait, by the clock; a log of {3 * asks + 1:,} events; 99 % within {late:.1f} ms"
        row = Figure("J2", _QUESTION.format(what), f"{backend}, power", "ms", LIMIT, note=note)
        yield passes_taken.fill(row)


def _measure_j2(extent: Extent) -> list[Figure]:
    return [row for backend in extent.backends for row in _client_rows(backend, quick=extent.quick)]


MEASURES = (Measure("J2", _QUESTION.format("reads or exports"), _measure_j2),)
