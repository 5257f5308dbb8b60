"""The reads that wait for the journal's reading thread: each has its turn, and a bounded number may wait.

What a session needs to go on does not wait behind all that clients read: while both wait, they take turns.
"""

from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

Q = TypeVar("Q")


class ReadQueue(Generic[Q]):
    """Does one read after the other, in a task that lives while there are any.

    Args:
        capacity: How many may wait of those that are not urgent.
        read: Does one.
        start: Starts the task.
    """

    def __init__(
        self,
        capacity: int,
        read: Callable[[Q], Coroutine[Any, Any, None]],
        start: Callable[[Callable[[], Coroutine[Any, Any, None]]], object],
    ) -> None:
        self._capacity, self._read, self._start = capacity, read, start
        self._waiting, self._urgent = deque[Q](), deque[Q]()
        self._is_reading = self._was_urgent = False

    @property
    def is_full(self) -> bool:
        """Whether as many wait as may."""
        return len(self._waiting) >= self._capacity

    def add(self, read: Q, *, urgent: bool = False) -> None:
        """Have a read done in its turn, whether or not the queue is full."""
        (self._urgent if urgent else self._waiting).append(read)
        if not self._is_reading:
            self._is_reading = True
            self._start(self._run)

    async def _run(self) -> None:
        while self._waiting or self._urgent:
            self._was_urgent = bool(self._urgent) and not (self._was_urgent and self._waiting)
            await self._read((self._urgent if self._was_urgent else self._waiting).popleft())
        self._is_reading = False
