"""Manage all deadlines of a system with one heap and one task, without a cancel scope per message.

Most deadlines are withdrawn long before they pass, because the answer arrives. A withdrawn timer stays in the heap;
when withdrawn timers outnumber the pending ones, the heap is rebuilt, so its size stays within a constant factor.
"""

import heapq
import itertools
from collections.abc import Callable
from math import inf

from msgspec import Struct

from actors.kernel.event_loop import Changes, EventLoop

_SMALL = 64  # withdrawn timers that do not justify a rebuild


class Timer(Struct, eq=False):
    """One pending action; None after it ran or was withdrawn."""

    action: Callable[[], None] | None


class Deadlines:
    """Calls actions at their times, ordered by time and then by arrival. `pending`: the number of pending actions."""

    def __init__(self, loop: EventLoop) -> None:
        self._now, self._scope = loop.now, loop.scope
        self._sooner = Changes(loop)
        self._heap: list[tuple[float, int, Timer]] = []
        self._count = itertools.count()
        self.pending: int = 0

    def at(self, when: float, action: Callable[[], None]) -> Timer:
        """Call `action` at `when` (loop time, seconds), from the task of `run`. The action must not raise."""
        timer = Timer(action)
        heapq.heappush(self._heap, (when, next(self._count), timer))
        self.pending += 1
        if self._heap[0][2] is timer:
            self._sooner.tell()
        return timer

    def withdraw(self, timer: Timer) -> None:
        """Withdraw `timer`; no effect if its time has come already."""
        if timer.action is None:
            return
        timer.action = None
        self.pending -= 1
        if len(self._heap) > 2 * self.pending + _SMALL:
            self._heap = [entry for entry in self._heap if entry[2].action is not None]
            heapq.heapify(self._heap)

    async def run(self) -> None:
        """Call actions at their times until cancelled."""
        while True:
            while self._heap and self._heap[0][0] <= self._now():
                timer = heapq.heappop(self._heap)[2]
                action, timer.action = timer.action, None
                if action is not None:
                    self.pending -= 1
                    action()
            with self._scope(deadline=self._heap[0][0] if self._heap else inf):
                await self._sooner.next()
