"""Readers of a session whose log goes back: each sees what follows, or is told that the session has ended."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import pytest

from actors.core.stream_events.events import SessionEvent
from actors.errors import ActorsError, SessionClosed
from actors.journal.journal_actor import JournalCommand
from actors.journal.readers import Readers, Subscriber
from actors.journal.session_events import SessionEvents
from actors.journal.storage import PAGE, LogPage
from actors.journal.storage.memory import MemoryStorage
from actors.kernel import Ref
from tests.journal.test_readers import journal_of, write_long

pytestmark = pytest.mark.anyio


class Changing(MemoryStorage):
    """Logs in memory that change ahead of certain pages. `before`: what is done ahead of the page of each number."""

    def __init__(self) -> None:
        super().__init__()
        self.pages, self.before = 0, dict[int, Callable[[], object]]()

    def page(self, session: str, after: int = 0, most: int = PAGE) -> LogPage:
        self.pages += 1
        assert self.pages < 100, "it is read again and again"
        self.before.get(self.pages, lambda: None)()
        return super().page(session, after, most)

    def rewrite(self, asks: int) -> int:
        """Replace the log by one of so many asks; return the number of its last event."""
        self.delete("long")
        return len(write_long(self, asks))


class Reading:
    """A log of four asks, 13 events, and those who read it."""

    def __init__(self, journal: Ref[JournalCommand], storage: Changing) -> None:
        self.journal, self.storage, self.readers = journal, storage, Readers()

    def events(self, after: int, *, follow: bool = True) -> SessionEvents:
        return SessionEvents(
            "long",
            after,
            follow=follow,
            journal=self.journal,
            readers=self.readers,
            check=lambda: None,
            is_over=lambda: False,
            gone=lambda: SessionClosed("It has ended."),
        )

    async def shown(self, after: int) -> list[SessionEvent]:
        """Return what a reader sees that comes now."""
        return [event async for event in self.events(after, follow=False)]

    @property
    def following(self) -> Subscriber:
        (following,) = self.readers.of("long")
        return following

    def go_back(self) -> None:
        """Have the log end with its first ask, which is event 4, and its writer notice."""
        self.readers.roll_back("long", self.storage.rewrite(1))

    def grow(self) -> None:
        """Have four asks in the log."""
        self.readers.notify_growth("long", self.storage.rewrite(4))


@asynccontextmanager
async def reading() -> AsyncIterator[Reading]:
    storage = Changing()
    storage.rewrite(4)
    with anyio.fail_after(20):
        async with journal_of(storage) as journal:
            yield Reading(journal, storage)


async def test_a_reader_ahead_of_a_log_that_went_back_is_told_when_its_session_ends() -> None:
    async with reading() as log:
        events, failures = log.events(12), list[ActorsError]()
        await anext(events)
        log.following.record_growth(14)
        log.storage.rewrite(1)

        async def read() -> None:
            try:
                async for _ in events:
                    pass
            except ActorsError as error:
                failures.append(error)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            assert failures == []
            log.readers.end("long")
    assert [type(error) for error in failures] == [SessionClosed]


async def test_a_reader_that_gives_up_waiting_while_it_goes_back_misses_nothing() -> None:
    async with reading() as log:
        events = log.events(9)
        await anext(events)  # event 10
        expected = await log.shown(4)
        log.storage.blocking = True  # so it waits for the thread that reads
        log.go_back()
        with anyio.CancelScope() as given_up:
            given_up.cancel()
            await anext(events)
        assert given_up.cancelled_caught
        await log.shown(0)  # behind what was read for it
        log.grow()
        log.readers.end("long")
        assert [await anext(events) for _ in expected] == expected


async def test_a_reader_whose_log_goes_back_twice_goes_back_as_far_as_it_did() -> None:
    async with reading() as log:
        expected = await log.shown(4)
        events = log.events(12)
        await anext(events)
        log.readers.roll_back("long", log.storage.rewrite(3))
        log.storage.before[log.storage.pages + 1] = log.go_back
        log.storage.before[log.storage.pages + 3] = log.grow
        assert [await anext(events) for _ in expected] == expected


async def test_a_reader_that_begins_while_its_log_goes_back_begins_again() -> None:
    async with reading() as log:
        expected = await log.shown(10)
        log.storage.before = {log.storage.pages + 2: log.go_back, log.storage.pages + 4: log.grow}
        events = log.events(10)
        assert [await anext(events) for _ in expected] == expected


async def test_a_reader_that_begins_while_its_log_goes_back_is_not_ahead_of_it() -> None:
    async with reading() as log:
        expected, seen = await log.shown(3), list[SessionEvent]()
        log.storage.before[log.storage.pages + 2] = log.go_back
        events = log.events(3)

        async def read() -> None:
            while len(seen) < len(expected):
                seen.append(await anext(events))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            assert 0 < len(seen) < len(expected)
            log.grow()
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        assert seen == expected
