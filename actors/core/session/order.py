"""Check that an event may follow the preceding events in a log.

Imports (`actors.core.session.export_file`) use this module. A log that this process wrote needs no check.

In:  the state that results from the preceding events, and the next event.
Out: an explanation of why the event is out of order, or None.
"""

from actors.core.history.turn_ends import end_of
from actors.core.log import events
from actors.core.log.call_events import CallEventBase
from actors.core.log.events import LogEvent
from actors.core.session.state import SessionState
from actors.core.values.identity import CallId


def order_violation(state: SessionState, event: LogEvent) -> str | None:
    """Return the reason why `event` cannot follow the log that led to `state`. `None` means that it can."""
    if state.closed:
        return "the log continues after 'closed', which must be its last event"
    if bool(state.session) is isinstance(event, events.Opened):
        return "'opened' must be the first event of the log and occur only once"
    match event:
        case events.AskStarted(ask=ask) if ask != state.asks + 1:
            return f"ask {ask} begins, but the next ask must have the number {state.asks + 1}"
        case events.TurnStarted(turn=turn) if state.bound is not None or turn != state.turns + 1:
            return f"turn {turn} begins after turn {state.turns}{'' if state.bound is None else ', which is open'}"
        case events.RequestSent(turn=turn) | events.RoundEnded(turn=turn) | events.TurnPaused(turn=turn):
            return _turn_violation(state, turn)
        case events.TurnResumed(turn=turn) if state.pause is None:
            return f"turn {turn} resumes, but no turn is paused"
        case events.TurnEnded(turn=turn):
            return _turn_violation(state, turn)
        case events.Compacted(start=start, stop=stop) if not 0 <= start < stop <= state.history.length:
            return f"a summary replaces messages {start} to {stop}, but the history has {state.history.length} messages"
        case events.Rewound(turn=turn):
            return _rewind_violation(state, turn)
        case CallEventBase(call_id=call_id) if not _is_known(state, call_id):
            return f"no model message contains the call {call_id!r}"
        case _:
            return None


def _turn_violation(state: SessionState, turn: int) -> str | None:
    if state.bound is None or turn != state.turns:
        current = "no turn" if state.bound is None else f"turn {state.turns}"
        return f"an event belongs to turn {turn}, but {current} is open"
    return None


def _rewind_violation(state: SessionState, turn: int) -> str | None:
    if state.bound is not None:
        return f"the history was rewound while turn {state.turns} was open"
    if end_of(state.ends, turn) is None:
        return f"the history was rewound to the end of turn {turn}, but it does not contain that turn"
    return None


def _is_known(state: SessionState, call_id: CallId) -> bool:
    last = state.history[-1].calls if state.history.length else ()
    return call_id in state.ledger or any(call.id == call_id for call in last)
