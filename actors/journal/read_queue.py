"""Queue the journal's reads, which run one at a time in a single thread.

The journal actor uses this queue. A read is urgent if a session cannot continue without it. The number of queued
non-urgent reads is limited. While both kinds are queued, they alternate, so the first urgent read waits for at most one
non-urgent read.
"""

from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

Q = TypeVar("Q")


class ReadQueue(Generic[Q]):
    """A queue of reads, which a task performs one at a time. The task ends when the queue is empty.

    Args:
        capacity: Maximum number of queued non-urgent reads.
        read: Performs one read.
        start: Starts the task that performs the reads.
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
        """True if the queue accepts urgent reads only."""
        return len(self._waiting) >= self._capacity

    def add(self, read: Q, *, urgent: bool = False) -> None:
        """Add a read to the queue. Callers must check `is_full` before they add a non-urgent read."""
        (self._urgent if urgent else self._waiting).append(read)
        if not self._is_reading:
            self._is_reading = True
            self._start(self._run)

    async def _run(self) -> None:
        """Perform the queued reads, alternating between urgent and non-urgent reads, until the queue is empty."""
        while self._waiting or self._urgent:
            self._was_urgent = bool(self._urgent) and not (self._was_urgent and self._waiting)
            await self._read((self._urgent if self._was_urgent else self._waiting).popleft())
        self._is_reading = False
