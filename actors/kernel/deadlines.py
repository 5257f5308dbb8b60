"""All deadlines of a system: one heap, one task, no cancel scope per message.

Most deadlines are withdrawn long before they pass, because the answer came. A withdrawn entry stays in the
heap as a husk; when husks outnumber live entries the heap is rebuilt, so it stays within a constant
factor of the deadlines that are really pending.
"""

import heapq
import itertools
from collections.abc import Callable

import anyio

from actors.kernel.parking import Parking, Waiter, wake

_SMALL = 64  # husks that are not worth a rebuild


class Timer:
    """One pending action. `action` is None once it ran or was withdrawn."""

    __slots__ = ("action",)

    def __init__(self, action: Callable[[], None]) -> None:
        self.action: Callable[[], None] | None = action


class Deadlines:
    """Calls actions at their times, in order of time and then of arrival.

    `husks` counts the withdrawn entries still in the heap.

    Args:
        parking: The loop it waits on.
        launch: Starts the one task that waits, when the first deadline is set.
    """

    def __init__(self, parking: Parking, launch: Callable[[], object]) -> None:
        self._parking = parking
        self._launch = launch
        self._launched = False
        self._heap: list[tuple[float, int, Timer]] = []
        self._count = itertools.count()
        self.husks = 0
        self._sleeper: Waiter | None = None

    def __len__(self) -> int:
        return len(self._heap) - self.husks

    def at(self, when: float, action: Callable[[], None]) -> Timer:
        """Call `action` at `when` (loop time, seconds), from the deadline task. It must not raise."""
        if not self._launched:
            self._launched = True
            self._launch()
        timer = Timer(action)
        heapq.heappush(self._heap, (when, next(self._count), timer))
        if self._heap[0][2] is timer:
            wake(self._sleeper)
        return timer

    def withdraw(self, timer: Timer) -> None:
        """Forget `timer`; nothing happens if its time has come already."""
        if timer.action is None:
            return
        timer.action = None
        self.husks += 1
        if self.husks > _SMALL and self.husks * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].action is not None]
            heapq.heapify(self._heap)
            self.husks = 0

    async def run(self) -> None:
        """Wait and act until cancelled."""
        while True:
            self._act()
            self._sleeper = waiter = self._parking.waiter()
            deadline = self._heap[0][0] if self._heap else float("inf")
            with anyio.CancelScope(deadline=deadline):
                await waiter

    def _act(self) -> None:
        heap, now = self._heap, self._parking.now()
        while heap and heap[0][0] <= now:
            timer = heapq.heappop(heap)[2]
            action, timer.action = timer.action, None
            if action is None:
                self.husks -= 1
            else:
                action()
                heap = self._heap
