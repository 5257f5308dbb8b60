"""Apply the `timeout` of queued asks while the current turn waits for its caller.

While a turn runs, the time that later asks spend in the queue is not limited, because the turn has its own limits. A
turn that waits for a decision or a result has no limit, so the `timeout` of queued asks applies.
"""

from collections.abc import Iterable
from typing import Any

import anyio

from actors.errors import QueueFull
from actors.kernel import Child, Context
from actors.kernel.receiver import current_child
from actors.session.pending import PendingAsks, Submit


class QueueLimits:
    """Rejects a queued ask whose `timeout` expires while the current turn waits for its caller."""

    def __init__(self, pending: PendingAsks, session: str) -> None:
        self._pending, self._session = pending, session
        self._children: set[Child] = set()  # one timer for each ask

    def begin(self, context: Context[Any], asks: Iterable[Submit]) -> None:  # Any: its session's
        """Start the timers of these asks: the current turn waits for its caller."""
        for ask in asks:
            if ask.asked is not None and ask.asked.timeout is not None:
                self._children.add(context.start(self._expire, ask, ask.asked.timeout, name="queue limit"))

    def end(self) -> None:
        """Stop all timers: the current turn continues."""
        children, self._children = self._children, set()
        for child in children:
            child.cancel()

    async def _expire(self, ask: Submit, seconds: float) -> None:
        await anyio.sleep(seconds)
        if (child := current_child()) is not None:
            self._children.discard(child)
        if any(each is ask for each in self._pending.waiting):
            self._pending.refuse(ask, self._too_long(seconds))
            self._pending.rested()

    def _too_long(self, seconds: float) -> QueueFull:
        return QueueFull(
            f"Session {self._session!r} has a turn that waits for its caller, and this ask was queued for "
            f"{seconds:g} s, its timeout; nothing was sent. Pass results= or approvals= (session.pending has the "
            "calls), or cancel() first"
        )
