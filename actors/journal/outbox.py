"""Hold back events of a session until the session's next append writes them.

Some events need not be durable at once. The user's message can wait until the request is sent, and the model's message
until its calls are scheduled. The session's next append, from any of its actors, includes the held events. So one
commit writes all of them, and the log keeps their order.
"""

from collections.abc import Callable

from actors.core.log.events import LogEvent
from actors.errors import JournalError
from actors.journal.commands import Append, OnDurable
from actors.journal.live_events import LiveEvents


class Outbox:
    """The events of a session that will be written with its next append.

    All actors of the session share one outbox. A crash discards the events, and the actors start again from the log.

    Args:
        session: The session's id.
        fence: The fencing number of the session's claim.
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
        """Hold an event until the next append; `on_durable` then receives the number of the event."""
        if on_durable is not None:
            self._callbacks.append((len(self._events), on_durable))
        self._events.append(event)

    def append(
        self,
        *events: LogEvent,
        on_durable: OnDurable | None = None,
        on_failure: Callable[[JournalError], None] | None = None,
    ) -> Append:
        """Return the command that writes the held events followed by `events`, and empty the outbox.

        `on_durable` receives the number of the last event.
        """
        held, callbacks = self._events, self._callbacks
        self._events, self._callbacks = [], []
        if on_durable is not None:
            callbacks.append((len(held) + len(events) - 1, on_durable))
        written = (*held, *events)
        return Append(self._session, self._fence, written, tuple(callbacks), on_failure, self._live)
