"""What an exchange waits for, and until when.

One cancel scope serves all steps from the pool to the answer's head: a scope for each would cost more than the step.
Each wait for more of the body has one. They are the loop's own: to ask anyio which that is costs as much as the wait.
"""

import math
from types import TracebackType
from typing import Self

from actors.kernel.parking import parking


class OutOfTime(Exception):
    """A wait took too long. The text says what for."""


class Patience:
    """A context in which each wait has its own bound, and all of them one in common.

    Args:
        total: Seconds for the exchange, reading the body included; None has no end.
    """

    __slots__ = ("_end", "_here", "_scope", "_seconds", "_total", "_what")

    def __init__(self, total: float | None) -> None:
        self._here = parking()
        self._end = math.inf if total is None else self._here.now() + total
        self._total = total
        self._what, self._seconds = "", math.inf
        self._scope = self._here.scope()

    def wait(self, what: str, seconds: float) -> None:
        """Begin to wait for something else."""
        self._what, self._seconds = what, seconds
        self._scope.deadline = min(self._end, self._here.now() + seconds)

    def once_more(self, what: str, seconds: float) -> Self:
        """Return it as a context for one more wait, later in the same exchange."""
        self._what, self._seconds = what, seconds
        self._scope = self._here.scope(deadline=min(self._end, self._here.now() + seconds))
        return self

    def __enter__(self) -> Self:
        self._scope.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave.

        Raises:
            OutOfTime: A wait in it took too long.
        """
        self._scope.__exit__(kind, error, trace)
        if self._scope.cancelled_caught:
            raise self._out_of_time() from None

    def _out_of_time(self) -> OutOfTime:
        if self._total is not None and self._scope.deadline == self._end:
            return OutOfTime(f"the whole took longer than {self._total:g} s")
        return OutOfTime(f"{self._what} took longer than {self._seconds:g} s")
