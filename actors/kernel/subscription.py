"""Subscriptions: bounded streams whose reader may be slow or gone, and slows nobody.

Their ends are anyio object streams. An item stays where it is until a reader that runs takes it, and a wake-up carries
none, so nothing is lost when a host cancels natively. When a subscription is full, items that may be missed are dropped
first, then any; and the reader is told, before the next item, how many it missed and whether it must read the log to
catch up.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream

from actors.kernel.parking import Waiter, parking

T = TypeVar("T")
T_in = TypeVar("T_in", contravariant=True)
T_out = TypeVar("T_out", covariant=True)


@dataclass(frozen=True, slots=True)
class Lost:
    """Items were dropped because the reader was slow.

    Args:
        count: How many, since the last time it was told.
        resync: Whether one of them may not be missed: read it where it is kept, by its sequence number.

    It arrives before the items that were there when they were lost, so a reader that resyncs may
    then see some items again.
    """

    count: int
    resync: bool


class Buffer(Generic[T]):
    """What the two ends share."""

    __slots__ = (
        "capacity",
        "droppable",
        "lost",
        "parking",
        "queue",
        "readers",
        "receiver_closed",
        "resync",
        "sender_closed",
    )

    def __init__(self, capacity: int, droppable: Callable[[T], bool]) -> None:
        if capacity < 1:
            raise ValueError(f"A subscription must hold at least one item; capacity is {capacity}.")
        self.parking = parking()
        self.capacity = capacity
        self.queue: deque[T] = deque()
        self.droppable = droppable
        self.readers: deque[Waiter] = deque()
        self.sender_closed = self.receiver_closed = False
        self.lost = 0
        self.resync = False

    def put(self, item: T) -> None:
        """Append `item`, or drop by the rule if there is no room."""
        if len(self.queue) < self.capacity or self._makes_room(item):
            self.queue.append(item)
            if self.readers:
                self.wake_reader()

    def take(self) -> T | Lost:
        """Return what was lost, if anything was and the reader has not been told; else remove the oldest item.

        Raises what `Receiver.receive_nowait` raises.
        """
        if self.receiver_closed:
            raise anyio.ClosedResourceError
        if self.lost:
            lost = Lost(self.lost, self.resync)
            self.lost, self.resync = 0, False
            return lost
        if not self.queue:
            raise anyio.EndOfStream if self.sender_closed else anyio.WouldBlock
        return self.queue.popleft()

    def _makes_room(self, item: T) -> bool:
        """Make room for `item` by dropping; False if it was `item` itself that was dropped."""
        if not self.droppable(item):
            kept = [queued for queued in self.queue if not self.droppable(queued)]
            if dropped := len(self.queue) - len(kept):
                self.queue = deque(kept)
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
            anyio.BrokenResourceError: The reader closed its end.
            anyio.ClosedResourceError: This end is closed.
        """
        buffer = self._buffer
        if buffer.sender_closed:
            raise anyio.ClosedResourceError
        if buffer.receiver_closed:
            raise anyio.BrokenResourceError
        buffer.put(item)

    async def send(self, item: T_in) -> None:
        """Do what `send_nowait` does, without giving way."""
        self.send_nowait(item)

    def close(self) -> None:
        """Close this end; the reader gets what is left, then `anyio.EndOfStream`."""
        buffer = self._buffer
        buffer.sender_closed = True
        buffer.wake_all_readers()

    async def aclose(self) -> None:
        """Do what `close` does."""
        self.close()


class Receiver(ObjectReceiveStream[T_out | Lost]):
    """The reading end. Several tasks may use it; each item goes to one of them."""

    def __init__(self, buffer: Buffer[Any]) -> None:  # Any: a reader of `T_out` takes what it is given
        self._buffer = buffer

    def receive_nowait(self) -> T_out | Lost:
        """Take the next item, or word of those that were lost.

        Raises:
            anyio.WouldBlock: There is none now.
            anyio.EndOfStream: There will be none: the sender closed its end.
            anyio.ClosedResourceError: This end is closed.
        """
        item: T_out | Lost = self._buffer.take()
        return item

    async def receive(self) -> T_out | Lost:
        """Take the next item, waiting for it. A cancelled reader has taken nothing.

        Gives way only when there is none.

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
        """Close this end: what is left is dropped, senders get `anyio.BrokenResourceError`."""
        buffer = self._buffer
        buffer.receiver_closed = True
        buffer.queue.clear()
        buffer.wake_all_readers()

    async def aclose(self) -> None:
        """Do what `close` does."""
        self.close()


def subscription(capacity: int, *, droppable: Callable[[T], bool]) -> tuple[Sender[T], Receiver[T]]:
    """Make a stream that never makes its sender wait. An event loop must be running.

    Args:
        capacity: Items held for the reader.
        droppable: Tells whether the reader may miss an item. When there is no room, an item it may miss is
            dropped; for one it may not miss, all queued ones it may miss are; if there are none, that item is
            lost too, and the reader is told to resync.
    """
    buffer: Buffer[T] = Buffer(capacity, droppable)
    return Sender(buffer), Receiver(buffer)
