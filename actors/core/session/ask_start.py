"""Find the start of the ask that is in flight at a position in a log.

`actors.journal.session_events` uses this module to continue reading from a sequence number.

In:  the events before the position, page by page, backwards.
Out: a `Publisher`, which converts log events to stream events. It begins at the first event of that ask, and knows the
     number of the preceding turn.

A `Publisher` needs no older events. Continuing near the end of a long log therefore costs no more than near its start.
"""

from collections.abc import Sequence

from actors.core.log.events import AskStarted, LogEvent, TurnEnded, TurnStarted
from actors.core.session.publishing import Publisher


class AskStart:
    """A backward search through a log for the start of an ask. `is_found` becomes True when the search is complete."""

    is_found: bool

    def __init__(self) -> None:
        self._seq = self._turn = 0
        self._has_ask = self.is_found = False

    def search(self, after: int, events: Sequence[LogEvent]) -> None:
        """Search one page of the log. Its first event has the number `after` + 1.

        Pass the last page first, then the page before it, and so on.
        """
        for seq, event in zip(range(after + len(events), after, -1), reversed(events), strict=True):
            if not self._has_ask:
                self._has_ask, self._seq = isinstance(event, AskStarted), seq - 1
            elif isinstance(event, TurnStarted | TurnEnded):
                self._turn, self.is_found = event.turn, True
                return

    def publisher(self) -> Publisher:
        """Return a publisher that begins at the ask found. If no ask was found, it begins at the start of the log."""
        return Publisher(self._seq, self._turn) if self._has_ask else Publisher()
