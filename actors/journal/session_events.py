"""A session's events for any reader: from any place in its log on, and along with what happens.

    async for event in session.events(after=seq):
        ...

What is durable is read from the log and published by `actors.core.session.publishing`, so every reader sees the same.
Reading asks the journal only, for a page at a time: it needs no actor of the session's, wakes none, and makes none
    wait.
"""

from collections import deque
from collections.abc import Callable

from actors.core.log.events import Closed, Event
from actors.core.session.ask_start import AskStart
from actors.core.session.publishing import Publisher
from actors.core.stream_events.events import ResyncEvent, SessionEvent
from actors.errors import ActorsError, ActorStopped, Draining, UnknownSeq
from actors.journal.journal_actor import JournalCommand, ReadLog
from actors.journal.read_throttle import SLICE
from actors.journal.readers import Following, Readers
from actors.journal.storage import PAGE, LogPage
from actors.kernel import Ref

BACK = 32
"""Events that are read at once on the way back to the beginning of an ask, or from there."""


class SessionEvents:
    """An async iterator. Who leaves it early need do nothing: it is forgotten when nobody holds it.

    Args:
        session: Whose events.
        after: The number of the last event that the reader has seen; 0 for none.
        follow: Whether it waits for what comes; else it ends where the log ends.
        journal: Who reads the log.
        readers: Who is told that there is more.
        check: Refuses a caller that may not read.
        is_over: Whether the session has ended.
        gone: Says that it has.
    """

    def __init__(
        self,
        session: str,
        after: int,
        *,
        follow: bool,
        journal: Ref[JournalCommand],
        readers: Readers,
        check: Callable[[], None],
        is_over: Callable[[], bool],
        gone: Callable[[], ActorsError],
    ) -> None:
        self._session, self._after, self._follow = session, after, follow
        self._journal, self._readers = journal, readers
        self._check, self._is_over, self._gone = check, is_over, gone
        self._following: Following | None = None
        self._publisher = Publisher()
        self._log: deque[Event] = deque()  # read, and not published
        self._ready: deque[SessionEvent] = deque()  # published: all of one number
        self._is_left = self._has_closed = False
        self._is_catching_up = False  # the last page was a long one

    def __aiter__(self) -> "SessionEvents":
        return self

    async def __anext__(self) -> SessionEvent:
        """Return the next event.

        Raises:
            UnknownSeq: The log has no such number as `after`.
            SessionClosed: The session ended without a last word: the runtime was left, or its actors crashed.
            JournalError: The log cannot be read.
        """
        self._check()
        while not self._is_left:
            following = self._following or await self._begin()
            if following.cut_to is not None:
                await self._go_back(following)
                continue
            if self._ready:
                return self._ready.popleft()
            if following.lost:
                lost, following.lost = following.lost, 0
                return ResyncEvent(self._publisher.seq, lost)
            if self._publisher.seq < following.place:
                await self._publish(following)
            elif (delta := following.delta()) is not None:
                return delta
            else:
                await self._wait(following)
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Stop reading."""
        self._is_left, self._following = True, None
        self._ready.clear()

    async def _begin(self) -> Following:
        """Begin to follow, then read what there is: so nothing is between them. If the log goes back, do both again."""
        if type(self._after) is not int or self._after < 0:
            raise UnknownSeq(f"after= takes a number from 0, not {self._after!r}")
        while True:
            following = self._readers.follow(self._session)
            try:
                page, publisher = await self._start()
            except ActorsError:
                if following.cut_to is None:
                    raise
                continue
            if following.cut_to is None:
                break
        self._publisher = publisher
        self._take(page)
        following.begin(page.last)
        if self._is_over():
            following.end()
        self._following = following
        return following

    async def _start(self) -> tuple[LogPage, Publisher]:
        """Return the page with which it starts, and what publishes that."""
        page = await self._read(self._after)
        if self._after > page.last:
            raise UnknownSeq(
                f"Session {self._session!r} has {page.last} events, so there is none to read on from at {self._after}"
            )
        if not page.last:
            raise self._gone()
        return page, await self._publisher_at(self._after)

    async def _publisher_at(self, seq: int) -> Publisher:
        """Return what publishes the events past a number. Only the ask that is under way there is read for it."""
        start, first = AskStart(), seq
        while first and not start.is_found:
            if first < seq:
                await self._readers.throttle.pause()
            before = max(0, first - BACK)
            start.look(before, await self._between(before, first))
            first = before
        publisher = start.publisher()
        first = publisher.seq
        while publisher.seq < seq:
            if first < publisher.seq:
                await self._readers.throttle.pause()
            for event in await self._between(publisher.seq, min(seq, publisher.seq + BACK)):
                publisher.published(event)
        return publisher

    async def _between(self, after: int, end: int) -> list[Event]:
        """Return the events past number `after` up to number `end`."""
        events = list[Event]()
        while (seq := after + len(events)) < end:
            page = await self._read(seq, end - seq)
            if not page.events:
                raise self._gone()
            events += page.events
        return events

    async def _go_back(self, following: Following) -> None:
        """Forget what was read of a log behind the event that it has gone back to, and read on from there.

        Until that is done, nothing is forgotten: who gives up waiting goes back when it waits again.
        """
        last = following.cut_to
        assert last is not None
        if self._publisher.seq > last:
            try:
                publisher = await self._publisher_at(last)
            except ActorsError:
                if following.cut_to == last:
                    raise
                return  # it has gone back further
            if following.cut_to != last:
                return
            self._publisher = publisher
            self._ready.clear()
        self._log.clear()
        following.cut_to = None

    async def _publish(self, following: Following) -> None:
        """Publish the log's next event that is shown and was not seen, if there is one up to the follower's place."""
        place = following.place
        if not self._log:
            page = await self._read(self._publisher.seq)
            if not page.last:
                raise self._gone()
            if not page.events:  # the storage went back, and the log's writer has not noticed yet
                await following.cut_or_ended()
                if following.cut_to is None:
                    raise self._gone()
                return
            self._take(page)
        while self._log and self._publisher.seq < place and not self._ready:
            event = self._log.popleft()
            self._ready.extend(self._publisher.published(event))
            self._has_closed = isinstance(event, Closed)
            if self._is_catching_up and not self._publisher.seq % SLICE:
                await self._readers.throttle.pause()

    def _take(self, page: LogPage) -> None:
        self._log.extend(page.events)
        self._is_catching_up = len(page.events) >= SLICE

    async def _wait(self, following: Following) -> None:
        """Wait for more; at the end, leave."""
        if self._has_closed or not self._follow:
            await self.aclose()
        elif following.is_over:
            raise self._gone()
        else:
            await following.more(self._publisher.seq)

    async def _read(self, after: int, most: int = PAGE) -> LogPage:
        most = self._readers.throttle.page_size(most)
        try:
            return await self._journal.ask(ReadLog(self._session, after, most=most))
        except (ActorStopped, Draining):
            raise self._gone() from None
