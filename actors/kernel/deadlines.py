"""Manage all deadlines of a system with one heap and one task, instead of a cancel scope per message.

Most deadlines are withdrawn long before they pass, because the query is answered. A withdrawn timer stays in the heap.
The heap is rebuilt when most of its timers are withdrawn, so its size stays proportional to the number of pending
timers.
"""

import heapq
import itertools
from collections.abc import Callable
from math import inf

from msgspec import Struct

from actors.kernel.event_loop import Changes, EventLoop

_SMALL = 64  # the heap is not rebuilt for this number of withdrawn timers or fewer


class Timer(Struct, eq=False):
    """A scheduled action. `action` becomes None when the action runs or is withdrawn."""

    action: Callable[[], None] | None


class Deadlines:
    """A schedule of actions, each to be called at a given time.

    Actions for the same time are called in the order in which they were added. `pending` is the number of actions that
    were neither called nor withdrawn.
    """

    def __init__(self, loop: EventLoop) -> None:
        self._now, self._scope = loop.now, loop.scope
        self._sooner = Changes(loop)
        self._heap: list[tuple[float, int, Timer]] = []
        self._count = itertools.count()
        self.pending: int = 0

    def call_at(self, when: float, action: Callable[[], None]) -> Timer:
        """Call `action` at the loop time `when`, in seconds. The task that executes `run` makes the call.

        `action` must not raise.
        """
        timer = Timer(action)
        heapq.heappush(self._heap, (when, next(self._count), timer))
        self.pending += 1
        if self._heap[0][2] is timer:
            self._sooner.notify()
        return timer

    def withdraw(self, timer: Timer) -> None:
        """Withdraw the action of `timer`. No effect if the action has already run."""
        if timer.action is None:
            return
        timer.action = None
        self.pending -= 1
        if len(self._heap) > 2 * self.pending + _SMALL:
            self._heap = [entry for entry in self._heap if entry[2].action is not None]
            heapq.heapify(self._heap)

    async def run(self) -> None:
        """Call each action at its time, until this task is cancelled."""
        while True:
            while self._heap and self._heap[0][0] <= self._now():
                timer = heapq.heappop(self._heap)[2]
                action, timer.action = timer.action, None
                if action is not None:
                    self.pending -= 1
                    action()
            with self._scope(deadline=self._heap[0][0] if self._heap else inf):
                await self._sooner.wait_for_change()
