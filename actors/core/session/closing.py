"""Closing: what a log that breaks off leaves to be done.

In:  the events of a log, and what they fold to.
Out: whether it breaks off; the calls that had begun and may be run again, with the arguments they began with.

A call that had begun may have had its effect. It is run again only if it said, when it began, that this does no harm;
and no more than `STARTS` times in all, for a call may be what ends its process each time.
"""

from collections import Counter
from collections.abc import Sequence

from actors.core.data.record import replace
from actors.core.log.events import (
    ApprovalDecided,
    Cancelled,
    Closed,
    LogEvent,
    Opened,
    RequestSent,
    Started,
    TurnEnded,
    TurnStarted,
)
from actors.core.session.awaiting import edited, pending
from actors.core.session.state import SessionState
from actors.core.values.content import ToolCall
from actors.core.values.identity import CallId

FORKED = "the session was forked during the ask"

STARTS = 3
"""How often a call begins at most."""


def breaks_off(state: SessionState) -> bool:
    """Say whether only a crash leaves a log so: a turn neither ends nor waits, or a switch was left held."""
    if state.pause is not None:
        return not pending(state, state.ledger)
    return state.bound is not None or state.held is not None


def repeatable(state: SessionState, events: Sequence[LogEvent]) -> tuple[ToolCall, ...]:
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


def last_round(events: Sequence[LogEvent]) -> int:
    """Return the round of the last request in a log; 0 if the last turn has sent none."""
    for event in reversed(events):
        if isinstance(event, RequestSent):
            return event.round
        if isinstance(event, TurnStarted):
            break
    return 0


def forked(events: Sequence[LogEvent], session: str, key: str) -> tuple[LogEvent, ...]:
    """Return a log that goes on from these events of another, as a session of its own.

    What ran when they end is not known to it, so its turn is closed, and nothing of it is run again or decided anew.
    One that waits for somebody goes on waiting.
    """
    first, *rest = events
    assert isinstance(first, Opened)
    log = (
        replace(first, session=session, key=key, above=""),
        *(each for each in rest if type(each) is not Closed),
    )
    state = SessionState()
    for event in log:
        state = state.apply(event)
    if state.bound is None or (state.pause is not None and pending(state, state.ledger)):
        return log
    return (*log, *_ends(state), TurnEnded(state.turns, "interrupted", FORKED))


def _ends(state: SessionState) -> list[Cancelled]:
    """Return how the calls end that are open, in a log where nobody knows more of them."""
    calls = state.history[-1].calls if state.history.length else ()
    ends = [Cancelled(call.id, "never_started") for call in calls if call.id not in state.ledger]
    for known in state.ledger.interactions():
        if known.status == "pending":
            ends.append(Cancelled(known.call_id, "outcome_unknown" if known.started else "never_started"))
    return ends


def _may_run_again(state: SessionState, call_id: CallId) -> bool:
    known = state.ledger.get(call_id)
    return known is not None and known.status == "pending" and known.effects != "once"
