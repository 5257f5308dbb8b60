"""Subscriptions: bounded streams whose reader may be slow or gone, and slows nobody.

An item stays where it is until a reader that runs takes it, and a wake-up carries none, so nothing is lost when a host
cancels natively. When a subscription is full, items that may be missed are dropped first, then any; and the reader is
told, before the next item, how many it missed and whether it must read the log to catch up.
"""

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

import anyio
from anyio.abc import ObjectReceiveStream
from msgspec import Struct

from actors.kernel.parking import Changes, parking

T = TypeVar("T")


class Lost(Struct, frozen=True):
    """So many items were dropped because the reader was slow, since the last time it was told.

    `resync`: one of them may not be missed; read it where it is kept, by its sequence number. This arrives before the
    items that were there when they were lost, so a reader that resyncs may then see some items again.
    """

    count: int
    resync: bool


class Subscription(ObjectReceiveStream[T | Lost], Generic[T]):
    """A stream that never makes its sender wait. Several tasks may use either end; each item goes to one reader.

    It holds `capacity` items. When there is no room, an item that the reader may miss (`droppable`) is dropped; for one
    it may not miss, all queued ones it may miss are; if there are none, that item is lost too, and the reader is told
    to resync.
    """

    def __init__(self, capacity: int, *, droppable: Callable[[T], bool]) -> None:
        self._changes = Changes(parking())
        self._capacity = capacity
        self._droppable = droppable
        self._queue: deque[T] = deque()
        self._is_closed = self._is_left = False
        self._lost = 0
        self._resync = False

    def put(self, item: T) -> None:
        """Append `item`, or drop by the rule if there is no room. Without effect once either end has closed it."""
        if self._is_closed or self._is_left:
            return
        if len(self._queue) < self._capacity or self._makes_room(item):
            self._queue.append(item)
            self._changes.tell()

    def close(self) -> None:
        """Close the sender's end; the reader gets what is left, then `anyio.EndOfStream`."""
        self._is_closed = True
        self._changes.tell()

    def leave(self) -> None:
        """Close the reader's end: what is left is dropped, and so is what is put."""
        self._is_left = True
        self._queue.clear()
        self._changes.tell()

    async def aclose(self) -> None:
        self.leave()

    async def receive(self) -> T | Lost:
        """Take the next item, or word of those that were lost. A cancelled reader has taken nothing.

        Gives way only when there is none.

        Raises:
            anyio.EndOfStream: There will be none: the sender closed its end.
            anyio.ClosedResourceError: The reader has left.
        """
        while not (self._queue or self._lost or self._is_closed or self._is_left):
            await self._changes.next()
        if self._is_left:
            raise anyio.ClosedResourceError
        if self._lost:
            lost = Lost(self._lost, self._resync)
            self._lost, self._resync = 0, False
            return lost
        if not self._queue:
            raise anyio.EndOfStream
        return self._queue.popleft()

    def _makes_room(self, item: T) -> bool:
        """Make room for `item` by dropping; False if it was `item` itself that was dropped."""
        if not self._droppable(item):
            kept = [queued for queued in self._queue if not self._droppable(queued)]
            if dropped := len(self._queue) - len(kept):
                self._queue = deque(kept)
                self._lost += dropped
                return True
            self._resync = True
        self._lost += 1
        return False
