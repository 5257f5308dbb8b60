"""Limit the computation between two polls of the event loop, and measure the length of its turns.

Sessions use this module. Thousands of sessions may have work at once, because they are asked together or their answers
arrive together. An event loop runs all ready tasks before it polls its sockets and timers again, so these tasks would
block the loop until all of them are done. So each task passes the turnstile before it computes. In each turn of the
loop, a limited number of tasks pass, and the others wait in order of arrival. With few tasks, no task waits.

Continuing work passes before new work: if thousands of sessions are asked at once, the first answers are read while
most asks still wait. Otherwise all turns would end late, at about the same time. A quarter of the places in each turn
is reserved for new work, so that endless streams cannot block it. Messages that wait for an actor also count as
continuing work. While such messages exist, only one place is reserved. Tenants take turns to start new work.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Generator, Hashable
from threading import local
from time import perf_counter
from typing import TypeVar

import anyio.to_thread
from msgspec import Struct, field

from actors.kernel.event_loop import EventLoop, Waiter, event_loop, running_loop
from actors.kernel.shared import Dispatcher

T = TypeVar("T")

WIDTH = 32
"""Maximum number of tasks that may start to compute between two polls."""
LAGS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the lag histogram's buckets, in seconds; one more bucket counts longer lags."""


class LagCounts(Struct):
    """Statistics about the lengths of those event-loop turns in which tasks computed.

    Args:
        counts: Number of turns per bucket of `LAGS`.
        seconds: Total length of these turns.
        longest: The longest turn, in seconds.
    """

    counts: list[int] = field(default_factory=lambda: [0] * (len(LAGS) + 1))
    seconds: float = 0.0
    longest: float = 0.0

    def count_turn(self, seconds: float) -> None:
        """Count one turn of this length, in seconds."""
        self.counts[bisect_left(LAGS, seconds)] += 1
        self.seconds += seconds
        self.longest = max(self.longest, seconds)


class _NewWorkQueue:
    """A queue of tasks with new work, in which shares (such as tenants) take turns.

    The tasks of one share are served in order of arrival.
    """

    __slots__ = ("_queues",)

    def __init__(self) -> None:
        self._queues: dict[Hashable, deque[Waiter]] = {}

    def __bool__(self) -> bool:
        return bool(self._queues)

    def append(self, share: Hashable, waiter: Waiter) -> None:
        """Add the waiter of a task to its share."""
        self._queues.setdefault(share, deque()).append(waiter)

    def popleft(self) -> Waiter:
        """Remove and return the next waiter. The other waiters of its share move to the end of the queue."""
        share, queue = next(iter(self._queues.items()))
        waiter = queue.popleft()
        del self._queues[share]
        if queue:
            self._queues[share] = queue
        return waiter


class Turnstile:
    """A limit on the number of tasks that compute in one turn of an event loop. A task passes here before it computes.

    Args:
        loop: The interface of the event loop.
        width: Maximum number of tasks that may start to compute between two polls.
        clock: Returns seconds.
    """

    __slots__ = (
        "_clock",
        "_dispatchers",
        "_is_called",
        "_loop",
        "_new",
        "_passed",
        "_since",
        "_waiting",
        "_width",
        "lags",
    )

    def __init__(
        self, loop: EventLoop, width: int = WIDTH, clock: Callable[[], float] = perf_counter
    ) -> None:
        self._loop, self._width, self._clock = loop, width, clock
        self._waiting: deque[Waiter] = deque()
        self._new = _NewWorkQueue()
        self._dispatchers: set[Dispatcher] = set()
        self._passed = 0
        self._since = 0.0
        self._is_called = False
        self.lags: LagCounts = LagCounts()

    async def wait_to_begin(self, dispatcher: Dispatcher, share: Hashable = "") -> None:
        """Wait until this task may start new work for the actors of `dispatcher`. Return at once if few tasks compute.

        Tasks of different shares, such as tenants, start in turn. If the task is cancelled while it waits, it loses its
        place.
        """
        self._dispatchers.add(dispatcher)
        if self._waiting or self._new or self._passed >= self._width:
            self._new.append(share, waiter := self._loop.waiter())
            await self._await_turn(waiter)
        else:
            self._admit_caller()

    async def wait_to_continue(self) -> None:
        """Wait until this task may continue its work. Return at once if few tasks compute.

        If the task is cancelled while it waits, it loses its place.
        """
        if self._waiting or self._passed >= self._width:
            await self.yield_turn()
        else:
            self._admit_caller()

    async def yield_turn(self) -> None:
        """Yield to the event loop during a long computation, and return in a later turn.

        Tasks that already wait go first.
        """
        self._waiting.append(waiter := self._loop.waiter())
        await self._await_turn(waiter)

    async def _await_turn(self, waiter: Waiter) -> None:
        if not self._is_called:
            self._schedule_turn()
        await waiter

    def _admit_caller(self) -> None:
        """Count the running task as admitted in this turn."""
        self._passed += 1
        if not self._is_called:
            self._schedule_turn()

    def _schedule_turn(self) -> None:
        """Schedule `_on_next_turn` for the event loop's next turn."""
        self._is_called, self._since = True, self._clock()
        self._loop.next(self._on_next_turn)

    def _on_next_turn(self) -> None:
        """Admit the next tasks. The event loop has polled its sockets since the last turn."""
        self.lags.count_turn(self._clock() - self._since)
        self._is_called, self._passed = False, 0
        if not (self._waiting or self._new):  # the common case, because few tasks compute at once
            self._dispatchers.clear()
            return
        is_behind = any(dispatcher.has_ready_actors for dispatcher in self._dispatchers)
        # new work gets its reserved places first, and at the end the places that continuing work left free
        self._admit(self._new, 1 if is_behind else self._width // 4)
        self._admit(self._waiting, self._width)
        if not is_behind:
            self._admit(self._new, self._width)
        if not self._new:
            self._dispatchers.clear()
        if self._passed:
            self._schedule_turn()

    def _admit(self, queue: deque[Waiter] | _NewWorkQueue, limit: int) -> None:
        """Admit tasks from `queue` until `limit` tasks have been admitted in this turn."""
        while queue and self._passed < limit:
            waiter = queue.popleft()
            if not waiter.done():  # a cancelled task has left its waiter in the queue
                waiter.set_result(None)
                self._passed += 1


async def compute(work: Callable[[], T], *, is_long: bool) -> T:
    """Return the result of `work()`, a pure computation that cannot yield. If `is_long`, run it in a thread.

    Meanwhile the event loop continues, because the interpreter switches threads every few milliseconds. A cancelled
    caller does not wait for the thread.
    """
    return await anyio.to_thread.run_sync(work, abandon_on_cancel=True) if is_long else work()


async def run_slices(slices: Generator[None, None, T]) -> T:
    """Run a long computation slice by slice, and return its result. After each slice, the event loop runs."""
    here = turnstile()
    while True:
        try:
            next(slices)
        except StopIteration as end:
            outcome: T = end.value
            return outcome
        await here.yield_turn()


_HERE = local()


def turnstile() -> Turnstile:
    """Return the turnstile of the running event loop, shared by all its users.

    Raises:
        RuntimeError: No event loop is running.
    """
    loop = running_loop()
    if getattr(_HERE, "loop", None) is not loop or loop is None:
        _HERE.loop, _HERE.turnstile = loop, Turnstile(event_loop())
    found: Turnstile = _HERE.turnstile
    return found
