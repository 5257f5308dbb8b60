"""Find losses in a log whose records are all intact.

If a storage lost acknowledged events and was written again, its log has no gap in its numbers. The events reveal the
loss: an event records it, or a turn does not follow its predecessor.
"""

from collections.abc import Iterator, Sequence

from actors.core.log.events import EventsLost, LogEvent, TurnStarted
from actors.journal.storage.damage import Damage


def find_losses(session: str, log: Sequence[LogEvent], where: str) -> Iterator[Damage]:
    """Yield the losses of a session's log, in order."""
    turn: int | None = None
    for number, event in enumerate(log, 1):
        if isinstance(event, EventsLost):
            lost = f"events {event.first} to {event.last} were acknowledged and are lost"
            yield Damage(f"{where}: session {session!r}, record {number}: {lost}", session, number)
        elif isinstance(event, TurnStarted):
            if turn is not None and event.turn not in (turn, turn + 1):
                missing = f"turn {event.turn} follows turn {turn}: what was between them is lost"
                yield Damage(f"{where}: session {session!r}, record {number}: {missing}", session, number)
            turn = event.turn
