"""Readers of sessions: who reads a session's events along, from any place in its log.

What is durable is read from the log: a reader that comes late, or reads slowly, sees what all others see. Deltas are
handed to it while it keeps up, in their order among the durable events: each is kept with the number that the log had
reached when it came. A reader holds `BUFFER` of them; then they are dropped, and it is told.

Nothing here is done for a session that nobody reads. A reader that nobody holds any more is forgotten.
"""

from collections import deque
from weakref import ref

from actors.core.stream_events.events import DurableEvent, SessionEvent
from actors.core.stream_events.sink import Sink
from actors.journal.read_throttle import ReadThrottle
from actors.kernel.parking import Changes, parking

BUFFER = 1024
"""Deltas that are kept for a reader."""


class Following:
    """What is new for one reader: how far the log has come, and the deltas that wait."""

    __slots__ = ("__weakref__", "_changes", "_deltas", "cut_to", "is_over", "last", "lost")

    def __init__(self) -> None:
        self._changes = Changes(parking())
        self._deltas: deque[tuple[int, SessionEvent]] = deque()
        self.last: int | None = None
        self.lost = 0
        self.cut_to: int | None = None
        self.is_over = False

    def begin(self, last: int) -> None:
        """Take deltas from now on; the log has `last` events."""
        self.last = max(last, self.last or 0)

    def grew(self, last: int) -> None:
        """Note that the log has `last` events now."""
        self.last = last
        self._changes.tell()

    def cut(self, last: int) -> None:
        """Note that the log has gone back to event `last`: what is behind it was lost, and other events follow."""
        self.cut_to = last if self.cut_to is None else min(last, self.cut_to)
        self._deltas.clear()
        self.grew(last)

    def put(self, event: SessionEvent) -> None:
        """Keep a delta; when there is no room, drop those that wait."""
        if self.last is None:  # it reads what was before
            return
        if len(self._deltas) == BUFFER:
            self.lost += BUFFER
            self._deltas.clear()
        self._deltas.append((self.last, event))
        self._changes.tell()

    def end(self) -> None:
        """Note that there will be no more."""
        self.is_over = True
        self._changes.tell()

    @property
    def place(self) -> int:
        """Up to which number of the log the reader may go before it takes the next delta."""
        return self._deltas[0][0] if self._deltas else self.last or 0

    def delta(self) -> SessionEvent | None:
        """Take the next delta, if one waits."""
        return self._deltas.popleft()[1] if self._deltas else None

    async def more(self, seen: int) -> None:
        """Wait until there is something behind number `seen`, or the end."""
        await self._changes.until(
            lambda: (
                self._deltas
                or self.lost
                or self.is_over
                or self.cut_to is not None
                or (self.last or 0) > seen
            )
        )

    async def cut_or_ended(self) -> None:
        """Wait until the log's writer finds that the log went back, or the session has ended."""
        await self._changes.until(lambda: self.is_over or self.cut_to is not None)


class Readers:
    """All readers of a runtime's sessions.

    Attributes:
        following: The readers by session; a session without readers has no entry.
        throttle: Makes the readers of long logs wait for pending writes.
    """

    __slots__ = ("following", "throttle")

    def __init__(self) -> None:
        self.following: dict[str, list[ref[Following]]] = {}
        self.throttle = ReadThrottle()

    def of(self, session: str) -> list[Following]:
        """Return those who read a session now."""
        found = [reference() for reference in self.following.get(session, ())]
        return [each for each in found if each is not None]

    def follow(self, session: str) -> Following:
        """Return a new reader's view. It lasts until nobody holds it."""
        following = Following()

        def forget(gone: ref[Following]) -> None:
            left = [each for each in self.following.get(session, ()) if each is not gone]
            if left:
                self.following[session] = left
            else:
                self.following.pop(session, None)

        self.following.setdefault(session, []).append(ref(following, forget))
        return following

    def grew(self, session: str, last: int) -> None:
        """Tell a session's readers how many events its log has now."""
        for following in self.of(session):
            following.grew(last)

    def cut(self, session: str, last: int) -> None:
        """Tell a session's readers that its log has gone back to event `last`."""
        for following in self.of(session):
            following.cut(last)

    def end(self, session: str) -> None:
        """Tell a session's readers that it has ended."""
        for following in self.of(session):
            following.end()

    def joined(self, session: str, sink: Sink) -> Sink:
        """Return where an ask's events go: to its own reader, and its deltas to all who read the session too."""
        return SharedSink(sink, self, session)


class SharedSink:
    """An ask's sink, and the readers of its session beside it. They take deltas only: the rest is in the log."""

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
