"""Queue a bounded number of messages, and grant free places to waiting senders in order of arrival.

A place is free, taken by a message, or granted to a sender that was woken and has not run yet. A wake-up carries no
message: the message stays with its sender until the sender runs, so cancellation loses no message.
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
    """A queue with a maximum length, and the senders that wait for a place in it.

    `limit` is the capacity minus the places granted to senders that were woken and have not run yet. An item may be
    appended if `len(queue) < limit`.
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
        """True if the queue has no items and no waiting senders, so that it can be dropped."""
        return not self and not self.waiting and self.limit == self.capacity

    def grant_place(self) -> None:
        """Grant a free place to the sender that has waited longest. Called after an item was removed from the queue."""
        while self.waiting and len(self) < self.limit:
            waiter = self.waiting.popleft()
            if not waiter.done():
                waiter.set_result(True)
                self.limit -= 1
                break

    async def wait_for_place(self, waiter: Waiter) -> None:
        """Wait until a place is granted. The caller must then append its item before it yields again.

        If `waiter` is woken with False, the wait ends without a place. If the caller is cancelled, its place goes to
        the next sender.
        """
        self.waiting.append(waiter)
        try:
            await waiter
        except BaseException:
            self._return_place(waiter)
            self.grant_place()
            raise
        self._return_place(waiter)

    def _return_place(self, waiter: Waiter) -> None:
        """Free the place that was granted to `waiter`.

        If no place was granted, remove `waiter` from the waiting senders.
        """
        if waiter in self.waiting:
            self.waiting.remove(waiter)
        elif not waiter.cancelled() and waiter.result():  # woken because a place was granted
            self.limit += 1

    def dismiss_senders(self) -> None:
        """Wake all waiting senders without granting them a place, because the queue is dropped."""
        for waiter in self.waiting:
            wake(waiter, value=False)
        self.waiting.clear()
