"""Track the last acknowledged event of each log that this host writes.

The journal actor uses this module. A storage may lose acknowledged events: a database fails over to a replica that
lagged, or a backup is restored. So every append states the number of the last acknowledged event. A storage that lacks
this event rejects the append instead of reusing the lost numbers. The loss is then recorded in the log before any new
event.
"""

from collections.abc import Iterable, Iterator

from actors.core.log.events import EventsLost
from actors.errors import JournalBehind
from actors.journal.storage import Claim, Entry
from actors.telemetry import logger


class LogEnds:
    """The number of the last acknowledged event in each log that this host has claimed."""

    __slots__ = ("_ends", "_fences", "_lost")

    def __init__(self) -> None:
        self._ends: dict[str, int] = {}
        self._fences: dict[str, int] = {}
        self._lost: dict[str, Entry] = {}  # `EventsLost` records that are not written yet, by session

    def add_predecessors(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Yield copies of the entries in which `Entry.after` is the number of the last acknowledged event of the log.

        If `entries` contains several entries of one session, each continues after the previous one.
        """
        ends = dict[tuple[str, int], int]()
        for entry in entries:
            after = ends.get(entry.writer, self._ends.get(entry.session))
            if after is not None:
                ends[entry.writer] = after + len(entry.events)
            yield Entry(entry.session, entry.fence, entry.events, after)

    def record_claim(self, session: str, claim: Claim) -> None:
        """Store a new claim's fencing number and last event number, and report a takeover from another host."""
        self._lost.pop(session, None)
        if claim.taken_from:
            logger.session_taken_over(session, claim.taken_from)
        if claim.fence:
            self._ends[session], self._fences[session] = claim.last, claim.fence

    def record_write(self, session: str, last_seq: int) -> None:
        """Record that the storage has acknowledged a session's events up to number `last_seq`."""
        self._ends[session] = last_seq

    def forget(self, *sessions: str) -> None:
        """Stop tracking sessions that this host no longer writes."""
        for session in sessions:
            self._ends.pop(session, None)
            self._fences.pop(session, None)
            self._lost.pop(session, None)

    def fence(self, session: str) -> int:
        """Return the fencing number of this host's claim of a session, or 0 if this host has no claim."""
        return self._fences.get(session, 0)

    def record_loss(self, error: JournalBehind, fence: int) -> None:
        """Prepare the `EventsLost` entry that must be written after events were lost; see `pending_loss`.

        If several appends fail because of the same loss, only the first call has an effect.

        Args:
            error: Names the session and the lost events.
            fence: The fencing number of the entry.
        """
        session, first, last = error.session, error.first, error.last
        if self._ends.get(session, first) < first:
            return
        if (before := self._lost.get(session)) is not None:  # the previous loss is not recorded yet
            last = max(last, *(event.last for event in before.events if isinstance(event, EventsLost)))
        self._ends[session] = first - 1
        self._lost[session] = Entry(session, fence, (EventsLost(first, last),), first - 1)
        logger.events_lost(session, first, last)

    def visible_end(self, session: str, last_seq: int) -> int:
        """Return the number of the last log event that readers may see.

        If this host writes the log, readers may see acknowledged events only. Otherwise they may see all events up to
        `last_seq`.
        """
        return self._ends.get(session, last_seq)

    def missing_events_error(self, session: str, last_seq: int) -> JournalBehind | None:
        """Return an error if acknowledged events of a session follow event `last_seq`; otherwise return None.

        `last_seq` is the number of the last event that the storage has.
        """
        known = self._ends.get(session, 0)
        return Entry(session, 0, ()).behind_error(last_seq, known) if last_seq < known else None

    def pending_loss(self, session: str) -> Entry | None:
        """Return the `EventsLost` entry that must be written to a session's log next, or None if no loss is pending."""
        return self._lost.get(session)

    def confirm_loss(self, entry: Entry) -> None:
        """Record that the `EventsLost` entry was written to the log."""
        del self._lost[entry.session]
        self._ends[entry.session] = (entry.after or 0) + 1
