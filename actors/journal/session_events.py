"""Read the stream events of a session, starting at any event of its log, and follow new events.

    async for event in session.events(after=seq):
        ...

Durable events are read from the log page by page and converted by `actors.core.session.publishing`, so all readers
receive equal events. A reader sends queries only to the journal actor. So it does not wake a hibernated session, and
no actor of the session waits for the reader. While writes are pending, a reader of a long log pauses
(`actors.journal.pages`).
"""

from collections import deque
from collections.abc import Callable

from actors.core.data.jsonio import INT_MAX
from actors.core.log.events import Closed, LogEvent
from actors.core.session.open_asks import AskStartSearch
from actors.core.session.publishing import Publisher
from actors.core.settings.values import show_value
from actors.core.stream_events.events import ResyncEvent, SessionEvent
from actors.errors import ActorsError, ActorStopped, ShuttingDown, UnknownSeq
from actors.journal.commands import JournalCommand, ReadLog
from actors.journal.pages import SLICE
from actors.journal.readers import Readers, Subscriber
from actors.journal.storage import PAGE, LogPage
from actors.kernel import Ref

SEARCH_LIMIT = 32
"""Maximum number of events per read while a reader searches backwards for the start of an ask, and then reads forwards
again.
"""


class SessionEvents:
    """An async iterator over the stream events of a session. It needs no cleanup, so callers may abandon it.

    Args:
        session: The id of the session.
        after: The number of the last event that the caller has seen; 0 for none.
        follow: Whether to wait for new events at the end of the log. Otherwise the iterator ends there.
        journal: The address of the journal actor, which reads the log.
        readers: Notifies the iterator of new events, and buffers deltas for it.
        check_caller: Raises an error if the caller must not read the session.
        is_over: Returns True if the session has ended.
        ended_error: Returns the error to raise if the session has ended.
    """

    def __init__(
        self,
        session: str,
        after: int,
        *,
        follow: bool,
        journal: Ref[JournalCommand],
        readers: Readers,
        check_caller: Callable[[], None],
        is_over: Callable[[], bool],
        ended_error: Callable[[], ActorsError],
    ) -> None:
        self._session, self._after, self._follow = session, after, follow
        self._journal, self._readers = journal, readers
        self._check, self._is_over, self._ended_error = check_caller, is_over, ended_error
        self._subscriber: Subscriber | None = None
        self._publisher = Publisher()
        self._log: deque[LogEvent] = deque()  # log events to convert
        self._ready: deque[SessionEvent] = deque()  # converted, but not returned yet
        self._is_stopped = self._has_closed = False
        self._is_catching_up = False  # whether the last page was long, so that more pages probably follow

    def __aiter__(self) -> "SessionEvents":
        return self

    async def __anext__(self) -> SessionEvent:
        """Return the next event.

        Raises:
            UnknownSeq: `after` is higher than the number of the last event.
            SessionClosed: The session ended without a `session_closed` event, because the runtime exited or its
                actors crashed.
            JournalError: The log cannot be read.
        """
        self._check()
        while not self._is_stopped:
            subscriber = self._subscriber or await self._subscribe()
            if subscriber.rolled_back_to is not None:
                await self._roll_back(subscriber)
                continue
            if self._ready:
                return self._ready.popleft()
            if subscriber.lost:
                lost, subscriber.lost = subscriber.lost, 0
                return ResyncEvent(self._publisher.seq, lost)
            if self._publisher.seq < subscriber.delta_position:
                await self._convert_events(subscriber)
            elif (delta := subscriber.delta()) is not None:
                return delta
            else:
                await self._wait_for_events(subscriber)
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """End the iterator."""
        self._is_stopped, self._subscriber = True, None
        self._ready.clear()

    async def _subscribe(self) -> Subscriber:
        """Subscribe to the session and read the first page.

        The subscription comes first, so that no event is missed. If the storage loses events in between, both steps are
        repeated.
        """
        if type(self._after) is not int or not 0 <= self._after <= INT_MAX:
            raise UnknownSeq(
                f"after= must be the number of an event, or 0 for all events, not {show_value(self._after):.80}"
            )
        while True:
            subscriber = self._readers.subscribe(self._session)
            try:
                page, publisher = await self._read_first_page()
            except ActorsError:
                if subscriber.rolled_back_to is None:
                    raise
                continue
            if subscriber.rolled_back_to is None:
                break
        self._publisher = publisher
        self._queue_page(page)
        subscriber.start_buffering(page.last)
        if self._is_over():
            subscriber.end()
        self._subscriber = subscriber
        return subscriber

    async def _read_first_page(self) -> tuple[LogPage, Publisher]:
        """Return the first page, and a publisher that converts its events."""
        page = await self._read_page(self._after)
        if self._after > page.last:
            raise UnknownSeq(
                f"The log of session {self._session!r} has only {page.last} events, so after={self._after} is too high"
            )
        if not page.last:
            raise self._ended_error()
        return page, await self._create_publisher_at(self._after)

    async def _create_publisher_at(self, seq: int) -> Publisher:
        """Return a publisher that converts the log events after number `seq` to stream events.

        If an ask is open after event `seq`, the earlier events of this ask are read first, because the conversion
        depends on them.
        """
        start, first = AskStartSearch(), seq
        while first and not start.is_found:
            if first < seq:
                await self._readers.throttle.pause()
            before = max(0, first - SEARCH_LIMIT)
            start.search(before, await self._read_range(before, first))
            first = before
        publisher = start.publisher()
        first = publisher.seq
        while publisher.seq < seq:
            if first < publisher.seq:
                await self._readers.throttle.pause()
            for event in await self._read_range(publisher.seq, min(seq, publisher.seq + SEARCH_LIMIT)):
                publisher.publish(event)
        return publisher

    async def _read_range(self, after: int, end: int) -> list[LogEvent]:
        """Return the events with numbers from `after + 1` to `end`."""
        events = list[LogEvent]()
        while (seq := after + len(events)) < end:
            page = await self._read_page(seq, end - seq)
            if not page.events:
                raise self._ended_error()
            events += page.events
        return events

    async def _roll_back(self, subscriber: Subscriber) -> None:
        """Discard the events that the storage lost, and continue after the last event that remains.

        Nothing changes before the last await. So if this call is cancelled, the next call starts over.
        """
        last = subscriber.rolled_back_to
        assert last is not None
        if self._publisher.seq > last:
            try:
                publisher = await self._create_publisher_at(last)
            except ActorsError:
                if subscriber.rolled_back_to == last:
                    raise
                return  # the storage lost more events in the meantime
            if subscriber.rolled_back_to != last:
                return
            self._publisher = publisher
            self._ready.clear()
        self._log.clear()
        subscriber.rolled_back_to = None

    async def _convert_events(self, subscriber: Subscriber) -> None:
        """Convert log events to stream events until a stream event is ready, or the next delta must be returned."""
        position = subscriber.delta_position
        if not self._log:
            page = await self._read_page(self._publisher.seq)
            if not page.last:
                raise self._ended_error()
            if not page.events:  # the storage lost events, and the log's writer has not noticed the loss yet
                await subscriber.wait_for_rollback()
                if subscriber.rolled_back_to is None:
                    raise self._ended_error()
                return
            self._queue_page(page)
        while self._log and self._publisher.seq < position and not self._ready:
            event = self._log.popleft()
            self._ready.extend(self._publisher.publish(event))
            self._has_closed = isinstance(event, Closed)
            if self._is_catching_up and not self._publisher.seq % SLICE:
                await self._readers.throttle.pause()

    def _queue_page(self, page: LogPage) -> None:
        """Add the events of a page to the queue of log events to convert."""
        self._log.extend(page.events)
        self._is_catching_up = len(page.events) >= SLICE

    async def _wait_for_events(self, subscriber: Subscriber) -> None:
        """Wait for new events.

        If the iterator does not follow the log, or the log ends with `Closed`, end the iterator instead.
        """
        if self._has_closed or not self._follow:
            await self.aclose()
        elif subscriber.is_over:
            raise self._ended_error()
        else:
            await subscriber.wait_for_events(self._publisher.seq)

    async def _read_page(self, after: int, limit: int = PAGE) -> LogPage:
        """Return a page of at most `limit` events after number `after`.

        If the journal actor has ended, raise the error for an ended session.
        """
        limit = self._readers.throttle.page_size(limit)
        try:
            return await self._journal.ask(ReadLog(self._session, after, limit=limit))
        except (ActorStopped, ShuttingDown):
            raise self._ended_error() from None
