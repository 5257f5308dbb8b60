"""Notify the readers of a session about new log events, and buffer stream deltas for them.

A `SessionEvents` object subscribes here to read one session. The journal actor reports new events.

Readers read durable events from the log, so a late or slow reader receives the same events as every other reader.
Deltas are not in the log. Each delta is buffered with the number of the log's last event at that time, so a reader can
return the delta at the right position among the durable events. If a reader has `MAX_DELTAS` unread deltas, these
deltas are dropped, and the reader receives a notice.

A session without readers costs nothing. Readers are referenced weakly, so an abandoned reader is garbage-collected.
"""

from collections import deque
from weakref import ref

from actors.core.stream_events.ask_events import DurableEvent
from actors.core.stream_events.events import SessionEvent, Sink
from actors.journal.pages import ReadThrottle
from actors.kernel.event_loop import Changes, event_loop

MAX_DELTAS = 1024
"""Maximum number of deltas in one reader's buffer."""


class Subscriber:
    """The notifications and the buffered stream deltas for one reader of a session.

    Attributes:
        last: The number of the last event of the log; None until the reader has reached the end of the log for the
            first time.
        lost: The number of dropped deltas about which the reader has not been notified yet.
        rolled_back_to: If the storage lost events, the number of the last event that remains; None otherwise.
        is_over: Whether the session has ended.
    """

    __slots__ = ("__weakref__", "_changes", "_deltas", "is_over", "last", "lost", "rolled_back_to")

    def __init__(self) -> None:
        self._changes = Changes(event_loop())
        self._deltas: deque[tuple[int, SessionEvent]] = deque()
        self.last: int | None = None
        self.lost: int = 0
        self.rolled_back_to: int | None = None
        self.is_over: bool = False

    def start_buffering(self, last_seq: int) -> None:
        """Start to buffer deltas. `last_seq` is the number of the log's last event."""
        self.last = max(last_seq, self.last or 0)

    def record_growth(self, last_seq: int) -> None:
        """Record that `last_seq` is the new number of the log's last event, and wake the reader."""
        self.last = last_seq
        self._changes.notify()

    def roll_back(self, last_seq: int) -> None:
        """Record that the storage lost all events after number `last_seq`, and wake the reader.

        Other events will receive the lost numbers, so the reader must discard the lost events and the deltas.
        """
        self.rolled_back_to = last_seq if self.rolled_back_to is None else min(last_seq, self.rolled_back_to)
        self._deltas.clear()
        self.record_growth(last_seq)

    def put(self, event: SessionEvent) -> None:
        """Buffer a delta. If the buffer is full, drop all deltas in it first."""
        if self.last is None:  # drop the delta, because the reader still reads earlier events from the log
            return
        if len(self._deltas) == MAX_DELTAS:
            self.lost += MAX_DELTAS
            self._deltas.clear()
        self._deltas.append((self.last, event))
        self._changes.notify()

    def end(self) -> None:
        """Record that the session has ended, and wake the reader."""
        self.is_over = True
        self._changes.notify()

    @property
    def delta_position(self) -> int:
        """The number of the event that the reader must have returned before the next delta."""
        return self._deltas[0][0] if self._deltas else self.last or 0

    def delta(self) -> SessionEvent | None:
        """Remove the oldest delta from the buffer and return it; None if the buffer is empty."""
        return self._deltas.popleft()[1] if self._deltas else None

    async def wait_for_events(self, seen_seq: int) -> None:
        """Wait until the reader has something to do: a delta, an event after number `seen_seq`, a loss of events or
        deltas, or the end of the session.
        """
        await self._changes.wait_until(
            lambda: (
                self._deltas
                or self.lost
                or self.is_over
                or self.rolled_back_to is not None
                or (self.last or 0) > seen_seq
            )
        )

    async def wait_for_rollback(self) -> None:
        """Wait until the journal actor reports that the storage lost events, or until the session ends."""
        await self._changes.wait_until(lambda: self.is_over or self.rolled_back_to is not None)


class Readers:
    """All readers of the sessions of one runtime.

    Attributes:
        subscribers: The subscribers by session id; sessions without readers have no entry.
        throttle: Delays the readers of long logs while writes are pending.
    """

    __slots__ = ("subscribers", "throttle")

    def __init__(self) -> None:
        self.subscribers: dict[str, list[ref[Subscriber]]] = {}
        self.throttle: ReadThrottle = ReadThrottle()

    def subscribers_of(self, session: str) -> list[Subscriber]:
        """Return a session's subscribers that have not been garbage-collected."""
        found = [reference() for reference in self.subscribers.get(session, ())]
        return [each for each in found if each is not None]

    def subscribe(self, session: str) -> Subscriber:
        """Subscribe to a session. The subscription ends when the returned object is garbage-collected."""
        subscriber = Subscriber()

        def forget(reference: ref[Subscriber]) -> None:
            left = [each for each in self.subscribers.get(session, ()) if each is not reference]
            if left:
                self.subscribers[session] = left
            else:
                self.subscribers.pop(session, None)

        self.subscribers.setdefault(session, []).append(ref(subscriber, forget))
        return subscriber

    def notify_growth(self, session: str, last_seq: int) -> None:
        """Notify the readers of a session that `last_seq` is the new number of its last event."""
        for subscriber in self.subscribers_of(session):
            subscriber.record_growth(last_seq)

    def roll_back(self, session: str, last_seq: int) -> None:
        """Notify the readers of a session that the storage lost all events after number `last_seq`."""
        for subscriber in self.subscribers_of(session):
            subscriber.roll_back(last_seq)

    def end(self, session: str) -> None:
        """Notify the readers of a session that it has ended."""
        for subscriber in self.subscribers_of(session):
            subscriber.end()

    def shared_sink(self, session: str, sink: Sink) -> Sink:
        """Return a sink that passes all events to `sink`, and passes deltas to the session's readers as well."""
        return SharedSink(sink, self, session)


class SharedSink:
    """Passes all events to the sink of an ask, and passes deltas to the session's readers as well.

    The session's readers read all other events from the log.
    """

    __slots__ = ("_own", "_readers", "_session")

    def __init__(self, ask_sink: Sink, readers: Readers, session: str) -> None:
        self._own, self._readers, self._session = ask_sink, readers, session

    @property
    def is_watched(self) -> bool:
        return self._own.is_watched or self._session in self._readers.subscribers

    def put(self, event: SessionEvent) -> None:
        if self._session in self._readers.subscribers and not isinstance(event, DurableEvent):
            for subscriber in self._readers.subscribers_of(self._session):
                subscriber.put(event)
        self._own.put(event)

    def close(self, error: Exception | None = None) -> None:
        self._own.close(error)
