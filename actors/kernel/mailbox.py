"""A bounded queue that assigns free places to waiting senders in order of arrival.

An item is in the queue or in the hands of a running task, never in a wake-up. A place is free, taken, or granted to a
sender that was woken and has not run yet.
"""

from collections import deque
from typing import TypeVar

from anyio import WouldBlock

from actors.errors import KernelError
from actors.kernel.event_loop import Waiter, wake

T = TypeVar("T")


class MailboxFull(KernelError, WouldBlock):
    """The receiver's mailbox is full, and the sender does not wait."""


class BoundedQueue(deque[T]):
    """The items of a queue, its remaining capacity, and the senders that wait for room.

    `limit` is the capacity minus the places granted to senders that were woken and have not run yet. So an item may
    be appended if `len(queue) < limit`.
    """

    __slots__ = ("capacity", "limit", "waiting")

    capacity: int
    limit: int

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.capacity = self.limit = capacity
        self.waiting: deque[Waiter] = deque()

    @property
    def is_unused(self) -> bool:
        """True if the queue is empty and without waiting senders, so that it can be dropped."""
        return not self and not self.waiting and self.limit == self.capacity

    def grant(self) -> None:
        """Grant a free place to the sender that has waited longest. Call it after taking an item."""
        while self.waiting and len(self) < self.limit:
            waiter = self.waiting.popleft()
            if not waiter.done():
                waiter.set_result(True)
                self.limit -= 1
                break

    async def wait_for_place(self, waiter: Waiter) -> None:
        """Wait for a place. A caller that was granted one must use it before it yields again.

        Waking `waiter` with False ends the wait without a place. If the caller is cancelled, its place goes to the
        next sender.
        """
        self.waiting.append(waiter)
        try:
            await waiter
        except BaseException:
            self._return(waiter)
            self.grant()
            raise
        self._return(waiter)

    def _return(self, waiter: Waiter) -> None:
        """Free the place that was granted, or leave the waiting senders."""
        if waiter in self.waiting:
            self.waiting.remove(waiter)
        elif not waiter.cancelled() and waiter.result():
            self.limit += 1

    def dismiss(self) -> None:
        """End all waits: there will be no room."""
        for waiter in self.waiting:
            wake(waiter, value=False)
        self.waiting.clear()
