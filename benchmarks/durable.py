"""Measure the time until an event is durable, by durability, through the single writer of the journal (J1).

    many sessions   each writes an event, waits until it is durable, and writes the next; wall-clock time per event
    one session     one session alone does the same, so that it shares no commit; median wait

The notes give two references. The first writes as many events of the same size into one table with `sqlite3`, at the
same durability and with as many events per commit, without claims, fences or an index. The second is the rate at which
the disk syncs a growing file and a file of constant size. `--postgres` adds a database.
"""

import os
import sqlite3
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, cast
from uuid import uuid4

import anyio

from actors.core.log.codec import encode_event
from actors.core.log.events import AskStarted, LogEvent, Opened
from actors.core.values.content import Message, Text
from actors.core.values.identity import Binding
from actors.core.values.packed import pack
from actors.journal.commands import Append, ClaimSession, DeleteLog, JournalCommand
from actors.journal.journal_actor import JournalActor
from actors.journal.storage import Appended, Durability, Entry, Storage
from actors.journal.storage.memory import MemoryStorage
from actors.journal.storage.named import create_storage
from actors.kernel import Ref, System
from benchmarks.figures import Extent, Figure, Loop, Measure
from benchmarks.timing import Passes
from benchmarks.workload import Author

SESSIONS = 500
SYNCS = 50
"""Number of syncs in one measurement of the disk."""
POWER_US = 1e6 / 25_000
POSTGRES_US = 1e6 / 13_000
ALONE_MS = 1.0
_QUESTION = "a durable event, many sessions at once"
_ALONE = "a durable event of one session alone"
_LIMITS = {"power": POWER_US}
_SYNCHRONOUS: dict[Durability, str] = {"process": "NORMAL", "power": "FULL"}


def user_event() -> LogEvent:
    """Return the log event of a typical user message, to be written by the measurements."""
    author = Author(Binding("a", "openai_chat", "http://127.0.0.1:9/v1", "", "model-1"))
    return AskStarted(1, pack(Message("user", (Text(author.text(200, 201)),), 1)))


class Writers:
    """Sessions of one journal, which write events concurrently."""

    def __init__(self, journal: Ref[JournalCommand]) -> None:
        self._journal = journal
        self._event = user_event()
        self._fences: dict[str, int] = {}

    async def claim(self, name: str) -> None:
        """Claim a session and write the first event of its log."""
        fence = (await self._journal.ask(ClaimSession(name))).fence
        await self._journal.ask(Append(name, fence, (Opened(name, "a"),)))
        self._fences[name] = fence

    async def write(self, name: str, events: int) -> None:
        """Write events one after another, each when the previous one is durable."""
        for _ in range(events):
            await self._journal.ask(Append(name, self._fences[name], (self._event,)))

    async def for_each_session(
        self, work: Callable[[str], Coroutine[Any, Any, None]], names: Sequence[str]
    ) -> None:
        """Run `work` for each session name concurrently."""
        async with anyio.create_task_group() as tasks:
            for name in names:
                tasks.start_soon(work, name)

    async def delete(self, name: str) -> None:
        await self._journal.ask(DeleteLog(name))


class CountingStorage:
    """A storage that forwards all operations to another one, and counts the commits of events."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.commits = 0

    def append(self, entries: Sequence[Entry]) -> Sequence[Appended]:
        self.commits += 1
        return self._storage.append(entries)

    def __getattr__(self, name: str) -> Any:  # Any: any other attribute of a storage
        return getattr(self._storage, name)


@dataclass(frozen=True, slots=True)
class WriteCosts:
    """The measured costs of writing events.

    Args:
        passes: Columns: microseconds per event, milliseconds per event of a lone session, CPU microseconds per event.
        group: Mean number of events per commit.
    """

    passes: Passes
    group: int


async def _measure_storage(storage: Storage, passes: int, events: int, *, delete: bool = False) -> WriteCosts:
    """Measure the events of all sessions together, and the events of one session alone.

    Args:
        passes: Number of repetitions.
        events: Number of events per session and pass.
        delete: Whether to delete the sessions afterwards.
    """
    run, counting = uuid4().hex, CountingStorage(storage)
    names = [f"bench-{run}-{number}" for number in range(SESSIONS)]
    samples, commits = [], 0
    async with System() as system:
        writers = Writers(system.spawn(lambda: JournalActor(cast(Storage, counting)), "journal"))
        await writers.for_each_session(writers.claim, names)
        for _ in range(passes):
            counting.commits, began, cpu = 0, time.perf_counter(), time.process_time()
            await writers.for_each_session(partial(writers.write, events=events), names)
            took, busy = time.perf_counter() - began, time.process_time() - cpu
            commits += counting.commits
            alone = await _lone_session_ms(writers, names[0], 10 * events)
            samples.append((took * 1e6 / (SESSIONS * events), alone, busy * 1e6 / (SESSIONS * events)))
        if delete:
            await writers.for_each_session(writers.delete, names)
    return WriteCosts(Passes.of(samples), round(passes * SESSIONS * events / commits))


async def _lone_session_ms(writers: Writers, name: str, count: int) -> float:
    waits = []
    for _ in range(count):
        began = time.perf_counter()
        await writers.write(name, 1)
        waits.append((time.perf_counter() - began) * 1e3)
    return median(waits)


def plain_sqlite_us(path: Path, durability: Durability, count: int, group: int) -> float:
    """Write events into one SQLite table, with one commit per `group` events, and return the microseconds per event."""
    record = encode_event(user_event())
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[durability]}")
        connection.execute("CREATE TABLE event (session TEXT, seq INTEGER, record BLOB)")
        began = time.perf_counter()
        for first in range(0, count, group):
            connection.execute("BEGIN")
            rows = [(f"s{number}", 1, record) for number in range(first, min(first + group, count))]
            connection.executemany("INSERT INTO event VALUES (?, ?, ?)", rows)
            connection.execute("COMMIT")
        return (time.perf_counter() - began) * 1e6 / count


def syncs_per_second(folder: Path, *, grows: bool) -> float:
    """Return the median rate of syncing 4 KiB, at the end of a growing file or inside a file of constant size."""
    block, waits = os.urandom(4096), []
    with (folder / f"sync-{grows}").open("wb", buffering=0) as file:
        if not grows:
            file.write(bytes(len(block) * SYNCS))
            os.fsync(file.fileno())
            file.seek(0)
        for _ in range(SYNCS):
            file.write(block)
            began = time.perf_counter()
            os.fsync(file.fileno())
            waits.append(time.perf_counter() - began)
    return 1 / median(waits)


@contextmanager
def _opened_storage(storage: Storage) -> Iterator[Storage]:
    storage.open()
    try:
        yield storage
    finally:
        storage.close()


def _run_measurement(
    backend: Loop, storage: Storage, passes: int, events: int, *, delete: bool = False
) -> WriteCosts:
    with _opened_storage(storage):
        work = partial(_measure_storage, storage, passes, events, delete=delete)
        return anyio.run(work, backend=backend)


def _storage_rows(
    case: str, taken: WriteCosts, limit: float | None, beside: tuple[str, str] = ("", "")
) -> list[Figure]:
    """Return the rows of one storage. `beside` has a text to append to each note. Only durability `power` has goals."""
    many, _, cpu = taken.passes.medians
    note = f"{SESSIONS} sessions, by the clock: {1e6 / many:,.0f} a second, {taken.group} in a commit, CPU {cpu:.0f} us"
    row = Figure("J1", _QUESTION, case, "us", limit, note=note + beside[0])
    goal = ALONE_MS if limit else None
    alone = Figure("J1", _ALONE, case, "ms", goal, note=f"the median wait, by the clock{beside[1]}")
    return [taken.passes.fill(row, 0, None), taken.passes.fill(alone, 1, None)]


def _file_rows(backend: Loop, durability: Durability, passes: int, events: int) -> list[Figure]:
    with TemporaryDirectory() as name:
        folder = Path(name)
        taken = _run_measurement(backend, create_storage(folder / "journal.db", durability), passes, events)
        beside = _reference_notes(folder, durability, taken, SESSIONS * events)
    return _storage_rows(f"{backend}, {durability}", taken, _LIMITS.get(durability), beside)


def _reference_notes(folder: Path, durability: Durability, taken: WriteCosts, count: int) -> tuple[str, str]:
    """Measure the two references on this disk, and return the notes for many sessions and for one session."""
    hand = median(plain_sqlite_us(folder / f"hand-{n}.db", durability, count, taken.group) for n in range(3))
    single = plain_sqlite_us(folder / "single.db", durability, SYNCS, 1) / 1e3
    many, alone, _ = taken.passes.medians
    grown, same = (syncs_per_second(folder, grows=grows) for grows in (True, False))
    disk = f"; the disk syncs {grown:,.0f} times a second where a file grows, {same:,.0f} where not"
    return (
        f"; by hand {1e6 / hand:,.0f} a second, ratio {many / hand:.1f}{disk}",
        f"; by hand {single:.2f}, ratio {alone / single:.1f}{disk}",
    )


def _postgres_rows(backend: Loop, extent: Extent, passes: int, events: int) -> list[Figure]:
    case = f"{backend}, postgres"
    if not extent.postgres:
        why = "name a database that may be written to: --postgres postgresql://..."
        return [Figure("J1", _QUESTION, case, "us", POSTGRES_US, note=why)]
    taken = _run_measurement(backend, create_storage(extent.postgres), passes, events, delete=True)
    return _storage_rows(case, taken, POSTGRES_US)[:1]


def _measure_j1(extent: Extent) -> list[Figure]:
    passes, events = (3, 2) if extent.quick else (7, 40)
    rows: list[Figure] = []
    for backend in extent.backends:
        taken = _run_measurement(backend, MemoryStorage(), passes, events)
        rows += _storage_rows(f"{backend}, memory", taken, None)[:1]
        for durability in _SYNCHRONOUS:
            rows += _file_rows(backend, durability, passes, events)
        rows += _postgres_rows(backend, extent, passes, events)
    return rows


MEASURES = (Measure("J1", _QUESTION, _measure_j1),)
