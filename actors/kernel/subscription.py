"""Subscriptions: bounded streams that never block their sender, even if the reader is slow or gone.

An item stays in the queue until a running reader takes it, and a wake-up carries no item, so native cancellation
loses nothing. When a subscription is full, droppable items are dropped first, then any. Before the next item, the
reader learns how many items were lost and whether it must read the log to catch up.
"""

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

import anyio
from anyio.abc import ObjectReceiveStream
from msgspec import Struct

from actors.kernel.event_loop import Changes, event_loop

T = TypeVar("T")


class Lost(Struct, frozen=True):
    """The number of items dropped since the last report, because the reader was slow.

    `resync`: an item that is not droppable was lost; read it from the log, by its sequence number. This report comes
    before the items that were queued at that time, so a reader that resyncs may see some items again.
    """

    count: int
    resync: bool


class Subscription(ObjectReceiveStream[T | Lost], Generic[T]):
    """A stream that never blocks its sender. Several tasks may use either end; each item goes to one reader.

    It holds `capacity` items. When it is full, a `droppable` item is dropped. For any other item, all queued
    droppable items are dropped; if there are none, that item is lost too, and the reader must resync.
    """

    def __init__(self, capacity: int, *, droppable: Callable[[T], bool]) -> None:
        self._changes = Changes(event_loop())
        self._capacity = capacity
        self._droppable = droppable
        self._queue: deque[T] = deque()
        self._is_closed = self._is_left = False
        self._lost = 0
        self._resync = False

    def put(self, item: T) -> None:
        """Append `item`, or drop items by the rule if there is no room. No effect after either end was closed."""
        if self._is_closed or self._is_left:
            return
        if len(self._queue) < self._capacity or self._makes_room(item):
            self._queue.append(item)
            self._changes.tell()

    def close(self) -> None:
        """Close the sender's end. The reader gets the remaining items, then `anyio.EndOfStream`."""
        self._is_closed = True
        self._changes.tell()

    def leave(self) -> None:
        """Close the reader's end: the remaining and all later items are dropped."""
        self._is_left = True
        self._queue.clear()
        self._changes.tell()

    async def aclose(self) -> None:
        self.leave()

    async def receive(self) -> T | Lost:
        """Return the next item, or a report of lost items. A cancelled reader has taken nothing.

        Yields to other tasks only if there is no item.

        Raises:

        anyio.EndOfStream: The sender closed its end, and no items remain.

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
        """Make room for `item` by dropping others; return False if `item` itself was dropped."""
        if not self._droppable(item):
            kept = [queued for queued in self._queue if not self._droppable(queued)]
            if dropped := len(self._queue) - len(kept):
                self._queue = deque(kept)
                self._lost += dropped
                return True
            self._resync = True
        self._lost += 1
        return False
