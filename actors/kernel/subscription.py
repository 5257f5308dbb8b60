"""Deliver items to a reader through a bounded stream that never blocks its sender.

Subscribers of a session's events read from such streams. An item stays in the queue until the reader removes it, so a
cancelled reader loses no item. When the queue is full, droppable items are dropped first. Before the next item, the
reader gets a `LostItems` report. The report contains the number of lost items, and says whether the reader must read
the log to catch up.
"""

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

import anyio
from anyio.abc import ObjectReceiveStream
from msgspec import Struct

from actors.kernel.event_loop import Changes, event_loop

T = TypeVar("T")


class LostItems(Struct, frozen=True):
    """A report of the items dropped since the last report, because the reader was slow.

    If `resync` is True, an item that is not droppable was lost, and the reader must read it from the log. The report
    comes before the items that were queued at that time, so a reader of the log may see some items again.
    """

    count: int
    resync: bool


class Subscription(ObjectReceiveStream[T | LostItems], Generic[T]):
    """A stream that never blocks its sender. Several tasks may use either end; each item goes to one reader.

    The stream holds at most `capacity` items. When it is full, a new `droppable` item is dropped. For any other new
    item, all queued droppable items are dropped; if there are none, the new item is lost, and the reader must resync.
    """

    def __init__(self, capacity: int, *, droppable: Callable[[T], bool]) -> None:
        self._changes = Changes(event_loop())
        self._capacity = capacity
        self._droppable = droppable
        self._queue: deque[T] = deque()
        self._is_closed = self._is_left = False
        self._lost = 0
        self._resync = False
        self._room: Changes | None = None

    def put(self, item: T) -> None:
        """Append `item`. If the stream is full, drop items as the class describes.

        This has no effect after either end was closed.
        """
        if self._is_closed or self._is_left:
            return
        if len(self._queue) < self._capacity or self._try_make_room(item):
            self._queue.append(item)
            self._changes.notify()

    async def wait_for_room(self, items: int) -> None:
        """Wait until the stream has room for this number of items, or until an end is closed.

        A sender that may wait calls this before `put`, so that no item is dropped.
        """
        room = self._room = self._room or Changes(event_loop())
        while self._capacity - len(self._queue) < items and not (self._is_closed or self._is_left):
            await room.wait_for_change()

    def close(self) -> None:
        """Close the sender's end. The reader gets the remaining items, then `anyio.EndOfStream`."""
        self._is_closed = True
        self._changes.notify()

    def close_reader(self) -> None:
        """Close the reader's end. The remaining and all later items are dropped."""
        self._is_left = True
        self._queue.clear()
        self._changes.notify()
        self._notify_sender()

    async def aclose(self) -> None:
        self.close_reader()

    async def receive(self) -> T | LostItems:
        """Return the next item, or a report of lost items. A cancelled reader loses no item.

        Yields to other tasks only if there is no item.

        Raises:
            anyio.EndOfStream: The sender closed its end, and no items remain.
            anyio.ClosedResourceError: The reader's end is closed.
        """
        while not (self._queue or self._lost or self._is_closed or self._is_left):
            await self._changes.wait_for_change()
        if self._is_left:
            raise anyio.ClosedResourceError
        if self._lost:
            lost = LostItems(self._lost, self._resync)
            self._lost, self._resync = 0, False
            return lost
        if not self._queue:
            raise anyio.EndOfStream
        item = self._queue.popleft()
        self._notify_sender()
        return item

    def _notify_sender(self) -> None:
        if self._room is not None:
            self._room.notify()

    def _try_make_room(self, item: T) -> bool:
        """Make room for `item` by dropping queued droppable items. Return False if `item` itself was dropped."""
        if not self._droppable(item):
            kept = [queued for queued in self._queue if not self._droppable(queued)]
            if dropped := len(self._queue) - len(kept):
                self._queue = deque(kept)
                self._lost += dropped
                return True
            self._resync = True
        self._lost += 1
        return False
