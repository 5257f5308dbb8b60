"""Stop an ask that exceeds its `timeout`, or the seconds that remain in the session's budget."""

from math import inf
from typing import Any

import anyio

from actors.core.session.state import SessionState, bounded_seconds
from actors.core.settings.asking import Asked
from actors.kernel import Child, Context
from actors.session.inflight import AskInFlight


class Deadline:
    """The timer of the ask in flight. The timer pauses while the ask waits for results or decisions from its caller."""

    def __init__(self) -> None:
        self._child: Child | None = None

    def start_timer(
        self,
        context: Context[Any],  # Any: any actor may call this
        ask: AskInFlight,
        state: SessionState,
        ask_settings: Asked | None,
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
        """Stop the timer, because the ask has ended or its turn waits for the caller."""
        if self._child is not None:
            self._child.cancel()
            self._child = None
