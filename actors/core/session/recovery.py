"""Decide how to recover a session whose log ends inside a turn.

The runtime calls this module when it resumes or forks a session.

In:  the events of a log, and the state that results from them.
Out: whether the session needs recovery; the started calls that may run again, with the arguments of their first run.

A call that started may have taken effect. It runs again only if its `Started` event declares it repeatable, and at most
`STARTS` times, because the call itself may be the cause of the crash.
"""

from collections import Counter
from collections.abc import Sequence

from actors.core.data.record import replace
from actors.core.log.call_events import Cancelled, Started
from actors.core.log.events import (
    ApprovalDecided,
    Closed,
    LogEvent,
    Opened,
    RequestSent,
    TurnEnded,
    TurnStarted,
)
from actors.core.session.awaiting import pending_calls, with_edits
from actors.core.session.state import SessionState
from actors.core.values.content import ToolCall
from actors.core.values.identity import CallId

FORKED = "the session was forked during the ask"

STARTS = 3
"""Maximum number of times that a call may start, including its first run."""


def needs_recovery(state: SessionState) -> bool:
    """Return True if the log ends with work to finish: an open turn that waits for no caller, or a deferred switch."""
    if state.pause is not None:
        return not pending_calls(state, state.ledger)
    return state.bound is not None or state.held is not None


def repeatable_calls(state: SessionState, events: Sequence[LogEvent]) -> tuple[ToolCall, ...]:
    """Return the calls that started, have no completion and may run again, in call order."""
    if state.bound is None or state.pause is not None or not state.history.length:
        return ()
    begun = Counter([event.call_id for event in events if isinstance(event, Started)])
    decided = {event.call_id: event for event in events if isinstance(event, ApprovalDecided)}
    return tuple(
        [
            with_edits(call, decided[call.id]) if call.id in decided else call
            for call in state.history[-1].calls
            if 0 < begun[call.id] < STARTS and _may_run_again(state, call.id)
        ]
    )


def last_round(events: Sequence[LogEvent]) -> int:
    """Return the number of the last round in which the last turn sent a request; 0 if the turn has sent none."""
    for event in reversed(events):
        if isinstance(event, RequestSent):
            return event.round
        if isinstance(event, TurnStarted):
            break
    return 0


def fork_log(events: Sequence[LogEvent], session: str, key: str) -> tuple[LogEvent, ...]:
    """Return the log of a new session that continues from these events of another session.

    The new session cannot receive results of calls in flight, so an open turn ends as interrupted and none of its calls
    runs again. A turn that waits for pending calls stays paused.
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
    if state.bound is None or (state.pause is not None and pending_calls(state, state.ledger)):
        return log
    return (*log, *_closing_events(state), TurnEnded(state.turns, "interrupted", FORKED))


def _closing_events(state: SessionState) -> list[Cancelled]:
    """Return the events that close every open call of a forked log."""
    calls = state.history[-1].calls if state.history.length else ()
    ends = [Cancelled(call.id, "never_started") for call in calls if call.id not in state.ledger]
    for known in state.ledger.interactions():
        if known.status == "pending":
            ends.append(Cancelled(known.call_id, "outcome_unknown" if known.started else "never_started"))
    return ends


def _may_run_again(state: SessionState, call_id: CallId) -> bool:
    known = state.ledger.get(call_id)
    return known is not None and known.status == "pending" and known.effects != "once"
