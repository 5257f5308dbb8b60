"""Read the stream events of a session, from any event of its log on, and follow new events.

    async for event in session.events(after=seq):
        ...

Durable events are read from the log, page by page, and published by `actors.core.session.publishing`, so every reader
receives the same events. A reader sends queries to the journal actor only: it does not wake a hibernated session, and
no actor of the session waits for it. A reader that works through a long log pauses while writes are pending
(`actors.journal.read_throttle`).
"""

from collections import deque
from collections.abc import Callable

from actors.core.log.events import Closed, LogEvent
from actors.core.session.ask_start import AskStart
from actors.core.session.publishing import Publisher
from actors.core.stream_events.events import ResyncEvent, SessionEvent
from actors.errors import ActorsError, ActorStopped, ShuttingDown, UnknownSeq
from actors.journal.commands import JournalCommand, ReadLog
from actors.journal.read_throttle import SLICE
from actors.journal.readers import Readers, Subscriber
from actors.journal.storage import PAGE, LogPage
from actors.kernel import Ref

BACK = 32
"""Events that are read at once when the start of an ask is searched, and from there on."""


class SessionEvents:
    """An async iterator of stream events. It holds no resources, so a caller may abandon it.

    Args:
        session: The id of the session.
        after: The number of the last event that the caller has seen; 0 for none.
        follow: Whether to wait for new events at the end of the log. Otherwise the iterator ends there.
        journal: Reads the log.
        readers: Reports new events and deltas.
        check: Raises if the caller must not read the session.
        is_over: Returns whether the session has ended.
        gone: Makes the error for a session that has ended.
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
        self._following: Subscriber | None = None
        self._publisher = Publisher()
        self._log: deque[LogEvent] = deque()  # read, not yet published
        self._ready: deque[SessionEvent] = deque()  # published, not yet returned; all have one number
        self._is_left = self._has_closed = False
        self._is_catching_up = False  # the last page was a long one

    def __aiter__(self) -> "SessionEvents":
        return self

    async def __anext__(self) -> SessionEvent:
        """Return the next event.

        Raises:
            UnknownSeq: The log has no such number as `after`.
            SessionClosed: The session ended without a `closed` event: the runtime was left, or its actors crashed.
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

    async def _begin(self) -> Subscriber:
        """Subscribe, then read the first page, so that no event is missed. If the log goes back, repeat both."""
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
        """Return the first page and its publisher."""
        page = await self._read_page(self._after)
        if self._after > page.last:
            raise UnknownSeq(
                f"Session {self._session!r} has {page.last} events, so there is none to read on from at {self._after}"
            )
        if not page.last:
            raise self._gone()
        return page, await self._publisher_at(self._after)

    async def _publisher_at(self, seq: int) -> Publisher:
        """Return a publisher of the events after number `seq`. Of the log before it, only the current ask is read."""
        start, first = AskStart(), seq
        while first and not start.is_found:
            if first < seq:
                await self._readers.throttle.pause()
            before = max(0, first - BACK)
            start.search(before, await self._read_range(before, first))
            first = before
        publisher = start.publisher()
        first = publisher.seq
        while publisher.seq < seq:
            if first < publisher.seq:
                await self._readers.throttle.pause()
            for event in await self._read_range(publisher.seq, min(seq, publisher.seq + BACK)):
                publisher.publish(event)
        return publisher

    async def _read_range(self, after: int, end: int) -> list[LogEvent]:
        """Return the events after number `after`, up to number `end`."""
        events = list[LogEvent]()
        while (seq := after + len(events)) < end:
            page = await self._read_page(seq, end - seq)
            if not page.events:
                raise self._gone()
            events += page.events
        return events

    async def _go_back(self, following: Subscriber) -> None:
        """Drop the events that were read and are not in the log any more, and read on from the event it went back to.

        Nothing changes before the last await, so a cancelled caller goes back at its next call.
        """
        last = following.cut_to
        assert last is not None
        if self._publisher.seq > last:
            try:
                publisher = await self._publisher_at(last)
            except ActorsError:
                if following.cut_to == last:
                    raise
                return  # the log went back again
            if following.cut_to != last:
                return
            self._publisher = publisher
            self._ready.clear()
        self._log.clear()
        following.cut_to = None

    async def _publish(self, following: Subscriber) -> None:
        """Publish events of the log until one is visible to readers, up to the place of the next delta."""
        place = following.place
        if not self._log:
            page = await self._read_page(self._publisher.seq)
            if not page.last:
                raise self._gone()
            if not page.events:  # the storage went back, and the writer of the log has not noticed it yet
                await following.cut_or_ended()
                if following.cut_to is None:
                    raise self._gone()
                return
            self._take(page)
        while self._log and self._publisher.seq < place and not self._ready:
            event = self._log.popleft()
            self._ready.extend(self._publisher.publish(event))
            self._has_closed = isinstance(event, Closed)
            if self._is_catching_up and not self._publisher.seq % SLICE:
                await self._readers.throttle.pause()

    def _take(self, page: LogPage) -> None:
        self._log.extend(page.events)
        self._is_catching_up = len(page.events) >= SLICE

    async def _wait(self, following: Subscriber) -> None:
        """Wait for news. Stop reading at the end of the log, unless the reader follows."""
        if self._has_closed or not self._follow:
            await self.aclose()
        elif following.is_over:
            raise self._gone()
        else:
            await following.wait_for_news(self._publisher.seq)

    async def _read_page(self, after: int, most: int = PAGE) -> LogPage:
        most = self._readers.throttle.page_size(most)
        try:
            return await self._journal.ask(ReadLog(self._session, after, most=most))
        except (ActorStopped, ShuttingDown):
            raise self._gone() from None
