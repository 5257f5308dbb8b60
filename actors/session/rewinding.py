"""Rewind the history of a session to the end of an earlier turn.

A rewind is queued like an ask, but sends no request and begins no turn. `actors.core.history.turn_ends` finds the turns
to which a history can be rewound. The log and the ledger keep the removed messages and calls, so the numbers of removed
turns and calls are not reused.
"""

from actors.core.history.turn_ends import end_of, unreachable_reason
from actors.core.log.events import Rewound
from actors.core.session.publishing import NOBODY
from actors.core.session.state import SessionState
from actors.core.stream_events.results import AskResult
from actors.core.values.stream import Usage
from actors.errors import SessionError
from actors.renderer.renderer_actor import Rewind
from actors.session.inflight import AskInFlight
from actors.session.pending import HostRewind, PendingAsks


async def rewind(ask: AskInFlight, request: HostRewind, pending: PendingAsks) -> None:
    """Log a rewind to the end of the requested turn.

    If the history already ends there, or cannot be rewound to that turn, nothing is logged.
    """
    state, to = ask.log.state, request.to_turn
    result = AskResult("", "complete", NOBODY, (), 0, Usage(), turn=to)
    if (end := end_of(state.ends, to)) is None:
        why = unreachable_reason(state.ends, to, state.turns)
        request.refusal = f"Session {state.session!r} cannot be rewound to turn {to}: {why}"
        pending.store_result(result, 0)
    elif end.length == state.history.length:
        request.removed = 0
        pending.store_result(result, 0)
    else:
        removed = state.history.length - end.length

        def on_durable(seq: int) -> None:
            request.removed = removed
            pending.store_result(result, seq)

        await ask.refs.renderer.send(Rewind(end.length))
        await ask.log.write(Rewound(to), on_durable)


def open_turn_error(state: SessionState) -> SessionError:
    """Return the error for a rewind that is requested while a turn waits for its caller."""
    return SessionError(
        f"Session {state.session!r} cannot be rewound while turn {state.turns} waits for its caller; "
        "call cancel() first"
    )
