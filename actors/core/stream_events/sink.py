"""Define the interface through which a session's actors publish the stream events of an ask."""

from typing import Protocol

from actors.core.stream_events.events import SessionEvent


class Sink(Protocol):
    """A receiver of an ask's events. `put` never waits and never raises."""

    @property
    def is_watched(self) -> bool:
        """True if the sink needs all events; False if the terminal event is enough."""
        ...

    def put(self, event: SessionEvent) -> None:
        """Accept an event. A terminal event ends the stream."""

    def close(self, error: Exception | None = None) -> None:
        """End the stream without a terminal event. `error` is the reason; None if the session was closed normally."""
