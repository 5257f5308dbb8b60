"""Define the interface of the receivers of an ask's stream events."""

from typing import Protocol

from actors.core.stream_events.events import SessionEvent


class Sink(Protocol):
    """The receiver of an ask's events. `put` never waits and never raises."""

    @property
    def is_watched(self) -> bool:
        """True if the sink needs all events; otherwise the terminal event is enough."""
        ...

    def put(self, event: SessionEvent) -> None:
        """Accept an event; a terminal event ends the stream."""

    def close(self, error: Exception | None = None) -> None:
        """End the stream early, because of `error` if the session has not simply ended."""
