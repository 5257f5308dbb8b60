"""Iterate over the items of a stream from a thread without an event loop."""

from collections.abc import Awaitable, Callable, Iterator
from typing import Generic, TypeVar

from actors.sync.ask import InterruptibleAsk
from actors.sync.calls import BlockingCalls

R = TypeVar("R")


class Steps(Iterator[R], Generic[R]):
    """A blocking iterator over the items of a stream. Each iteration waits for the next item.

    Leaving the loop early does not stop the turn.
    """

    def __init__(
        self,
        calls: BlockingCalls,
        step: Callable[[], Awaitable[R | None]],
        ask: InterruptibleAsk | None = None,
    ) -> None:
        self._calls, self._step, self._ask = calls, step, ask
        self._is_closed = False

    def __next__(self) -> R:
        if self._is_closed:
            raise StopIteration
        try:
            step = self._calls.wait(self._step, self._ask)
        except BaseException:
            self._is_closed = True
            raise
        if step is None:
            self._is_closed = True
            raise StopIteration
        return step

    def close(self) -> None:
        """End the iteration. The turn continues; to stop the turn, call `BlockingSession.cancel`."""
        self._is_closed = True
