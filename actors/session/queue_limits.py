"""The time that an ask may wait behind a turn that waits for its caller.

Behind a turn that runs, the time in the queue does not count as the ask's: that turn has bounds of its own. One that
waits for a decision or a result has none, so there the `timeout` of the next asks counts.
"""

from collections.abc import Iterable
from typing import Any

import anyio

from actors.errors import QueueFull
from actors.kernel import Child, Context
from actors.kernel.receiver import current_child
from actors.session.pending import PendingAsks, Submit


class QueueLimits:
    """Ends asks in the queue when they have waited for a turn's caller for as long as their `timeout`."""

    def __init__(self, pending: PendingAsks, session: str) -> None:
        self._pending, self._session = pending, session
        self._children: set[Child] = set()  # whose time runs

    def begin(self, context: Context[Any], asks: Iterable[Submit]) -> None:  # Any: its session's
        """Let the time of these asks run: the turn ahead of them waits for its caller."""
        for ask in asks:
            if ask.asked is not None and ask.asked.timeout is not None:
                self._children.add(context.start(self._expire, ask, ask.asked.timeout, name="queue limit"))

    def end(self) -> None:
        """Let no time run any more: the turn goes on."""
        children, self._children = self._children, set()
        for child in children:
            child.cancel()

    async def _expire(self, ask: Submit, seconds: float) -> None:
        await anyio.sleep(seconds)
        if (child := current_child()) is not None:
            self._children.discard(child)
        if any(each is ask for each in self._pending.waiting):
            error = self._too_long(seconds)
            self._pending.refuse(ask, error)
            ask.sink.close(error)
            self._pending.rested()

    def _too_long(self, seconds: float) -> QueueFull:
        return QueueFull(
            f"Session {self._session!r} has a turn that waits for its caller, and this ask waited {seconds:g} s behind "
            "it; nothing was asked. Pass results= or approvals=, or cancel first (session.pending has the calls)"
        )
