"""Order: whether an event may stand where it stands in a log.

In:  what a log says so far, and the event behind it.
Out: why it cannot be there, in words for people; nothing if it can.

A log that this project wrote is in order. One that comes from elsewhere is read with this.
"""

from actors.core.history.turn_ends import end_of
from actors.core.log import events
from actors.core.log.events import LogEvent
from actors.core.session.state import SessionState
from actors.core.values.identity import CallId


def disorder(state: SessionState, event: LogEvent) -> str | None:
    """Return why an event cannot stand behind what a log says so far; None if it can."""
    if state.closed:
        return "nothing stands behind 'closed'"
    if bool(state.session) is isinstance(event, events.Opened):
        return "'opened' stands first, and nowhere else"
    match event:
        case events.AskStarted(ask=ask) if ask != state.asks + 1:
            return f"ask {ask} behind ask {state.asks}"
        case events.TurnStarted(turn=turn) if state.bound is not None or turn != state.turns + 1:
            return f"turn {turn} begins behind turn {state.turns}{'' if state.bound is None else ', which is open'}"
        case events.RequestSent(turn=turn) | events.RoundEnded(turn=turn) | events.TurnPaused(turn=turn):
            return _outside(state, turn)
        case events.TurnResumed(turn=turn) if state.pause is None:
            return f"turn {turn} goes on, and does not wait"
        case events.TurnEnded(turn=turn):
            return _outside(state, turn)
        case events.Compacted(start=start, stop=stop) if not 0 <= start < stop <= state.history.length:
            return f"messages {start} to {stop} of {state.history.length} became a summary"
        case events.Rewound(turn=turn):
            return _unreachable(state, turn)
        case events.CallEventBase(call_id=call_id) if not _is_known(state, call_id):
            return f"call {call_id!r} was never made"
        case _:
            return None


def _outside(state: SessionState, turn: int) -> str | None:
    if state.bound is None or turn != state.turns:
        return f"something of turn {turn} while {'no turn' if state.bound is None else state.turns} is open"
    return None


def _unreachable(state: SessionState, turn: int) -> str | None:
    if state.bound is not None:
        return f"the history was rewound while turn {state.turns} was open"
    if end_of(state.ends, turn) is None:
        return f"the history was rewound to turn {turn}, which is no place in it"
    return None


def _is_known(state: SessionState, call_id: CallId) -> bool:
    last = state.history[-1].calls if state.history.length else ()
    return call_id in state.ledger or any(call.id == call_id for call in last)
