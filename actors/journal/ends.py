"""Track the last acknowledged event of each log that this host writes.

The journal actor uses it. A storage may lose acknowledged events: a replica that lagged takes over, or a backup is
restored. So every append states the number of the last acknowledged event, and a storage with fewer events rejects it
instead of reusing the numbers. The loss is recorded in the log before anything else is written there.
"""

from collections.abc import Iterable, Iterator

from actors.core.log.events import EventsLost
from actors.errors import JournalBehind
from actors.journal.storage import Claim, Entry
from actors.telemetry import logger


class LogEnds:
    """The last event numbers of the logs that this host has claimed. They live as long as its claims."""

    __slots__ = ("_ends", "_fences", "_lost")

    def __init__(self) -> None:
        self._ends: dict[str, int] = {}
        self._fences: dict[str, int] = {}
        self._lost: dict[str, Entry] = {}  # records of losses that are not yet written

    def with_predecessors(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Yield the entries, written in this order, each with the number of the event that must precede it."""
        ends = dict[tuple[str, int], int]()
        for entry in entries:
            after = ends.get(entry.writer, self._ends.get(entry.session))
            if after is not None:
                ends[entry.writer] = after + len(entry.events)
            yield Entry(entry.session, entry.fence, entry.events, after)

    def record_claim(self, session: str, claim: Claim) -> None:
        """Record that this host has claimed a session."""
        self._lost.pop(session, None)
        if claim.taken_from:
            logger.session_taken_over(session, claim.taken_from)
        if claim.fence:
            self._ends[session], self._fences[session] = claim.last, claim.fence

    def record_write(self, session: str, last: int) -> None:
        """Record that events up to number `last` were acknowledged."""
        self._ends[session] = last

    def forget(self, *sessions: str) -> None:
        """Record that this host no longer writes these sessions."""
        for session in sessions:
            self._ends.pop(session, None)
            self._fences.pop(session, None)
            self._lost.pop(session, None)

    def fence(self, session: str) -> int:
        """Return the fence of this host's claim of a session; 0 without a claim."""
        return self._fences.get(session, 0)

    def lose(self, error: JournalBehind, fence: int) -> None:
        """Record which events were lost; once, even if several appends are rejected for it."""
        session, first, last = error.session, error.first, error.last
        if self._ends.get(session, first) < first:
            return
        if (before := self._lost.get(session)) is not None:  # the storage went back again
            last = max(last, *(event.last for event in before.events if isinstance(event, EventsLost)))
        self._ends[session] = first - 1
        self._lost[session] = Entry(session, fence, (EventsLost(first, last),), first - 1)
        logger.events_lost(session, first, last)

    def acknowledged_end(self, session: str, last: int) -> int:
        """Return the number of a log's `last` events that are visible to readers: the acknowledged ones, if this host
        writes it."""
        return self._ends.get(session, last)

    def missing(self, session: str, last: int) -> JournalBehind | None:
        """Return the error for lost events if a log with `last` events lacks acknowledged ones; otherwise None."""
        known = self._ends.get(session, 0)
        return Entry(session, 0, ()).behind_error(last, known) if last < known else None

    def loss_entry(self, session: str) -> Entry | None:
        """Return the record of a loss that is not yet in a session's log."""
        return self._lost.get(session)

    def confirm_loss(self, entry: Entry) -> None:
        """Record that a loss was written to its log."""
        del self._lost[entry.session]
        self._ends[entry.session] = (entry.after or 0) + 1
