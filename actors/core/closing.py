"""Closing: what a log that breaks off leaves to be done.

In:  the events of a log, and what they fold to.
Out: whether it breaks off; the calls that had begun and may be run again, with the arguments they began with.

A call that had begun may have had its effect. It is run again only if it said, when it began, that this does no harm;
and no more than `STARTS` times in all, for a call may be what ends its process each time.
"""

from collections import Counter
from collections.abc import Sequence

from actors.core.awaiting import edited, pending
from actors.core.content import ToolCall
from actors.core.events import ApprovalDecided, Event, Started
from actors.core.identity import CallId
from actors.core.state import SessionState

STARTS = 3
"""How often a call begins at most."""


def breaks_off(state: SessionState) -> bool:
    """Say whether only a crash leaves a log so: a turn neither ends nor waits, or a switch was left held."""
    if state.pause is not None:
        return not pending(state, state.ledger)
    return state.bound is not None or state.held is not None


def repeatable(state: SessionState, events: Sequence[Event]) -> tuple[ToolCall, ...]:
    """Return the calls that had begun, have no end and may be run again, in call order."""
    if state.bound is None or state.pause is not None or not state.history.length:
        return ()
    begun = Counter([event.call_id for event in events if isinstance(event, Started)])
    decided = {event.call_id: event for event in events if isinstance(event, ApprovalDecided)}
    return tuple(
        [
            edited(call, decided[call.id]) if call.id in decided else call
            for call in state.history[-1].calls
            if 0 < begun[call.id] < STARTS and _may_run_again(state, call.id)
        ]
    )


def _may_run_again(state: SessionState, call_id: CallId) -> bool:
    known = state.ledger.get(call_id)
    return known is not None and known.status == "pending" and known.effects != "once"
