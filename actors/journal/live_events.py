"""Publish durable events to the reader of the current ask.

Once an append is durable, its events are passed to the session's `LiveEvents`. They are converted by the same
`Publisher` class that `session.events()` uses, so readers of the ask and readers of `session.events()` receive equal
events.
"""

from collections.abc import Sequence

from actors.core.log.events import LogEvent
from actors.core.session.publishing import Publisher
from actors.core.stream_events.ask_events import CompleteEvent, ErrorEvent
from actors.core.stream_events.sink import Sink


class LiveEvents:
    """Passes a session's durable events to the reader of the session's current ask.

    If the session's actors crash, this object is lost, and the next generation of actors creates a new one.
    """

    __slots__ = ("_publisher", "_sink", "is_idle")

    def __init__(self) -> None:
        self.is_idle: bool = True
        self._sink: Sink | None = None
        self._publisher = Publisher()

    @property
    def is_watched(self) -> bool:
        """True if the current ask has a reader that receives events."""
        return self._sink is not None

    def begin(self, sink: Sink, publisher: Publisher) -> None:
        """Start publishing an ask: events that become durable from now on go to `sink`."""
        self._publisher = publisher
        self.redirect(sink)

    def redirect(self, sink: Sink) -> None:
        """Send the remaining events of the ask to another reader."""
        self.is_idle = False
        self._sink = sink if sink.is_watched else None

    def end(self) -> None:
        """Stop publishing until the next ask begins."""
        self.is_idle, self._sink = True, None

    def publish(self, events: Sequence[LogEvent], last_seq: int) -> None:
        """Publish events that have become durable. `last_seq` is the number of the last event in the log.

        The ask's terminal event is skipped. The session publishes it instead, because the log lacks some of its data.
        """
        if self._sink is None:
            return
        self._publisher.seq = last_seq - len(events)
        for event in events:
            for published in self._publisher.publish(event):
                if not isinstance(published, CompleteEvent | ErrorEvent):
                    self._sink.put(published)
