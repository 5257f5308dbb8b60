"""Stop an ask that exceeds its `timeout`, or the time that is left in the session's budget."""

from math import inf
from typing import Any

import anyio

from actors.core.session.state import SessionState, bounded_seconds
from actors.core.settings.asking import Asked
from actors.kernel import Child, Context
from actors.session.inflight import AskInFlight


class Deadline:
    """The timer of the ask in flight. It pauses while the ask's turn waits for its caller."""

    def __init__(self) -> None:
        self._child: Child | None = None

    def begin(
        self,
        context: Context[Any],  # Any: its session's
        ask: AskInFlight,
        state: SessionState,
        asked: Asked | None,
    ) -> None:
        """Start the timer of an ask; after a wait, with the time that was left."""
        before = 0.0 if state.pause is None else state.pause.awaited.ask_so_far.seconds
        seconds, why = bounded_seconds(state, asked, before)
        if seconds < inf:
            self._child = context.start(self._expire, context, ask, seconds, why, name="deadline")

    async def _expire(
        self, context: Context[Any], ask: AskInFlight, seconds: float, why: str
    ) -> None:  # Any: likewise
        await anyio.sleep(seconds)
        ask.halt(context, why)

    def end(self) -> None:
        """Stop the timer: the ask has ended, or its turn is waiting."""
        if self._child is not None:
            self._child.cancel()
            self._child = None
