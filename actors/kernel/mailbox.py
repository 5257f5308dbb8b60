"""A bounded queue whose freed places go to waiting senders in the order they came.

An item is in the queue or in the hands of a running task, never in a wake-up. A place is free, taken, or granted to a
sender that was woken and has not run yet.
"""

from collections import deque
from typing import TypeVar

from anyio import WouldBlock

from actors.errors import KernelError
from actors.kernel.parking import Waiter, wake

T = TypeVar("T")


class MailboxFull(KernelError, WouldBlock):
    """The receiver's mailbox is full, and the sender does not wait."""


class BoundedQueue(deque[T]):
    """The items, how many more are welcome, and who waits for room.

    `limit` is the capacity less the places granted to senders that were woken and have not run yet; so
    `len(queue) < limit` means that an item may be appended now.
    """

    __slots__ = ("capacity", "limit", "waiting")

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.capacity = self.limit = capacity
        self.waiting: deque[Waiter] = deque()

    @property
    def unused(self) -> bool:
        """Whether it holds nothing and nobody waits, so that it can be thrown away."""
        return not self and not self.waiting and self.limit == self.capacity

    def grant(self) -> None:
        """Give a free place to the sender that waits longest. Call it after taking an item."""
        while self.waiting and len(self) < self.limit:
            waiter = self.waiting.popleft()
            if not waiter.done():
                waiter.set_result(True)
                self.limit -= 1
                break

    async def wait_for_place(self, waiter: Waiter) -> None:
        """Wait for a place; a caller that was granted one must use it before it gives way again.

        Waking `waiter` with False ends the wait without one. If the caller is cancelled, the place it was granted
        goes to the next sender.
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
        """Make the place that was granted a free one, or wait for none any more."""
        if waiter in self.waiting:
            self.waiting.remove(waiter)
        elif not waiter.cancelled() and waiter.result():
            self.limit += 1

    def dismiss(self) -> None:
        """End all waits for room: there will be none."""
        for waiter in self.waiting:
            wake(waiter, value=False)
        self.waiting.clear()
