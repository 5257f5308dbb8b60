"""Up to which event the journal has acknowledged each log that is open here.

A storage may lose what it acknowledged: a server that lagged takes over, or a copy is restored. Every append says which
number the last event has that was acknowledged, so a storage that has less refuses it, and does not number on from
there. What is lost is named in the log before anything else is written there.
"""

from collections.abc import Iterable, Iterator

from actors import telemetry
from actors.core.log.events import EventsLost
from actors.errors import JournalBehind
from actors.journal.storage import Claim, Entry


class LogEnds:
    """The numbers of the last events of the logs that this host has claimed. They live as long as its claims."""

    __slots__ = ("_ends", "_fences", "_lost")

    def __init__(self) -> None:
        self._ends: dict[str, int] = {}
        self._fences: dict[str, int] = {}
        self._lost: dict[str, Entry] = {}  # what names a loss, until it is written

    def expected(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Yield entries that are written in this order, each with the number that the log must have before it."""
        ends = dict[tuple[str, int], int]()
        for entry in entries:
            after = ends.get(entry.writer, self._ends.get(entry.session))
            if after is not None:
                ends[entry.writer] = after + len(entry.events)
            yield Entry(entry.session, entry.fence, entry.events, after)

    def claimed(self, session: str, claim: Claim) -> None:
        """Note that this host has a session now."""
        self._lost.pop(session, None)
        if claim.taken_from:
            telemetry.session_taken_over(session, claim.taken_from)
        if claim.fence:
            self._ends[session], self._fences[session] = claim.last, claim.fence

    def wrote(self, session: str, last: int) -> None:
        """Note that events were acknowledged, the last of them with this number."""
        self._ends[session] = last

    def forget(self, *sessions: str) -> None:
        """Note that this host does not write these sessions any more."""
        for session in sessions:
            self._ends.pop(session, None)
            self._fences.pop(session, None)
            self._lost.pop(session, None)

    def fence(self, session: str) -> int:
        """Return the number with which this host has claimed a session, 0 if it has not."""
        return self._fences.get(session, 0)

    def lose(self, error: JournalBehind, fence: int) -> None:
        """Note which events are lost; once, however many appends are refused for it."""
        session, first, last = error.session, error.first, error.last
        if self._ends.get(session, first) < first:
            return
        if (before := self._lost.get(session)) is not None:  # it went back once more
            last = max(last, *(event.last for event in before.events if isinstance(event, EventsLost)))
        self._ends[session] = first - 1
        self._lost[session] = Entry(session, fence, (EventsLost(first, last),), first - 1)
        telemetry.events_lost(session, first, last)

    def acknowledged(self, session: str, last: int) -> int:
        """Return how many of a log's `last` events readers are shown: those acknowledged, if it is written here."""
        return self._ends.get(session, last)

    def missing(self, session: str, last: int) -> JournalBehind | None:
        """Return what is lost of a log that has so many events now, if anything is."""
        known = self._ends.get(session, 0)
        return Entry(session, 0, ()).behind(last, known) if last < known else None

    def lost(self, session: str) -> Entry | None:
        """Return what names a loss in a session's log, if that is to be written."""
        return self._lost.get(session)

    def named(self, entry: Entry) -> None:
        """Note that a loss is named in its log."""
        del self._lost[entry.session]
        self._ends[entry.session] = (entry.after or 0) + 1
