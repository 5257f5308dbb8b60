"""Collect the events of a session that its next append writes.

The session holds back events that need not be durable at once, such as the user's message until the request is sent,
and the model's message until its calls are scheduled. Held events are written with the next append of the session,
whichever of its actors sends that, so one commit writes both and the log keeps their order.
"""

from collections.abc import Callable

from actors.core.log.events import LogEvent
from actors.errors import JournalError
from actors.journal.commands import Append, OnDurable
from actors.journal.live_events import LiveEvents


class Outbox:
    """Holds the events of a session until the next append.

    The session's actors share one outbox, which is lost if they crash.

    Args:
        session: The session's id.
        fence: The number with which the session was claimed.
        live: Publishes the events once they are durable.
    """

    __slots__ = ("_callbacks", "_events", "_fence", "_live", "_session")

    def __init__(self, session: str, fence: int, live: LiveEvents) -> None:
        self._session, self._fence, self._live = session, fence, live
        self._events: list[LogEvent] = []
        self._callbacks: list[tuple[int, OnDurable]] = []

    @property
    def is_empty(self) -> bool:
        """True if no event is held."""
        return not self._events

    def hold(self, event: LogEvent, on_durable: OnDurable | None = None) -> None:
        """Hold an event until the next append."""
        if on_durable is not None:
            self._callbacks.append((len(self._events), on_durable))
        self._events.append(event)

    def append(
        self,
        *events: LogEvent,
        on_durable: OnDurable | None = None,
        on_failure: Callable[[JournalError], None] | None = None,
    ) -> Append:
        """Return the message that writes the held events and then these; they are held no longer.

        `on_durable` is called with the number of the last event.
        """
        held, callbacks = self._events, self._callbacks
        self._events, self._callbacks = [], []
        if on_durable is not None:
            callbacks.append((len(held) + len(events) - 1, on_durable))
        written = (*held, *events)
        return Append(self._session, self._fence, written, tuple(callbacks), on_failure, self._live)
