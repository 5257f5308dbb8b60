"""Clients that read or export a long log pause while writes are pending."""

from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import closing
from math import inf
from typing import Any, TypeAlias

import anyio
import anyio.lowlevel
import pytest

from actors import Runtime
from actors.core.log.events import AskStarted, LogEvent, Opened
from actors.core.session.export_file import ExportFile
from actors.core.values.content import Message, Text
from actors.core.values.packed import pack
from actors.errors import SessionClosed
from actors.journal import pages
from actors.journal.commands import Append, ReadLog
from actors.journal.journal_actor import JournalActor
from actors.journal.pages import SLICE, SLICE_BYTES, LogPages, ReadThrottle
from actors.journal.readers import Readers
from actors.journal.session_events import SessionEvents
from actors.journal.storage import Entry, LogPage
from actors.journal.storage.memory import MemoryStorage
from tests.journal.storages import begin, open_storage, to
from tests.journal.test_readers import Blocking, journal_of, write_long
from tests.runtime_support import openai, runtime_with

Client: TypeAlias = Callable[[Runtime], Coroutine[Any, Any, object]]  # Any: the traps of the event loop
DURABLE = ("sqlite-power", "postgres")


def events_of(runtime: Runtime, *, follow: bool = False) -> SessionEvents:
    """Return the events of the session `long`, which is not open in this runtime."""
    host = runtime._opening_host()
    return SessionEvents(
        "long",
        0,
        follow=follow,
        journal=host.journal,
        readers=host.readers,
        check_caller=lambda: None,
        is_over=lambda: False,
        ended_error=lambda: SessionClosed("gone"),
    )


def throttle_of(runtime: Runtime) -> ReadThrottle:
    return runtime._opening_host().readers.throttle


async def run_loop(count: int = 1000) -> None:
    """Run the event loop for some rounds, enough for a client that does not pause to read a long log from memory."""
    for _ in range(count):
        await anyio.lowlevel.checkpoint()


@pytest.fixture
def handled_events() -> list[object]:
    """The events of a log that a client has handled."""
    return []


@pytest.fixture(params=["events", "export"])
def client(
    request: pytest.FixtureRequest, handled_events: list[object], monkeypatch: pytest.MonkeyPatch
) -> Client:
    """A client that processes the log of the session `long`."""
    add = ExportFile.add

    def record_event(file: ExportFile, session: str, event: LogEvent) -> int:
        handled_events.append(event)
        return add(file, session, event)

    async def read(runtime: Runtime) -> None:
        async for event in events_of(runtime):
            if not getattr(event, "more", False):
                handled_events.append(event)

    monkeypatch.setattr(ExportFile, "add", record_event)
    return (lambda runtime: runtime.journal.export("long")) if request.param == "export" else read


@pytest.fixture
def endless_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make each pause last until no write is pending."""
    monkeypatch.setattr(pages, "MAX_PAUSE", inf)


@pytest.mark.anyio
@pytest.mark.requirement("PROMISE-8")
async def test_a_client_pauses_after_one_slice_while_a_write_is_pending(
    client: Client, handled_events: list[object], endless_pauses: None
) -> None:
    storage = MemoryStorage()
    log = write_long(storage)
    async with runtime_with(storage=storage, a=openai()) as runtime, anyio.create_task_group() as tasks:
        throttle_of(runtime).begin_write()
        tasks.start_soon(client, runtime)
        await run_loop()
        assert 0 < len(handled_events) <= SLICE + 1
        throttle_of(runtime).end_writes(1)
    assert len(handled_events) == len(log)


@pytest.mark.anyio
@pytest.mark.parametrize("name", DURABLE)
@pytest.mark.requirement("PROMISE-8")
async def test_successive_writes_overtake_a_client_that_reads_a_long_log(
    name: str,
    client: Client,
    handled_events: list[object],
    endless_pauses: None,
    request: pytest.FixtureRequest,
) -> None:
    with closing(open_storage(name, request)) as storage:
        log, fence = write_long(storage), begin(storage, "other").fence
        async with runtime_with(storage=storage, a=openai()) as runtime, anyio.create_task_group() as tasks:
            tasks.start_soon(client, runtime)
            for number in range(2, 32):
                append = Append("other", fence, (to("b"),))
                assert await runtime._opening_host().journal.ask(append) == number
            assert len(handled_events) <= SLICE + 1
        assert len(handled_events) == len(log)


@pytest.fixture
def read_events(monkeypatch: pytest.MonkeyPatch) -> list[LogEvent]:
    """The events of all pages that were read."""
    events, next_page = list[LogEvent](), LogPages.__anext__

    async def record_page(pages: LogPages) -> LogPage:
        page = await next_page(pages)
        events.extend(page.events)
        return page

    monkeypatch.setattr(LogPages, "__anext__", record_page)
    return events


ADMINISTRATION: dict[str, Client] = {
    "delete": lambda runtime: runtime.journal.delete("long"),
    "delete dry_run": lambda runtime: runtime.journal.delete("long", dry_run=True),
    "fork": lambda runtime: runtime.journal.fork("long"),
    "sweep": lambda runtime: runtime.journal.delete(tenant=""),
}
"""Calls that read a whole log for a caller."""


@pytest.mark.anyio
@pytest.mark.parametrize("call", ADMINISTRATION.values(), ids=ADMINISTRATION)
@pytest.mark.requirement("PROMISE-8")
async def test_calls_that_read_a_log_pause_after_one_page_while_a_write_is_pending(
    call: Client, read_events: list[LogEvent], endless_pauses: None
) -> None:
    storage = MemoryStorage()
    log = write_long(storage)
    async with runtime_with(storage=storage, a=openai()) as runtime, anyio.create_task_group() as tasks:
        throttle_of(runtime).begin_write()
        tasks.start_soon(call, runtime)
        await run_loop()
        assert 0 < len(read_events) <= SLICE + throttle_of(runtime).pending
        throttle_of(runtime).end_writes(1)
    assert read_events == log


@pytest.mark.anyio
@pytest.mark.requirement("PROMISE-9")
async def test_a_reading_client_finishes_even_if_writes_are_always_pending(
    client: Client, handled_events: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "MAX_PAUSE", 0)
    storage = MemoryStorage()
    log = write_long(storage)
    async with runtime_with(storage=storage, a=openai()) as runtime:
        throttle_of(runtime).begin_write()
        with anyio.fail_after(10):
            await client(runtime)
    assert len(handled_events) == len(log)


@pytest.mark.anyio
async def test_a_reader_stays_paused_between_two_writes_of_one_writer(
    endless_pauses: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    throttle, is_over = ReadThrottle(), False
    script = deque([lambda: throttle.end_writes(1), throttle.begin_write])

    class Turnstile:
        """An event loop whose rounds follow the steps of the script."""

        async def yield_turn(self) -> None:
            if script:
                script.popleft()()
            await anyio.lowlevel.checkpoint()

    async def pause() -> None:
        nonlocal is_over
        await throttle.pause()
        is_over = True

    monkeypatch.setattr(pages, "turnstile", Turnstile)
    async with anyio.create_task_group() as tasks:
        throttle.begin_write()
        tasks.start_soon(pause)
        await run_loop(100)
        assert not script
        assert not is_over
        throttle.end_writes(1)
    assert is_over


@pytest.mark.anyio
async def test_a_reader_of_new_events_does_not_pause_for_other_writers(endless_pauses: None) -> None:
    storage, seen = MemoryStorage(), list[int]()
    fence = begin(storage, "long").fence
    async with runtime_with(storage=storage, a=openai()) as runtime, anyio.create_task_group() as tasks:

        async def follow() -> None:
            async for _ in events_of(runtime, follow=True):
                seen.append(len(seen) + 1)

        throttle_of(runtime).begin_write()
        tasks.start_soon(follow)
        for number in range(2, 3 * SLICE):
            with anyio.fail_after(10):
                while seen[-1:] != [number - 1]:
                    await anyio.lowlevel.checkpoint()
            await runtime._opening_host().journal.ask(Append("long", fence, (to("b"),)))
        tasks.cancel_scope.cancel()


@pytest.mark.anyio
async def test_an_export_pauses_after_each_large_event(monkeypatch: pytest.MonkeyPatch) -> None:
    storage, pauses = MemoryStorage(), 0
    claim, large = storage.claim("long"), pack(Message("user", (Text("a" * SLICE_BYTES),)))
    log: list[LogEvent] = [Opened("long", "a"), *(AskStarted(number, large) for number in range(1, 6))]
    storage.append([Entry("long", claim.fence, tuple(log))])

    async def pause(throttle: ReadThrottle) -> None:
        nonlocal pauses
        pauses += 1

    monkeypatch.setattr(ReadThrottle, "pause", pause)
    async with runtime_with(storage=storage, a=openai()) as runtime:
        await runtime.journal.export("long")
    assert pauses == 5


@pytest.mark.anyio
async def test_writes_count_as_pending_until_answered_and_reads_do_not() -> None:
    storage, readers = Blocking(), Readers()
    fence = begin(storage, "one").fence
    async with journal_of(storage, readers=readers) as journal, anyio.create_task_group() as tasks:
        storage.holds_page.next.set()
        tasks.start_soon(journal.ask, ReadLog("one"))
        await storage.holds_page.is_reached()
        assert readers.throttle.pending == 0
        storage.holds_append.next.set()
        tasks.start_soon(journal.ask, Append("one", fence, (to("b"),)))
        await storage.holds_append.is_reached()
        assert readers.throttle.pending == 1
        storage.holds_append.freed.set()
        storage.holds_page.freed.set()
    assert readers.throttle.pending == 0


def test_a_restarted_journal_actor_has_no_pending_writes() -> None:
    readers = Readers()
    readers.throttle.begin_write()
    JournalActor(MemoryStorage(), readers)
    assert readers.throttle.pending == 0


def test_each_further_pending_write_allows_slightly_longer_pages() -> None:
    throttle, sizes = ReadThrottle(), list[int]()
    for _ in range(3):
        sizes.append(throttle.page_size(128))
        throttle.begin_write()
    assert sizes == [128, SLICE + 1, SLICE + 2]
    assert throttle.page_size(4) == 4
