"""Rebuild the state and the lanes of a session from its log. The rebuilt lanes equal the original ones byte by byte.

`actors.journal.log` rebuilds sessions page by page; hosts and tests rebuild logs that are in memory.
"""

from collections.abc import Iterable

from actors.core.log.call_events import CallEvent, CallEventBase
from actors.core.log.events import LogEvent, RequestSent
from actors.core.session.lanes import Lanes, Rules
from actors.core.session.state import UNREAD, SessionState


class LogFold:
    """The state and the lanes of a session, computed from its log part by part.

    Call events are applied to the ledger in groups, before each request, because only requests read the ledger.
    """

    def __init__(self, rules: Rules) -> None:
        self._state, self._lanes = UNREAD, Lanes(rules)
        self._happened: list[CallEvent] = []

    def add(self, log: Iterable[LogEvent]) -> None:
        """Apply the next events of the log."""
        state, lanes, happened = self._state, self._lanes, self._happened
        for event in log:
            if isinstance(event, CallEventBase):
                happened.append(event)
                continue
            if isinstance(event, RequestSent):
                state = state.with_call_events(happened)
                happened = []
            before, state = state, state.apply(event)
            lanes.apply(event, before, state)
        self._state, self._happened = state, happened

    def result(self) -> tuple[SessionState, Lanes]:
        """Return the state and the lanes after the events added so far."""
        return self._state.with_call_events(self._happened), self._lanes


def rebuild(log: Iterable[LogEvent], rules: Rules) -> tuple[SessionState, Lanes]:
    """Return the state and the lanes of a session, given its complete log."""
    folding = LogFold(rules)
    folding.add(log)
    return folding.result()
