"""Time the storage and a runtime on a journal with many sessions.

Each figure is the median or the 99th percentile of several calls. It is printed next to its goal, if it has a goal.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from functools import partial
from random import Random
from statistics import median, quantiles
from time import perf_counter
from typing import Any

import anyio
import psycopg
from msgspec import Struct
from msgspec.structs import replace

from actors import Runtime
from actors.core.log.events import LogEvent, TurnEnded
from actors.journal.storage import Entry
from actors.journal.storage.directory import EVERY, HostStatus, Page, SessionFilter
from actors.journal.storage.memory import MemoryStorage
from actors.journal.storage.postgres import PostgresStorage
from actors.runtime.retention import Retention
from actors.testing import OpenAIServer, Say, Turn, serve
from tests.commands.growth.filling import DAY, DAYS, OWNED_DAYS, name_of

PAGE = 100
"""Sessions of a page."""


class Growth(Struct, frozen=True):
    """A figure in milliseconds, or in the unit that its name contains."""

    what: str
    value: float
    goal: float | None = None

    @property
    def is_missed(self) -> bool:
        """True if the figure has a goal and is not below it."""
        return self.goal is not None and self.value >= self.goal

    def __str__(self) -> str:
        goal = "" if self.goal is None else f"{self.goal:,.0f}"
        return f"{self.what:<72}{self.value:>14,.1f}{goal:>8}{'  missed' if self.is_missed else ''}"


class Journal(Struct, frozen=True):
    """A journal to measure.

    Args:
        url: Its address.
        sessions: The number of sessions that it was filled with.
        now: The time at which its last session was used, in seconds since 1970.
    """

    url: str
    sessions: int
    now: float

    def storage(self) -> PostgresStorage:
        """Return a new storage for the journal, which is a host that tests may name."""
        return PostgresStorage(self.url)

    def used(self, number: int) -> float:
        """Return the time of the last use of a session."""
        return self.now - DAYS * DAY * number / self.sessions


def milliseconds(call: Callable[[], object]) -> float:
    """Return the duration of a call."""
    began = perf_counter()
    call()
    return 1000 * (perf_counter() - began)


async def recorded_turns() -> Sequence[LogEvent]:
    """Return the log of a session that answered two asks."""
    async with _runtime(MemoryStorage()) as runtime:
        session = await runtime.open("openai:gpt-5.2", id="one")
        for _ in range(2):
            await session.ask("How is the weather in Oslo?")
        return runtime._storage.read("one")


@asynccontextmanager
async def _runtime(journal: Any) -> AsyncIterator[Runtime]:  # Any: a storage or an address
    async with serve(OpenAIServer(lambda _: Turn(Say("Oslo has 5 degrees, and rain.")))) as (server,):
        environ = {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": server.base_url}
        async with Runtime(environ=environ, journal=journal) as runtime:
            yield runtime


# Lists


def listings(journal: Journal, calls: int = 15) -> Iterator[Growth]:
    """Measure the first page and a late page of each kind of list."""
    late: Page = (-journal.used(journal.sessions * 9 // 10), "~")
    storage = journal.storage()
    try:
        storage.open()
        for what, which in _filters(journal).items():
            for place, page in (("first page", None), ("late page", late)):
                read_page = partial(storage.sessions, which, limit=PAGE, after=page)
                read_page()
                took = [milliseconds(read_page) for _ in range(calls)]
                yield Growth(f"list {what}, {place}", median(took), 20)
    finally:
        storage.close()


def _filters(journal: Journal) -> dict[str, SessionFilter]:
    user = ("user", f"u{journal.sessions // 20}")
    return {
        "all": EVERY,
        "by tenant with half of the sessions": SessionFilter("large"),
        "by tenant with few sessions": SessionFilter("t7"),
        "by unknown tenant": SessionFilter("nobody"),
        "by state idle": SessionFilter(state="idle"),
        "by state running (1 of 10,000)": SessionFilter(state="running"),
        "by state awaiting (10 of 10,000)": SessionFilter(state="awaiting"),
        "by state closed": SessionFilter(state="closed"),
        "by large tenant and state running": SessionFilter("large", "running"),
        "by large tenant and state awaiting": SessionFilter("large", "awaiting"),
        "by large tenant and state closed": SessionFilter("large", "closed"),
        "by small tenant and state idle": SessionFilter("t7", "idle"),
        "by metadata of ten sessions": SessionFilter(metadata=(user,)),
        "by metadata of one in 100 sessions": SessionFilter(metadata=(("plan", "trial"),)),
        "by metadata of most sessions": SessionFilter(metadata=(("plan", "free"),)),
        "by metadata of no session": SessionFilter(metadata=(("user", "nobody"),)),
        "by large tenant and metadata of ten sessions": SessionFilter("large", metadata=(user,)),
    }


# Runtimes


async def start(journal: Journal, calls: int = 5) -> Growth:
    """Measure how long it takes to enter a runtime."""
    took = []
    for _ in range(calls):
        runtime = Runtime(environ={"OPENAI_API_KEY": "any"}, journal=journal.url)
        began = perf_counter()
        async with runtime:
            took.append(1000 * (perf_counter() - began))
    return Growth("enter a runtime", max(took), 1000)


async def resumes(journal: Journal, calls: int = 200, at_once: int = 20) -> Sequence[Growth]:
    """Measure resumes of sessions without an owner: one after the other, and `at_once` concurrently."""
    names = iter(_free_sessions(journal, 2 * calls + 2 * at_once))
    async with _runtime(journal.url) as runtime:

        async def resume(took: list[float]) -> None:
            began = perf_counter()
            await runtime.resume(next(names))
            took.append(1000 * (perf_counter() - began))

        alone, together = list[float](), list[float]()
        await resume([])
        for _ in range(calls):
            await resume(alone)

        async def resume_many() -> None:
            for _ in range(max(1, calls // at_once)):
                await resume(together)

        began = perf_counter()
        async with anyio.create_task_group() as tasks:
            for _ in range(at_once):
                tasks.start_soon(resume_many)
        seconds = perf_counter() - began
    return [
        Growth("resume a session", median(alone), 50),
        Growth("resume a session, 99th percentile", quantiles(alone, n=100)[-1], 50),
        Growth(
            f"resume a session while {at_once - 1} others resume, 99th percentile",
            quantiles(together, n=100)[-1],
        ),
        Growth(f"resumes of one host, {at_once} at once (per s)", len(together) / seconds),
    ]


def _free_sessions(journal: Journal, count: int) -> Iterator[str]:
    """Yield ids of idle sessions without an owner, spread over their ages."""
    numbers = range(journal.sessions * (OWNED_DAYS + 1) // DAYS, journal.sessions * 8 // 10)
    idle = [number for number in numbers if number % 10 in (0, 2, 3, 5, 6, 8)]
    yield from map(name_of, Random(1).sample(idle, min(count, len(idle))))


# Turns


def turns(
    journal: Journal,
    connection: psycopg.Connection[Any],
    log: Sequence[LogEvent],
    at_once: int,
    count: int = 60,
) -> Iterator[Growth]:
    """Measure the events of turns of `at_once` sessions, whose events are written together.

    A minute passes between two turns of a session.
    """
    now, names = journal.now, [*_free_sessions(journal, at_once)]
    ask = log[1 : 1 + len(log) // 2]
    with closing(PostgresStorage(journal.url, clock=lambda: now)) as storage:
        with storage.transaction((), names):
            claims = {name: storage.claim(name, existing=True) for name in names}

        last = {name: sum(type(event) is TurnEnded for event in storage.read(name)) for name in names}

        def take_turn(number: int) -> None:
            for event in ask:
                entries = [
                    Entry(name, claims[name].fence, (renumbered(event, last[name] + number),))
                    for name in names
                ]
                written = storage.append(entries)
                assert all(isinstance(number, int) for number in written)

        take_turn(1)
        wal, began = _wal_position(connection), perf_counter()
        for number in range(2, count + 2):
            now += 64.0
            take_turn(number)
        seconds, written = perf_counter() - began, _wal_position(connection) - wal
    yield Growth("events of a turn (number)", len(ask))
    yield Growth(f"events of one host, {at_once} in a commit (per s)", count * at_once * len(ask) / seconds)
    yield Growth(f"a commit with {at_once} events", 1000 * seconds / count / len(ask))
    yield Growth(
        f"write-ahead log of a turn, {at_once} events in a commit (bytes)", written / count / at_once
    )


def renumbered(event: LogEvent, number: int) -> LogEvent:
    """Return an event as one of the turn with this number, and of the ask with the same number."""
    return replace(event, **{field: number for field in ("ask", "turn") if hasattr(event, field)})


# Hosts


def hosts(journal: Journal, connection: psycopg.Connection[Any]) -> Iterator[Growth]:
    """Measure the list of hosts, the list of a host's sessions, and the release of all its sessions."""
    storage = journal.storage()
    try:
        storage.open()
        storage.renew_lease(HostStatus("http://measured"))
        yield Growth("hosts()", median(milliseconds(storage.hosts) for _ in range(5)))
        owned = connection.execute(
            "UPDATE actors_session SET owner = %s WHERE owner IS NOT NULL", (storage.host,)
        ).rowcount
        yield Growth("sessions that one host owns (number)", owned)
        yield Growth(
            "a page of a host's sessions", median(milliseconds(storage.owned_sessions) for _ in range(5)), 20
        )
        after = name_of(journal.sessions * OWNED_DAYS // DAYS // 2)
        late = median(milliseconds(lambda: storage.owned_sessions(after)) for _ in range(5))
        yield Growth("a late page of a host's sessions", late, 20)
        yield Growth("release all of a host's sessions (s)", milliseconds(storage.release_all) / 1000)
        assert not storage.owned_sessions()
    finally:
        storage.close()


# Deletion


async def deletion(
    journal: Journal, connection: psycopg.Connection[Any], part: float = 0.1
) -> Sequence[Growth]:
    """Delete the oldest sessions by a sweep, and measure its cost."""
    count = round(part * journal.sessions)
    keep = journal.now - journal.used(journal.sessions - count) - DAYS * DAY / journal.sessions / 2
    wal, began = _wal_position(connection), perf_counter()
    async with _runtime(journal.url) as runtime:
        host = runtime._running_host()
        delete = runtime.journal._session_removal(host).delete_unused
        deleted = await Retention(host.journal, keep, delete, lambda: journal.now, anyio.current_time).sweep()
    seconds, written = perf_counter() - began, _wal_position(connection) - wal
    return [
        Growth("sessions that a sweep deletes (number)", deleted),
        Growth("the sweep (s)", seconds),
        Growth("the sweep, per session", 1000 * seconds / deleted),
        Growth("write-ahead log of the sweep, per session (bytes)", written / deleted),
        *_dead_rows(connection),
    ]


def _dead_rows(connection: psycopg.Connection[Any]) -> Iterator[Growth]:
    """Yield the dead rows of each table, and the sizes of tables and indexes."""
    connection.execute("SELECT pg_stat_force_next_flush()")
    for table in ("actors_session", "actors_record"):
        ((dead, size, indexes),) = connection.execute(
            "SELECT n_dead_tup, pg_table_size(relid), pg_indexes_size(relid) FROM pg_stat_user_tables "
            "WHERE relid = %s::regclass",
            (table,),
        ).fetchall()
        yield Growth(f"dead rows of {table} (number)", dead)
        yield Growth(f"{table} (MB)", size / 1e6)
        yield Growth(f"indexes of {table} (MB)", indexes / 1e6)


def _wal_position(connection: psycopg.Connection[Any]) -> int:
    ((position,),) = connection.execute("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn").fetchall()
    return int(position)
