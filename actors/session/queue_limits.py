"""Apply the `timeout` of queued asks while the current turn waits for its caller.

While a turn runs, asks may stay queued without a time limit, because the turn ends at its own limits. A turn that waits
for a decision or a result has no time limit, so the `timeout` of the queued asks applies.
"""

from collections.abc import Iterable
from typing import Any

import anyio

from actors.errors import QueueFull
from actors.kernel import Child, Context
from actors.kernel.receiver import current_child
from actors.session.pending import PendingAsks, Submit


class QueueLimits:
    """The timers of queued asks. While a turn waits for its caller, the timers reject asks whose `timeout` expires."""

    def __init__(self, pending: PendingAsks, session: str) -> None:
        self._pending, self._session = pending, session
        self._children: set[Child] = set()  # one timer per queued ask with a `timeout`

    def start_timers(
        self, context: Context[Any], asks: Iterable[Submit]
    ) -> None:  # Any: any actor may call this
        """Start a timer for each of these asks that has a `timeout`, because the current turn waits for its caller."""
        for ask in asks:
            if ask.asked is not None and ask.asked.timeout is not None:
                self._children.add(context.start(self._expire, ask, ask.asked.timeout, name="queue limit"))

    def stop_timers(self) -> None:
        """Stop all timers, because the current turn continues."""
        children, self._children = self._children, set()
        for child in children:
            child.cancel()

    async def _expire(self, ask: Submit, seconds: float) -> None:
        """Reject an ask that is still queued after `seconds`."""
        await anyio.sleep(seconds)
        if (child := current_child()) is not None:
            self._children.discard(child)
        if any(each is ask for each in self._pending.waiting):
            self._pending.reject_queued(ask, self._timeout_error(seconds))
            self._pending.on_rest()

    def _timeout_error(self, seconds: float) -> QueueFull:
        """Return the error for an ask that was queued for its complete `timeout`, given in seconds."""
        return QueueFull(
            f"The ask was queued for its complete timeout of {seconds:g} s, because session {self._session!r} "
            "has a turn that waits for its caller; nothing was sent. First pass results= or approvals= for the "
            "calls in session.pending, or call cancel()"
        )
