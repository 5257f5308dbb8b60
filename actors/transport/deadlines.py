"""Limit how long one exchange waits. Exchanges and pools set the limit of each wait here.

One cancel scope covers all steps from the pool to the response's head, because a scope per step would cost more than
the step. Each wait for more of the body has a separate scope. The scopes are the event loop's native scopes, because
detecting the loop through anyio costs as much as the wait.
"""

import math
from types import TracebackType
from typing import Self

from actors.kernel.event_loop import event_loop


class DeadlineExceeded(Exception):
    """A step of an exchange waited too long. The message names the step."""


class ExchangeDeadlines:
    """A context manager with a limit for each wait and one limit for the complete exchange.

    Args:
        total: Seconds for the exchange, including reading the body. `None` means no limit.
    """

    __slots__ = ("_end", "_here", "_scope", "_seconds", "_total", "_what")

    def __init__(self, total: float | None) -> None:
        self._here = event_loop()
        self._end = math.inf if total is None else self._here.now() + total
        self._total = total
        self._what, self._seconds = "", math.inf
        self._scope = self._here.scope()

    def limit_wait(self, wait_name: str, seconds: float) -> None:
        """Limit the next wait to `seconds`. `wait_name` names the wait in errors, such as "connecting"."""
        self._what, self._seconds = wait_name, seconds
        self._scope.deadline = min(self._end, self._here.now() + seconds)

    def limit_again(self, wait_name: str, seconds: float) -> Self:
        """Return this object as a context manager for one more wait. The arguments are the same as for `limit_wait`."""
        self._what, self._seconds = wait_name, seconds
        self._scope = self._here.scope(deadline=min(self._end, self._here.now() + seconds))
        return self

    def __enter__(self) -> Self:
        self._scope.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Exit the cancel scope.

        Raises:
            DeadlineExceeded: A wait took too long.
        """
        self._scope.__exit__(kind, error, trace)
        if self._scope.cancelled_caught:
            raise self._deadline_error() from None

    def _deadline_error(self) -> DeadlineExceeded:
        if self._total is not None and self._scope.deadline == self._end:
            return DeadlineExceeded(f"the exchange took longer than {self._total:g} s")
        return DeadlineExceeded(f"{self._what} took longer than {self._seconds:g} s")
