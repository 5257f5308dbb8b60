"""Decide whether a session accepts an ask, a call, a rewind or a compaction.

In:  the command, and the session's phase, state, queue and configuration.
Out: the error with which the session rejects the command; None if the session accepts it.

A session that is ending rejects every command; that rule is in the table `actors.core.session.phases`.
"""

from actors.core.session.phases import Phase
from actors.core.session.state import SessionState
from actors.errors import ActorsError, OverBudget
from actors.session.configuration import ActiveConfig
from actors.session.pending import HostRewind, PendingAsks, Submit
from actors.session.rewinding import open_turn_error


def rejection(
    command: Submit, phase: Phase, state: SessionState, pending: PendingAsks, active_config: ActiveConfig
) -> ActorsError | None:
    """Return the error for a command that must not be queued now, or None if the command may be queued.

    If the budget is used up, only a command that would start at once is rejected. An ask that must wait is queued, and
    ends before its first request if the budget is still used up.
    """
    is_rewind = isinstance(command.call, HostRewind)
    if phase == "awaiting" and is_rewind:
        return open_turn_error(state)
    if phase in ("asking", "awaiting", "recovering") and len(pending.waiting) >= pending.most_waiting:
        return pending.queue_full_error(state.session)
    if phase == "idle" and not is_rewind and (why := active_config.budget_rejection(state)):
        return OverBudget(f"Session {state.session!r} accepts no ask: {why}")
    return None
