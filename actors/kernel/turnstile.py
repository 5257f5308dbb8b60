"""Limit the computation between two polls of the event loop, and measure the length of its turns.

Sessions use it. Thousands of them may have work at once, when they are asked together or their answers arrive
together. An event loop runs all ready tasks before it polls its sockets and timers again, so it would block until all
of them are done. So each task passes through here before it computes: a limited number at a time, while the others
wait in order of arrival, and the loop polls in between. Without a crowd, no task waits.

Continuing work passes before new work: if thousands of sessions are asked at once, the first answers are read while
most asks still wait. Otherwise every turn would end at the end. New work keeps a quarter of the places, so that
endless streams cannot block it. Messages that wait for an actor also count as continuing work: while there are any,
new work keeps one place. Tenants start in turn.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Generator, Hashable
from threading import local
from time import perf_counter
from typing import TypeVar

import anyio.to_thread
from msgspec import Struct, field

from actors.kernel.dispatch import Dispatcher
from actors.kernel.event_loop import EventLoop, Waiter, event_loop, running_loop

T = TypeVar("T")

WIDTH = 32
"""Tasks that may start to compute between two polls."""
LAGS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds in seconds of the lag histogram; one more bucket holds longer lags."""


class LagCounts(Struct):
    """The lengths of the event loop's turns that contained computation.

    Args:
        counts: Number of turns per bucket of `LAGS`.
        seconds: Their total.
        longest: The longest turn, in seconds.
    """

    counts: list[int] = field(default_factory=lambda: [0] * (len(LAGS) + 1))
    seconds: float = 0.0
    longest: float = 0.0

    def note(self, seconds: float) -> None:
        """Count one turn."""
        self.counts[bisect_left(LAGS, seconds)] += 1
        self.seconds += seconds
        self.longest = max(self.longest, seconds)


class _NewWork:
    """Tasks with new work: first in, first out within a share, and shares in turn."""

    __slots__ = ("_queues",)

    def __init__(self) -> None:
        self._queues: dict[Hashable, deque[Waiter]] = {}

    def __bool__(self) -> bool:
        return bool(self._queues)

    def append(self, share: Hashable, waiter: Waiter) -> None:
        """Add a task."""
        self._queues.setdefault(share, deque()).append(waiter)

    def popleft(self) -> Waiter:
        """Remove and return the next task. The rest of its share moves behind the other shares."""
        share, queue = next(iter(self._queues.items()))
        waiter = queue.popleft()
        del self._queues[share]
        if queue:
            self._queues[share] = queue
        return waiter


class Turnstile:
    """The turnstile of one event loop.

    Args:
        loop: The interface of the event loop.
        width: Tasks that may start to compute between two polls.
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
        self._new = _NewWork()
        self._dispatchers: set[Dispatcher] = set()
        self._passed = 0
        self._since = 0.0
        self._is_called = False
        self.lags: LagCounts = LagCounts()

    async def begin(self, dispatcher: Dispatcher, share: Hashable = "") -> None:
        """Wait until this task may start new work for the actors of `dispatcher`: at once if few others compute.

        Tasks of different shares, such as tenants, start in turn. A task that is cancelled while it waits loses its
        place.
        """
        self._dispatchers.add(dispatcher)
        if self._waiting or self._new or self._passed >= self._width:
            self._new.append(share, waiter := self._loop.waiter())
            await self._wait(waiter)
        else:
            self._pass()

    async def enter(self) -> None:
        """Wait until this task may continue its work. Cancellation: as in `begin`."""
        if self._waiting or self._passed >= self._width:
            await self.give_way()
        else:
            self._pass()

    async def give_way(self) -> None:
        """Yield to the event loop during a long computation, and return at a later turn. Waiting tasks go first."""
        self._waiting.append(waiter := self._loop.waiter())
        await self._wait(waiter)

    async def _wait(self, waiter: Waiter) -> None:
        if not self._is_called:
            self._call()
        await waiter

    def _pass(self) -> None:
        self._passed += 1
        if not self._is_called:
            self._call()

    def _call(self) -> None:
        """Schedule a call at the event loop's next turn."""
        self._is_called, self._since = True, self._clock()
        self._loop.next(self._turn)

    def _turn(self) -> None:
        """Admit the next tasks. The event loop has polled its sockets in the meantime."""
        self.lags.note(self._clock() - self._since)
        self._is_called, self._passed = False, 0
        is_behind = any(dispatcher.is_behind for dispatcher in self._dispatchers)
        self._let_through(self._new, 1 if is_behind else self._width // 4)
        self._let_through(self._waiting, self._width)
        if not is_behind:
            self._let_through(self._new, self._width)
        if not self._new:
            self._dispatchers.clear()
        if self._passed:
            self._call()

    def _let_through(self, queue: deque[Waiter] | _NewWork, most: int) -> None:
        """Admit tasks in order of arrival, up to `most` in this turn."""
        while queue and self._passed < most:
            waiter = queue.popleft()
            if not waiter.done():  # its task was cancelled
                waiter.set_result(None)
                self._passed += 1


async def compute(work: Callable[[], T], *, is_long: bool) -> T:
    """Return the result of a pure computation without slices, in a thread if it `is_long`.

    The interpreter switches threads every few milliseconds, so the event loop continues. A cancelled caller does not
    wait for the thread.
    """
    return await anyio.to_thread.run_sync(work, abandon_on_cancel=True) if is_long else work()


async def in_turns(slices: Generator[None, None, T]) -> T:
    """Return the result of a long computation that yields after each slice, to let the event loop run."""
    here = turnstile()
    while True:
        try:
            next(slices)
        except StopIteration as end:
            outcome: T = end.value
            return outcome
        await here.give_way()


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
