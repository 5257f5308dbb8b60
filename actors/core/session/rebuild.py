"""Rebuild a session from its log: the state and the lanes, byte for byte."""

from collections.abc import Iterable

from actors.core.log import events
from actors.core.log.events import LogEvent, RequestSent
from actors.core.session.lanes import Lanes, Rules
from actors.core.session.state import UNREAD, SessionState


class Folding:
    """A log that is folded piece by piece: what it says so far of the session that wrote it.

    What happened to calls is told to the ledger at once, ahead of the next request: nothing else asks it.
    """

    def __init__(self, rules: Rules) -> None:
        self._state, self._lanes = UNREAD, Lanes(rules)
        self._happened: list[events.CallEvent] = []

    def take(self, log: Iterable[LogEvent]) -> None:
        """Take what the log says next."""
        state, lanes, happened = self._state, self._lanes, self._happened
        for event in log:
            if isinstance(event, events.CallEventBase):
                happened.append(event)
                continue
            if isinstance(event, RequestSent):
                state = state.told(happened)
                happened = []
            before, state = state, state.apply(event)
            lanes.apply(event, before, state)
        self._state, self._happened = state, happened

    def end(self) -> tuple[SessionState, Lanes]:
        """Return the session: its state and its lanes, byte for byte."""
        return self._state.told(self._happened), self._lanes


def rebuilt(log: Iterable[LogEvent], rules: Rules) -> tuple[SessionState, Lanes]:
    """Return the session that wrote `log`: its state and its lanes, byte for byte."""
    folding = Folding(rules)
    folding.take(log)
    return folding.end()
