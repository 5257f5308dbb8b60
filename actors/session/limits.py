"""Limit the work of a session: reject commands that the session cannot accept, and stop asks that exceed their time.

A session that is ending rejects every command; that rule is in the table `actors.core.session.phases`. Other rejections
depend on the command, and on the session's phase, state, queue and configuration.

An ask in flight is stopped when it exceeds its `timeout`, or the seconds that remain in the session's budget. While a
turn runs, other asks may stay queued without a time limit, because the turn ends at its own limits. A turn that waits
for results or decisions has no time limit, so queued asks are then rejected when their own `timeout` has passed.
"""

from collections.abc import Iterable
from math import inf
from typing import Any

import anyio

from actors.core.session.phases import Phase
from actors.core.session.state import SessionState, bounded_seconds
from actors.core.settings.asking import StoredAskSettings
from actors.errors import ActorsError, OverBudget, QueueFull
from actors.kernel import Child, Context
from actors.kernel.receiver import current_child
from actors.session.configuration import ActiveConfig
from actors.session.held_changes import open_turn_error
from actors.session.inflight import AskInFlight
from actors.session.pending import HostRewind, PendingAsks, Submit


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
    if phase in ("asking", "awaiting", "recovering") and len(pending.waiting) >= pending.max_queued:
        return pending.queue_full_error(state.session)
    if phase == "idle" and not is_rewind and (why := active_config.budget_rejection(state)):
        return OverBudget(f"Session {state.session!r} accepts no ask: {why}")
    return None


class Deadline:
    """The timer of the ask in flight. The timer pauses while the ask waits for results or decisions from its caller."""

    def __init__(self) -> None:
        self._child: Child | None = None

    def start_timer(
        self,
        context: Context[Any],  # Any: any actor may call this
        ask: AskInFlight,
        state: SessionState,
        ask_settings: StoredAskSettings | None,
    ) -> None:
        """Start the timer of an ask that begins or resumes.

        After a pause, the timer continues with the remaining time. If neither the ask nor a budget has a time limit, no
        timer runs.
        """
        before = 0.0 if state.pause is None else state.pause.awaited.ask_so_far.seconds
        seconds, why = bounded_seconds(state, ask_settings, before)
        if seconds < inf:
            self._child = context.start(self._expire, context, ask, seconds, why, name="deadline")

    async def _expire(
        self, context: Context[Any], ask: AskInFlight, seconds: float, why: str
    ) -> None:  # Any: any actor may call this
        """Stop the ask after `seconds`. `why` is the reason to report in the result of the ask."""
        await anyio.sleep(seconds)
        ask.halt(context, why)

    def stop_timer(self) -> None:
        """Stop the timer, because the ask has ended or its turn is paused."""
        if self._child is not None:
            self._child.cancel()
            self._child = None


class QueueLimits:
    """The timers of queued asks, which run while a turn waits for results or decisions from its caller.

    An ask that is still queued after its `timeout` is rejected.
    """

    def __init__(self, pending: PendingAsks, session: str) -> None:
        self._pending, self._session = pending, session
        # One timer per queued ask with a `timeout`. An empty dict takes less memory than an empty set.
        self._children: dict[Child, None] = {}

    def start_timers(
        self, context: Context[Any], asks: Iterable[Submit]
    ) -> None:  # Any: any actor may call this
        """Start a timer for each of these queued asks that has a `timeout`."""
        for ask in asks:
            if ask.asked is not None and ask.asked.timeout is not None:
                self._children[context.start(self._expire, ask, ask.asked.timeout, name="queue limit")] = None

    def stop_timers(self) -> None:
        """Stop all timers, because the current turn continues."""
        children, self._children = self._children, {}
        for child in children:
            child.cancel()

    async def _expire(self, ask: Submit, seconds: float) -> None:
        """Reject an ask that is still queued after `seconds`."""
        await anyio.sleep(seconds)
        if (child := current_child()) is not None:
            self._children.pop(child, None)
        if any(each is ask for each in self._pending.waiting):
            self._pending.reject_queued(ask, self._timeout_error(seconds))
            self._pending.on_ask_end()

    def _timeout_error(self, seconds: float) -> QueueFull:
        """Return the error for an ask that was queued for its complete `timeout`, given in seconds."""
        return QueueFull(
            f"The ask was queued for its complete timeout of {seconds:g} s, because session {self._session!r} "
            "has a paused turn; nothing was sent. First pass results= or approvals= for the "
            "calls in session.pending, or call cancel()"
        )
