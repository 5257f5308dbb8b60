"""Bounded channels whose ends are anyio object streams, and that lose nothing when a host cancels natively.

An item stays in the channel until a reader that runs takes it; a wake-up carries none. There are two kinds. A
`channel` makes a sender wait for room. A `subscription` makes nobody wait: it serves readers that may be slow
or gone. When it is full, items that may be missed are dropped first, then any; and the reader is told, before
the next item, how many it missed and whether it must read the log to catch up.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream

from actors.kernel.mailbox import BoundedQueue
from actors.kernel.parking import Parking, Waiter, parking

T = TypeVar("T")
T_in = TypeVar("T_in", contravariant=True)
T_out = TypeVar("T_out", covariant=True)


@dataclass(frozen=True, slots=True)
class Lost:
    """Items were dropped because the reader was slow.

    Args:
        count: How many, since the last time it was told.
        resync: Whether one of them may not be missed: read it where it is kept, by its sequence number.

    It arrives before the items that were in the channel when they were lost, so a reader that resyncs may
    then see some items again.
    """

    count: int
    resync: bool


class Buffer(Generic[T]):
    """What the two ends share."""

    __slots__ = (
        "droppable",
        "lost",
        "parking",
        "queue",
        "readers",
        "receiver_closed",
        "resync",
        "sender_closed",
    )

    def __init__(self, parking: Parking, capacity: int, droppable: Callable[[T], bool] | None = None) -> None:
        if capacity < 1:
            raise ValueError(f"A channel must hold at least one item; capacity is {capacity}.")
        self.parking = parking
        self.queue: BoundedQueue[T] = BoundedQueue(capacity)
        self.droppable = droppable
        self.readers: deque[Waiter] = deque()
        self.sender_closed = self.receiver_closed = False
        self.lost = 0
        self.resync = False

    @property
    def full(self) -> bool:
        """Whether there is no room for one more item."""
        return len(self.queue) >= self.queue.limit

    def put(self, item: T) -> None:
        """Append `item`; there must be room."""
        self.queue.append(item)
        if self.readers:
            self.wake_reader()

    def take(self) -> T:
        """Remove and return the oldest item, or raise what `Receiver.receive_nowait` raises."""
        if self.receiver_closed:
            raise anyio.ClosedResourceError
        if not self.queue:
            raise anyio.EndOfStream if self.sender_closed else anyio.WouldBlock
        item = self.queue.popleft()
        if self.queue.waiting is not None:
            self.queue.grant()
        return item

    def take_or_tell(self) -> T | Lost:
        """Return what was lost, if anything was and the reader has not been told; else `take`."""
        if not self.lost or self.receiver_closed:
            return self.take()
        lost = Lost(self.lost, self.resync)
        self.lost, self.resync = 0, False
        return lost

    def shed(self, droppable: Callable[[T], bool], item: T) -> bool:
        """Make room for `item` by dropping; False if it was `item` itself that was dropped."""
        if not droppable(item):
            kept = [queued for queued in self.queue if not droppable(queued)]
            if dropped := len(self.queue) - len(kept):
                self.queue.clear()
                self.queue.extend(kept)
                self.lost += dropped
                return True
            self.resync = True
        self.lost += 1
        return False

    def wake_reader(self) -> None:
        """Wake the reader that waits longest, if one does."""
        while self.readers:
            waiter = self.readers.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def wake_all_readers(self) -> None:
        """Wake every reader: no more items will come."""
        while self.readers:
            self.wake_reader()

    async def wait_for_item(self) -> None:
        """Wait until woken. A reader that is cancelled after that wakes the next one."""
        waiter = self.parking.waiter()
        self.readers.append(waiter)
        try:
            await waiter
        except BaseException:
            if waiter in self.readers:
                self.readers.remove(waiter)
            elif not waiter.cancelled() and self.queue:
                self.wake_reader()
            raise


class Sender(ObjectSendStream[T_in]):
    """The writing end. Several tasks may use it."""

    def __init__(self, buffer: Buffer[T_in]) -> None:
        self._buffer = buffer

    def send_nowait(self, item: T_in) -> None:
        """Put `item`. A full subscription drops by its rule, and never refuses.

        Raises:
            anyio.WouldBlock: The channel is full.
            anyio.BrokenResourceError: The reader closed its end.
            anyio.ClosedResourceError: This end is closed.
        """
        buffer = self._buffer
        if buffer.sender_closed:
            raise anyio.ClosedResourceError
        if buffer.receiver_closed:
            raise anyio.BrokenResourceError
        if buffer.full:
            if buffer.droppable is None:
                raise anyio.WouldBlock
            if not buffer.shed(buffer.droppable, item):
                return
        buffer.put(item)

    async def send(self, item: T_in) -> None:
        """Put `item`, waiting for room in a channel, in order of arrival.

        A cancelled sender has sent nothing. Gives way only when the channel is full.

        Raises:
            anyio.BrokenResourceError: The reader closed its end.
            anyio.ClosedResourceError: This end is closed.
        """
        while True:
            try:
                return self.send_nowait(item)
            except anyio.WouldBlock:
                await self._buffer.queue.room(self._buffer.parking.waiter())

    def close(self) -> None:
        """Close this end; the reader gets what is in the channel, then `anyio.EndOfStream`."""
        buffer = self._buffer
        buffer.sender_closed = True
        buffer.queue.dismiss()
        buffer.wake_all_readers()

    async def aclose(self) -> None:
        """Do what `close` does."""
        self.close()


class Receiver(ObjectReceiveStream[T_out]):
    """The reading end. Several tasks may use it; each item goes to one of them."""

    def __init__(self, buffer: Buffer[Any], take: Callable[[], T_out]) -> None:  # Any: only `take` sees items
        self._buffer = buffer
        self._take = take

    def receive_nowait(self) -> T_out:
        """Take the next item.

        Raises:
            anyio.WouldBlock: There is none now.
            anyio.EndOfStream: There will be none: the sender closed its end.
            anyio.ClosedResourceError: This end is closed.
        """
        return self._take()

    async def receive(self) -> T_out:
        """Take the next item, waiting for it. A cancelled reader has taken nothing.

        Gives way only when the channel is empty.

        Raises:
            anyio.EndOfStream: There will be none: the sender closed its end.
            anyio.ClosedResourceError: This end is closed.
        """
        while True:
            try:
                return self.receive_nowait()
            except anyio.WouldBlock:
                await self._buffer.wait_for_item()

    def close(self) -> None:
        """Close this end: items in the channel are dropped, senders get `anyio.BrokenResourceError`."""
        buffer = self._buffer
        buffer.receiver_closed = True
        buffer.queue.clear()
        buffer.queue.dismiss()
        buffer.wake_all_readers()

    async def aclose(self) -> None:
        """Do what `close` does."""
        self.close()


def channel(capacity: int) -> tuple[Sender[T], Receiver[T]]:
    """Make a channel of `capacity` items whose senders wait for room. An event loop must be running."""
    buffer: Buffer[T] = Buffer(parking(), capacity)
    return Sender(buffer), Receiver(buffer, buffer.take)


def subscription(capacity: int, *, droppable: Callable[[T], bool]) -> tuple[Sender[T], Receiver[T | Lost]]:
    """Make a channel that never makes its sender wait. An event loop must be running.

    Args:
        capacity: Items held for the reader.
        droppable: Tells whether the reader may miss an item. When the channel is full, an item it may miss is
            dropped; for one it may not miss, all queued ones it may miss are; if there are none, that item is
            lost too, and the reader is told to resync.
    """
    buffer: Buffer[T] = Buffer(parking(), capacity, droppable)
    return Sender(buffer), Receiver(buffer, buffer.take_or_tell)
