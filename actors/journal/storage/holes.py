"""Find lost events in a log whose remaining records are all intact.

If a storage lost acknowledged events and new events were then appended, the event numbers have no gap. The loss is
still visible in the events: an `EventsLost` event records it, or a turn number does not follow the previous turn
number.
"""

from collections.abc import Iterator, Sequence

from actors.core.log.events import EventsLost, LogEvent, TurnStarted
from actors.journal.storage.damage import Damage


def find_losses(session: str, log: Sequence[LogEvent], where: str) -> Iterator[Damage]:
    """Yield the losses in a session's log, in order. `where` is the storage's name, for the descriptions."""
    turn: int | None = None
    for number, event in enumerate(log, 1):
        if isinstance(event, EventsLost):
            lost = f"events {event.first} to {event.last} were acknowledged and are lost"
            yield Damage(f"{where}: session {session!r}, record {number}: {lost}", session, number)
        elif isinstance(event, TurnStarted):
            if turn is not None and event.turn not in (turn, turn + 1):
                missing = f"turn {event.turn} follows turn {turn}; the events between these turns are lost"
                yield Damage(f"{where}: session {session!r}, record {number}: {missing}", session, number)
            turn = event.turn
