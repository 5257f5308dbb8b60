"""Notify the readers of sessions of new events, and buffer stream deltas for them.

Used by `SessionEvents`, which reads one session, and by the journal actor, which reports new events.

Durable events are read from the log, so a late or slow reader receives the same events as all others. Deltas are not
in the log. Each delta is buffered with the number that the log had reached, so the reader receives it in its place
among the durable events. When `BUFFER` deltas wait, all of them are dropped, and the reader is notified.

A session without readers costs nothing. Readers are held by weak references, so an abandoned reader is collected.
"""

from collections import deque
from weakref import ref

from actors.core.stream_events.events import DurableEvent, SessionEvent
from actors.core.stream_events.sink import Sink
from actors.journal.read_throttle import ReadThrottle
from actors.kernel.event_loop import Changes, event_loop

BUFFER = 1024
"""Deltas that are buffered per reader."""


class Subscriber:
    """The news for one reader: the end of the log, and the buffered deltas.

    Attributes:
        last: The number of the last event of the log; None until the reader has caught up with the log once.
        lost: Dropped deltas that the reader has not been notified of.
        cut_to: The number of the event to which the log went back; None if that did not happen.
        is_over: Whether the session has ended.
    """

    __slots__ = ("__weakref__", "_changes", "_deltas", "cut_to", "is_over", "last", "lost")

    def __init__(self) -> None:
        self._changes = Changes(event_loop())
        self._deltas: deque[tuple[int, SessionEvent]] = deque()
        self.last: int | None = None
        self.lost: int = 0
        self.cut_to: int | None = None
        self.is_over: bool = False

    def begin(self, last: int) -> None:
        """Buffer deltas from now on; the log has `last` events."""
        self.last = max(last, self.last or 0)

    def record_growth(self, last: int) -> None:
        """Record that the log has `last` events now."""
        self.last = last
        self._changes.notify()

    def roll_back(self, last: int) -> None:
        """Record that the log went back to event `last`: later events were lost, and other events follow."""
        self.cut_to = last if self.cut_to is None else min(last, self.cut_to)
        self._deltas.clear()
        self.record_growth(last)

    def put(self, event: SessionEvent) -> None:
        """Buffer a delta. If the buffer is full, drop its deltas first."""
        if self.last is None:  # the reader still reads older events
            return
        if len(self._deltas) == BUFFER:
            self.lost += BUFFER
            self._deltas.clear()
        self._deltas.append((self.last, event))
        self._changes.notify()

    def end(self) -> None:
        """Record that the session has ended."""
        self.is_over = True
        self._changes.notify()

    @property
    def place(self) -> int:
        """The number up to which the log is read before the next delta is returned."""
        return self._deltas[0][0] if self._deltas else self.last or 0

    def delta(self) -> SessionEvent | None:
        """Remove and return the next delta; None if the buffer is empty."""
        return self._deltas.popleft()[1] if self._deltas else None

    async def wait_for_news(self, seen: int) -> None:
        """Wait until there is news after event `seen`, or the session has ended."""
        await self._changes.wait_until(
            lambda: (
                self._deltas
                or self.lost
                or self.is_over
                or self.cut_to is not None
                or (self.last or 0) > seen
            )
        )

    async def cut_or_ended(self) -> None:
        """Wait until the writer of the log reports that the log went back, or the session has ended."""
        await self._changes.wait_until(lambda: self.is_over or self.cut_to is not None)


class Readers:
    """All readers of a runtime's sessions.

    Attributes:
        following: The readers by session; a session without readers has no entry.
        throttle: Makes the readers of long logs wait for pending writes.
    """

    __slots__ = ("following", "throttle")

    def __init__(self) -> None:
        self.following: dict[str, list[ref[Subscriber]]] = {}
        self.throttle: ReadThrottle = ReadThrottle()

    def of(self, session: str) -> list[Subscriber]:
        """Return the current readers of a session."""
        found = [reference() for reference in self.following.get(session, ())]
        return [each for each in found if each is not None]

    def follow(self, session: str) -> Subscriber:
        """Add a reader of a session, until the returned object is collected."""
        following = Subscriber()

        def forget(gone: ref[Subscriber]) -> None:
            left = [each for each in self.following.get(session, ()) if each is not gone]
            if left:
                self.following[session] = left
            else:
                self.following.pop(session, None)

        self.following.setdefault(session, []).append(ref(following, forget))
        return following

    def notify_growth(self, session: str, last: int) -> None:
        """Notify the readers of a session that its log has `last` events now."""
        for following in self.of(session):
            following.record_growth(last)

    def roll_back(self, session: str, last: int) -> None:
        """Notify the readers of a session that its log went back to event `last`."""
        for following in self.of(session):
            following.roll_back(last)

    def end(self, session: str) -> None:
        """Notify the readers of a session that it has ended."""
        for following in self.of(session):
            following.end()

    def shared_sink(self, session: str, sink: Sink) -> Sink:
        """Return a sink that passes events to the sink of an ask, and deltas to the readers of its session too."""
        return SharedSink(sink, self, session)


class SharedSink:
    """The sink of an ask and the readers of its session, which receive deltas only: other events are in the log."""

    __slots__ = ("_own", "_readers", "_session")

    def __init__(self, own: Sink, readers: Readers, session: str) -> None:
        self._own, self._readers, self._session = own, readers, session

    @property
    def is_watched(self) -> bool:
        return self._own.is_watched or self._session in self._readers.following

    def put(self, event: SessionEvent) -> None:
        if self._session in self._readers.following and not isinstance(event, DurableEvent):
            for following in self._readers.of(self._session):
                following.put(event)
        self._own.put(event)

    def close(self, error: Exception | None = None) -> None:
        self._own.close(error)
