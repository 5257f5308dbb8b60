"""Queue the reads of a journal for the one thread that reads.

Used by the journal actor. The number of waiting reads is bounded, except for urgent reads, which a session needs to
continue. While reads of both kinds wait, they take turns, so an urgent read waits for one read of a client at most.
"""

from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

Q = TypeVar("Q")


class ReadQueue(Generic[Q]):
    """Performs reads one after another, in a task that ends when no reads wait.

    Args:
        capacity: How many reads may wait that are not urgent.
        read: Performs one read.
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
        """True if the queue accepts only urgent reads."""
        return len(self._waiting) >= self._capacity

    def add(self, read: Q, *, urgent: bool = False) -> None:
        """Add a read. The caller checks `is_full`."""
        (self._urgent if urgent else self._waiting).append(read)
        if not self._is_reading:
            self._is_reading = True
            self._start(self._run)

    async def _run(self) -> None:
        while self._waiting or self._urgent:
            self._was_urgent = bool(self._urgent) and not (self._was_urgent and self._waiting)
            await self._read((self._urgent if self._was_urgent else self._waiting).popleft())
        self._is_reading = False
