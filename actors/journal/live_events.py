"""Publish the durable events of the ask in flight to its reader.

Every append of a session's actors passes its events here when they are durable. They go through the same `Publisher`
that `session.events()` reads a log with, so both readers receive the same events.
"""

from collections.abc import Sequence

from actors.core.log.events import LogEvent
from actors.core.session.publishing import Publisher
from actors.core.stream_events.events import CompleteEvent, ErrorEvent
from actors.core.stream_events.sink import Sink


class LiveEvents:
    """The connection between a session's appends and the reader of its current ask, if there is one.

    A crash loses it together with the actors; the next generation starts a new one at the end of the log.
    """

    __slots__ = ("_publisher", "_sink", "is_idle")

    def __init__(self) -> None:
        self.is_idle: bool = True
        self._sink: Sink | None = None
        self._publisher = Publisher()

    @property
    def is_watched(self) -> bool:
        """True if a reader takes the events of the current ask."""
        return self._sink is not None

    def begin(self, sink: Sink, publisher: Publisher) -> None:
        """Publish the events that become durable from now on."""
        self._publisher = publisher
        self.redirect(sink)

    def redirect(self, sink: Sink) -> None:
        """Send the rest of the ask's events to another reader."""
        self.is_idle = False
        self._sink = sink if sink.is_watched else None

    def end(self) -> None:
        """Publish nothing until the next ask."""
        self.is_idle, self._sink = True, None

    def publish(self, events: Sequence[LogEvent], last: int) -> None:
        """Publish events that have become durable. `last` is the number of the last one.

        The terminal event is skipped: the session creates it, with the parts of the result that are not in the log.
        """
        if self._sink is None:
            return
        self._publisher.seq = last - len(events)
        for event in events:
            for published in self._publisher.publish(event):
                if not isinstance(published, CompleteEvent | ErrorEvent):
                    self._sink.put(published)
