"""A bounded queue whose freed places go to waiting senders in the order they came.

An item is in the queue or in the hands of a running task,
never in a wake-up; a place is free, taken, or granted to a sender that has been woken and not run yet.
"""

from collections import deque
from dataclasses import dataclass
from typing import TypeVar

from actors.kernel.parking import Waiter, wake

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Mailbox:
    """How much an actor's mailbox holds, in messages. Beyond that senders wait, and `tell_nowait` is refused.

    Args:
        capacity: Bound of the mail.
        control: Bound of the control queue.
    """

    capacity: int = 256
    control: int = 256

    def __post_init__(self) -> None:
        if self.capacity < 1 or self.control < 1:
            raise ValueError(f"A mailbox must hold at least one message; {self} does not.")


class BoundedQueue(deque[T]):
    """The items, how many more are welcome, and who waits for room.

    `limit` is the capacity less the places granted to senders that were woken and have not run yet; so
    `len(queue) < limit` means that an item may be appended now. Appending past it is up to the owner.
    """

    __slots__ = ("capacity", "limit", "waiting")

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.capacity = capacity
        self.limit = capacity
        self.waiting: deque[Waiter] | None = None

    @property
    def unused(self) -> bool:
        """Whether it holds nothing and nobody waits, so that it can be thrown away."""
        return not self and self.waiting is None and self.limit == self.capacity

    def grant(self) -> None:
        """Give a free place to the sender that waits longest. Call it after taking an item."""
        waiting = self.waiting
        while waiting and len(self) < self.limit:
            waiter = waiting.popleft()
            if not waiter.done():
                waiter.set_result(True)
                self.limit -= 1
                break
        if not waiting:
            self.waiting = None

    async def wait_for_place(self, waiter: Waiter) -> bool:
        """Wait for a place; the caller must use it before it gives way again.

        Returns:
            False if the wait was ended by `dismiss`, or by waking `waiter` with False.

        If the caller is cancelled, a place it was granted goes to the next sender.
        """
        if self.waiting is None:
            self.waiting = deque()
        self.waiting.append(waiter)
        try:
            granted: bool = await waiter
        except BaseException:
            if waiter.done() and not waiter.cancelled() and waiter.result():
                self.limit += 1
                self.grant()
            self._forget(waiter)
            raise
        if granted:
            self.limit += 1
        else:
            self._forget(waiter)
        return granted

    def _forget(self, waiter: Waiter) -> None:
        if self.waiting is not None and waiter in self.waiting:
            self.waiting.remove(waiter)
            self.waiting = self.waiting or None

    def dismiss(self) -> None:
        """End all waits for room: there will be none."""
        waiting, self.waiting = self.waiting, None
        for waiter in waiting or ():
            wake(waiter, value=False)
