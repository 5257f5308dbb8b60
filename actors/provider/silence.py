"""Silence: how long a stream may send only comments, pings or empty deltas.

Such a stream is not idle, since bytes come, and yet nothing is said.
"""

from collections.abc import Callable, Iterable
from typing import assert_never

from actors.core.values.stream import (
    ArgumentsDelta,
    CallDone,
    CallStarted,
    Finish,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from actors.kernel.parking import Scope


class Silence:
    """Ends the scope in which a stream is read, once it has said nothing for too long.

    Args:
        scope: It has a deadline of its own, which stays.
        now: The loop's clock.
        timeout: Seconds; None allows any silence.
    """

    def __init__(self, scope: Scope, now: Callable[[], float], timeout: float | None) -> None:
        self._scope, self._now, self._timeout = scope, now, timeout
        self._until = scope.deadline
        self._restart()

    @property
    def why(self) -> str | None:
        """What ended the scope, if it was silence."""
        if self._timeout is None or self._scope.deadline >= self._until:
            return None
        return f"The stream went on without saying anything for {self._timeout:g} s."

    def hear(self, events: Iterable[StreamEvent]) -> None:
        """Begin to wait anew, if anything is said."""
        if self._timeout is not None and any(map(_says_something, events)):
            self._restart()

    def allow(self) -> None:
        """Allow any silence: what comes is no stream."""
        self._timeout, self._scope.deadline = None, self._until

    def _restart(self) -> None:
        if self._timeout is not None:
            self._scope.deadline = min(self._until, self._now() + self._timeout)


def _says_something(event: StreamEvent) -> bool:
    match event:
        case TextDelta(text=text) | ThinkingDelta(text=text) | ArgumentsDelta(text=text):
            return bool(text)
        case CallStarted() | CallDone() | Finish():
            return True
        case Usage():
            return False
        case _:
            assert_never(event)
