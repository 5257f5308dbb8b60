"""Readers of long logs: they never delay writers, and they read no more than needed."""

import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing, suppress
from importlib import import_module
from pathlib import Path
from time import sleep
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from actors.core.log.events import AskStarted, LogEvent, Opened, TurnEnded, TurnStarted
from actors.core.session.publishing import NO_BINDING
from actors.core.stream_events.event_json import event_json
from actors.core.stream_events.events import SessionEvent
from actors.core.values.content import Message, Text
from actors.core.values.packed import pack
from actors.errors import ActorsError, JournalDamaged, JournalError, JournalUnavailable
from actors.journal import journal_actor as journals
from actors.journal.commands import Append, JournalCommand, ReadLog
from actors.journal.health import JournalHealth
from actors.journal.journal_actor import JournalActor
from actors.journal.pages import SLICE, LogPages, read_log
from actors.journal.readers import Readers
from actors.journal.session_events import SEARCH_LIMIT
from actors.journal.storage import PAGE, PAGE_BYTES, Appended, Entry, LogPage, Storage
from actors.journal.storage.memory import MemoryStorage
from actors.journal.storage.sqlite import SqliteStorage
from actors.journal.storage.sqlite.connection import CHECKPOINT, OVERDUE
from actors.kernel import Ref, System
from actors.kernel.system import SHARED
from actors.runtime.runtime import StorageOwner
from actors.testing import Call, Say, Turn
from tests.journal.storages import STORAGES, begin, open_storage, to
from tests.runtime.test_ownership import open_files
from tests.runtime_support import Gate, anthropic, openai, runtime_with

OPEN_PAGE = {
    "sqlite-power": "actors.journal.storage.sqlite.storage.decode_page",
    "postgres": "actors.journal.storage.postgres.reading._small_page",
}
"""The function that each storage calls while it reads a page."""
SAID = pack(Message("user", (Text("Again."),)))


def ask_events(number: int) -> tuple[LogEvent, ...]:
    return AskStarted(number, SAID), TurnStarted(number, number, NO_BINDING), TurnEnded(number, "complete")


def write_long(storage: Storage, asks: int = 100) -> list[LogEvent]:
    """Write and return the log of a session with this many asks."""
    log = [Opened("long", "a"), *(event for number in range(1, asks + 1) for event in ask_events(number))]
    assert storage.append([Entry("long", storage.claim("long").fence, tuple(log))]) == [len(log)]
    return log


class Hold:
    """Stops the thread that calls a function, at one of its calls, until it is freed."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.next = threading.Event()
        self.reached, self.freed = threading.Event(), threading.Event()

    def __call__(self, *args: Any) -> Any:  # Any: any arguments and result
        if self.next.is_set() and not self.reached.is_set():
            self.reached.set()
            assert self.freed.wait(30)
        return self._function(*args)

    async def is_reached(self) -> None:
        """Hold the next call, and return when a thread has reached it."""
        while not self.reached.is_set():  # noqa: ASYNC110  set by a thread
            await anyio.sleep(0.001)


@asynccontextmanager
async def journal_of(
    storage: Storage, meter: JournalHealth | None = None, readers: Readers | None = None
) -> AsyncIterator[Ref[JournalCommand]]:
    with anyio.fail_after(60):
        async with System() as system:
            yield system.spawn(lambda: JournalActor(storage, readers, meter), "journal", depth=SHARED)


@pytest.fixture(params=OPEN_PAGE)
def storage_and_hold(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Storage, Hold]]:
    """A storage, and a hold on one of its open pages."""
    storage = open_storage(request.param, request)
    module, _, name = OPEN_PAGE[request.param].rpartition(".")
    hold = Hold(getattr(import_module(module), name))
    monkeypatch.setattr(OPEN_PAGE[request.param], hold)
    yield storage, hold
    storage.close()


@pytest.mark.anyio
@pytest.mark.requirement("PROMISE-8")
async def test_other_sessions_write_while_a_page_is_read(storage_and_hold: tuple[Storage, Hold]) -> None:
    storage, hold = storage_and_hold
    log, claim, read = write_long(storage), begin(storage, "other"), list[LogEvent]()
    async with journal_of(storage) as journal, anyio.create_task_group() as tasks:

        async def look() -> None:
            read.extend(await read_log(journal, "long"))

        hold.next.set()
        tasks.start_soon(look)
        await hold.is_reached()
        assert await journal.ask(Append("other", claim.fence, (to("b"),))) == 2
        assert not read
        hold.freed.set()
    assert read == log


@pytest.mark.anyio
@pytest.mark.parametrize("how", ["events", "export", "list"])
@pytest.mark.requirement("PROMISE-8")
async def test_reading_exporting_or_listing_logs_does_not_block_sessions(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = SqliteStorage(tmp_path / "sessions.db")
    name = "decode_page" if how != "list" else "list_sessions"
    hold = Hold(getattr(import_module("actors.journal.storage.sqlite.storage"), name))
    monkeypatch.setattr(f"actors.journal.storage.sqlite.storage.{name}", hold)
    gate, there = Gate(), anthropic(Turn(Call("work", {"name": "a"})), Turn(Say("Done.")))
    async with runtime_with(storage=storage, a=openai(Turn(Say("Here."))), b=there) as runtime:
        long, other = await runtime.open("a", id="long"), await runtime.open("b", tools=[gate.tool])
        await long.ask("Hello?")

        async def read() -> None:
            if how == "events":
                assert len([event async for event in long.events(follow=False)]) > 5
            elif how == "export":
                assert await runtime.journal.export("long")
            else:
                assert await runtime.journal.list()

        async with anyio.create_task_group() as tasks, other.stream("Work.") as events:
            await gate.started("a")
            hold.next.set()
            tasks.start_soon(read)
            await hold.is_reached()
            gate.open("a")
            assert [event async for event in events][-1].type == "complete"
            hold.freed.set()


@pytest.mark.anyio
async def test_exiting_the_runtime_during_a_read_leaks_no_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = SqliteStorage(tmp_path / "sessions.db")
    write_long(storage)
    hold, owner = (
        Hold(import_module("actors.journal.storage.sqlite.storage").decode_page),
        StorageOwner(storage),
    )
    monkeypatch.setattr("actors.journal.storage.sqlite.storage.decode_page", hold)

    async def free() -> None:
        hold.freed.set()

    system = System()
    system.first_steps, system.last_steps = ((free, 5.0),), ((owner.close, 5.0),)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks, system:
            await owner.open()
            journal = system.spawn(lambda: JournalActor(storage), "journal", depth=SHARED)

            async def read() -> None:
                with suppress(ActorsError):
                    await read_log(journal, "long")

            hold.next.set()
            tasks.start_soon(read)
            await hold.is_reached()
            assert any(name.endswith("sessions.db") for name in open_files(tmp_path))
    assert open_files(tmp_path) == []


def seq_of(event: SessionEvent) -> int:
    return int(event_json(event)["seq"])


class Counted(MemoryStorage):
    """Logs in memory that count the events read."""

    def __init__(self) -> None:
        super().__init__()
        self.pages = list[int]()

    def page(self, session: str, after: int = 0, limit: int = PAGE) -> LogPage:
        page = super().page(session, after, limit)
        self.pages.append(len(page.events))
        return page


@pytest.mark.anyio
async def test_reading_the_end_of_a_log_skips_its_beginning() -> None:
    storage = Counted()
    async with runtime_with(storage=storage, a=openai(*[Turn(Say("Here.")) for _ in range(40)])) as runtime:
        session = await runtime.open("a")
        for _ in range(40):
            await session.ask("Hello?")
        storage.pages.clear()
        whole = [event async for event in session.events(follow=False)]
        last = seq_of(whole[-1])
        assert sum(storage.pages) == last > 5 * SEARCH_LIMIT
        storage.pages.clear()
        end = [event async for event in session.events(after=last - 3, follow=False)]
        assert end == [event for event in whole if seq_of(event) > last - 3]
        assert sum(storage.pages) <= 3 + 2 * SEARCH_LIMIT


@pytest.mark.anyio
async def test_at_most_one_page_is_read_at_once() -> None:
    storage = Counted()
    log = write_long(storage)
    async with journal_of(storage) as journal:
        assert await read_log(journal, "long") == log
        assert max(storage.pages) == PAGE
        assert len(storage.pages) == len(log) // PAGE + 1
        assert await read_log(journal, "nobody") == []


@pytest.mark.anyio
async def test_an_export_does_not_block_the_event_loop() -> None:
    storage, rounds = MemoryStorage(), 0
    log = write_long(storage)
    async with runtime_with(storage=storage, a=openai()) as runtime, anyio.create_task_group() as tasks:

        async def count() -> None:
            nonlocal rounds
            while True:
                await anyio.lowlevel.checkpoint()
                rounds += 1

        tasks.start_soon(count)
        file = await runtime.journal.export("long")
        tasks.cancel_scope.cancel()
    assert file.count(b"\n") == len(log) + 1
    assert rounds >= len(log) / SLICE


@pytest.mark.anyio
async def test_a_log_erased_while_it_is_read_raises_an_error() -> None:
    storage = Counted()
    write_long(storage)
    async with journal_of(storage) as journal:
        pages = LogPages(journal, "long")
        await anext(pages)
        storage.delete("long")
        with pytest.raises(JournalError, match=r"Event 129 of 301 .* was deleted while the log was read"):
            await anext(pages)


class Blocking(MemoryStorage):
    """Logs in memory that are used in threads. A page and the end of an append can be held."""

    blocking = True

    def __init__(self) -> None:
        super().__init__()
        self.holds_page, self.holds_append = Hold(super().page), Hold(super().append)

    def page(self, session: str, after: int = 0, limit: int = PAGE) -> LogPage:
        self.holds_page(session, after, limit)
        return super().page(session, after, limit)

    def append(self, entries: Sequence[Entry]) -> Sequence[Appended]:
        appended = super().append(entries)
        self.holds_append([])
        return appended


@pytest.mark.anyio
@pytest.mark.requirement("PROMISE-6")
async def test_readers_see_no_unacknowledged_event() -> None:
    """A server whose connection is lost may undo the append."""
    storage, seen = Blocking(), list[int]()
    claim = begin(storage, "s")
    async with journal_of(storage) as journal, anyio.create_task_group() as tasks:
        await journal.ask(ReadLog("s", as_writer=True))

        async def look() -> None:
            seen.append((await journal.ask(ReadLog("s"))).last)

        storage.holds_page.next.set()
        tasks.start_soon(look)
        await storage.holds_page.is_reached()
        storage.holds_append.next.set()
        tasks.start_soon(journal.ask, Append("s", claim.fence, (to("b"),)))
        await storage.holds_append.is_reached()
        storage.holds_page.freed.set()
        while not seen:  # noqa: ASYNC110  set by a task
            await anyio.sleep(0.001)
        storage.holds_append.freed.set()
    assert seen == [1]
    assert len(storage.read("s")) == 2


@pytest.mark.anyio
@pytest.mark.requirement("PROMISE-9")
async def test_excess_reads_are_refused_unless_a_session_needs_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journals, "MAX_READS", 2)
    storage, meter, last = Blocking(), JournalHealth(), list[int]()
    write_long(storage)
    async with journal_of(storage, meter) as journal, anyio.create_task_group() as tasks:

        async def look(*, anew: bool) -> None:
            last.append((await journal.ask(ReadLog("long", as_writer=anew))).last)

        storage.holds_page.next.set()
        for _ in range(3):
            tasks.start_soon(lambda: look(anew=False))
            await storage.holds_page.is_reached()
            await anyio.wait_all_tasks_blocked()
        with pytest.raises(JournalUnavailable, match="already has 2 reads in its queue"):
            await journal.ask(ReadLog("long"))
        tasks.start_soon(lambda: look(anew=True))
        await anyio.wait_all_tasks_blocked()
        assert meter.outage_began is None  # the journal works
        storage.holds_page.freed.set()
    assert last == [301] * 4


@pytest.mark.anyio
@pytest.mark.requirement("PROMISE-9")
async def test_excess_reads_never_refuse_a_page_of_a_log_in_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journals, "MAX_READS", 0)
    storage = Blocking()
    log = write_long(storage)
    async with journal_of(storage) as journal:
        with pytest.raises(JournalUnavailable, match=r"already has .* reads in its queue"):
            await read_log(journal, "long")
        assert await read_log(journal, "long", as_writer=True) == log


@pytest.mark.parametrize("name", STORAGES)
def test_a_page_has_all_requested_events_and_the_last_number_of_the_log(
    name: str, request: pytest.FixtureRequest
) -> None:
    with closing(open_storage(name, request)) as storage:
        log = write_long(storage)
        for after, most in ((0, 1), (0, PAGE), (100, 50), (127, 2), (250, PAGE), (301, 1), (400, 1)):
            page = storage.page("long", after, most)
            assert (page.after, list(page.events), page.last) == (after, log[after : after + most], 301)
        assert storage.page("nobody").last == 0
        assert storage.read("long", 299) == log[299:]


@pytest.mark.parametrize("name", [name for name in STORAGES if name != "memory"])
def test_only_the_last_event_may_exceed_the_bytes_of_a_page(
    name: str, request: pytest.FixtureRequest
) -> None:
    large = [AskStarted(n, pack(Message("user", (Text(f"{n}" * (PAGE_BYTES // 3)),)))) for n in range(1, 8)]
    with closing(open_storage(name, request)) as storage:
        claim = begin(storage, "one")
        storage.append([Entry("one", claim.fence, tuple(large))])
        assert [len(storage.page("one", after).events) for after in (0, 4, 7)] == [4, 3, 1]
        assert list(storage.page("one", 4).events) == large[3:6]


def test_postgres_reads_no_large_values_beyond_the_current_page_of_a_log(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts, blobs = list[int](), import_module("actors.journal.storage.postgres.reading")._referenced_values

    def count(connection: Any, found: list[Any]) -> Any:  # Any: the types of the storage
        counts.append(len(found))
        return blobs(connection, found)

    monkeypatch.setattr("actors.journal.storage.postgres.reading._referenced_values", count)
    with closing(open_storage("postgres", request)) as storage:
        claim = begin(storage, "one")
        large = [AskStarted(n, pack(Message("user", (Text(f"{n}" * PAGE_BYTES),)))) for n in range(1, 4)]
        storage.append([Entry("one", claim.fence, tuple(large))])
        assert len(storage.page("one").events) == 2
    assert counts == [2]


def test_a_page_inside_a_log_is_read_from_the_next_waypoint(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with closing(SqliteStorage(path)) as storage:
        log = write_long(storage)
        with closing(sqlite3.connect(path)) as file, file:
            assert file.execute("SELECT number FROM waypoint").fetchall() == [(128,), (256,)]
            file.execute("DELETE FROM record WHERE number = 290")
        assert (
            list(storage.page("long", 200, 50).events) == log[200:250]
        )  # the path to 250 does not use record 290
        with pytest.raises(JournalDamaged, match="record 290 is missing"):
            storage.page("long", 280, 20)


@pytest.mark.parametrize(
    "damage",
    ["DELETE FROM waypoint", "UPDATE waypoint SET place = place - 1", "UPDATE waypoint SET number = 129"],
)
def test_a_missing_or_wrong_waypoint_only_slows_the_read(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with closing(SqliteStorage(path)) as storage:
        log = write_long(storage, 60)
        with closing(sqlite3.connect(path)) as file, file:
            assert file.execute(damage).rowcount == 1
        assert list(storage.page("long", 50, 50).events) == log[50:100]
        storage.delete("long")
        with closing(sqlite3.connect(path)) as file:
            assert file.execute("SELECT * FROM waypoint").fetchall() == []


def test_only_an_overdue_checkpoint_waits_until_a_page_has_been_read(tmp_path: Path) -> None:
    with closing(SqliteStorage(tmp_path / "sessions.db")) as storage:
        connections, claim = storage._connections, begin(storage, "one")

        def write() -> None:
            storage.append([Entry("one", claim.fence, (to("b"),))])

        connections.pages = CHECKPOINT
        with connections.read_snapshot():
            write()
        assert connections.pages > CHECKPOINT
        write()
        assert connections.pages < CHECKPOINT
        connections.pages = OVERDUE
        thread = threading.Thread(target=write)
        with connections.read_snapshot():
            thread.start()
            while connections.pages == OVERDUE and thread.is_alive():  # until the commit
                sleep(0.001)
            assert connections.pages > OVERDUE
        thread.join(60)
        assert connections.pages < CHECKPOINT
