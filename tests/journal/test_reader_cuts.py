"""Readers of a log that is cut: each sees the new events or learns that the session has ended."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import pytest

from actors.core.stream_events.events import SessionEvent
from actors.errors import ActorsError, SessionClosed
from actors.journal.commands import JournalCommand
from actors.journal.readers import Readers, Subscriber
from actors.journal.session_events import SessionEvents
from actors.journal.storage import PAGE, LogPage
from actors.journal.storage.memory import MemoryStorage
from actors.kernel import Ref
from tests.journal.test_readers import journal_of, write_long

pytestmark = pytest.mark.anyio


class Changing(MemoryStorage):
    """Logs in memory that change before given pages. `before` maps a page number to the action that precedes it."""

    def __init__(self) -> None:
        super().__init__()
        self.pages, self.before = 0, dict[int, Callable[[], object]]()

    def page(self, session: str, after: int = 0, limit: int = PAGE) -> LogPage:
        self.pages += 1
        assert self.pages < 100, "the log is read in an endless loop"
        self.before.get(self.pages, lambda: None)()
        return super().page(session, after, limit)

    def rewrite(self, asks: int) -> int:
        """Replace the log by one with this many asks; return the number of its last event."""
        self.delete("long")
        return len(write_long(self, asks))


class Reading:
    """A log of four asks with 13 events, and its readers."""

    def __init__(self, journal: Ref[JournalCommand], storage: Changing) -> None:
        self.journal, self.storage, self.readers = journal, storage, Readers()

    def events(self, after: int, *, follow: bool = True) -> SessionEvents:
        return SessionEvents(
            "long",
            after,
            follow=follow,
            journal=self.journal,
            readers=self.readers,
            check_caller=lambda: None,
            is_over=lambda: False,
            ended_error=lambda: SessionClosed("It has ended."),
        )

    async def events_after(self, after: int) -> list[SessionEvent]:
        """Return the events that a new reader sees."""
        return [event async for event in self.events(after, follow=False)]

    @property
    def subscriber(self) -> Subscriber:
        (subscriber,) = self.readers.subscribers_of("long")
        return subscriber

    def go_back(self) -> None:
        """Cut the log after its first ask, at event 4, and make its writer notice."""
        self.readers.roll_back("long", self.storage.rewrite(1))

    def grow(self) -> None:
        """Write four asks to the log."""
        self.readers.notify_growth("long", self.storage.rewrite(4))


@asynccontextmanager
async def log_readers() -> AsyncIterator[Reading]:
    storage = Changing()
    storage.rewrite(4)
    with anyio.fail_after(20):
        async with journal_of(storage) as journal:
            yield Reading(journal, storage)


async def test_a_reader_past_the_end_of_a_cut_log_learns_that_its_session_ended() -> None:
    async with log_readers() as log:
        events, failures = log.events(12), list[ActorsError]()
        await anext(events)
        log.subscriber.record_growth(14)
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


async def test_a_reader_cancelled_while_it_rewinds_misses_nothing() -> None:
    async with log_readers() as log:
        events = log.events(9)
        await anext(events)  # event 10
        expected = await log.events_after(4)
        log.storage.blocking = True  # so the reader waits for the thread
        log.go_back()
        with anyio.CancelScope() as given_up:
            given_up.cancel()
            await anext(events)
        assert given_up.cancelled_caught
        await log.events_after(0)  # after the read for the cancelled reader
        log.grow()
        log.readers.end("long")
        assert [await anext(events) for _ in expected] == expected


async def test_a_reader_of_a_log_cut_twice_rewinds_to_the_earlier_cut() -> None:
    async with log_readers() as log:
        expected = await log.events_after(4)
        events = log.events(12)
        await anext(events)
        log.readers.roll_back("long", log.storage.rewrite(3))
        log.storage.before[log.storage.pages + 1] = log.go_back
        log.storage.before[log.storage.pages + 3] = log.grow
        assert [await anext(events) for _ in expected] == expected


async def test_a_reader_that_starts_while_its_log_is_cut_starts_again() -> None:
    async with log_readers() as log:
        expected = await log.events_after(10)
        log.storage.before = {log.storage.pages + 2: log.go_back, log.storage.pages + 4: log.grow}
        events = log.events(10)
        assert [await anext(events) for _ in expected] == expected


async def test_a_reader_that_starts_while_its_log_is_cut_is_not_treated_as_past_the_end() -> None:
    async with log_readers() as log:
        expected, seen = await log.events_after(3), list[SessionEvent]()
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
