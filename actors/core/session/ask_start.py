"""Where an ask begins in a log: from there a reader can fold it who has seen what came before.

In:  the events before a place in a log, piece by piece, from the place backwards.
Out: the number of the event before the ask that is under way at that place, and the turn that was the last by then.

What readers are shown (`Publisher`) depends on nothing before that but the number of the turn. So it costs as much to
read on at the end of a long log as at its beginning.
"""

from collections.abc import Sequence

from actors.core.log.events import AskStarted, LogEvent, TurnEnded, TurnStarted
from actors.core.session.publishing import Publisher


class AskStart:
    """Looks for it. `is_found`: nothing before what was looked at matters."""

    def __init__(self) -> None:
        self._seq = self._turn = 0
        self._has_ask = self.is_found = False

    def look(self, after: int, events: Sequence[LogEvent]) -> None:
        """Look at the events past number `after`, which end where those begin that were looked at before."""
        for seq, event in zip(range(after + len(events), after, -1), reversed(events), strict=True):
            if not self._has_ask:
                self._has_ask, self._seq = isinstance(event, AskStarted), seq - 1
            elif isinstance(event, TurnStarted | TurnEnded):
                self._turn, self.is_found = event.turn, True
                return

    def publisher(self) -> Publisher:
        """Return what folds the log from there on, or from its first event if no ask was found."""
        return Publisher(self._seq, self._turn) if self._has_ask else Publisher()
