"""Run trio with a virtual clock and a seeded scheduler, so that runs with the same seed execute the same steps in the
same order.

Time advances only when no task can run; it then jumps to the next deadline. trio shuffles the runnable tasks. Here the
shuffle uses a random generator with the given seed, and starts from an order that is the same in every process. A timer
of the clock replaces trio's own sleep, which takes three times as long because it opens a cancel scope. The garbage
collector is paused, because the time at which it runs depends on what the process did before.

Real threads do not use virtual time, and a seed cannot schedule them. The runtime passes some work to threads: sync
tools and approval functions, and the conversion of large results. A simulation calls this work in the event loop after
a delay, in one step that takes no virtual time. Two effects of threads are kept: the work may begin after its call was
cancelled or closed, so that its result is late, and pending work occupies a thread slot.
"""

import gc
import heapq
import importlib
import logging
import math
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, MutableSequence
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from actors.errors import ConfigError
from actors.scheduler.threads import CONVERSION_THREADS, THREADS, ThreadSlot

if TYPE_CHECKING:
    from types import ModuleType

    from trio.lowlevel import Abort, Task

T = TypeVar("T")
LATE_PROBABILITY = 0.1
"""Probability that work is delayed so long that its call is probably closed before the work begins."""
LATE_SECONDS = 8.0
"""Additional delay of late work in seconds."""


def run(seed: int, main: Callable[[], Awaitable[T]], max_seconds: float) -> T:
    """Run `main` in virtual time and return its result.

    Args:
        seed: Decides the order of steps.
        main: The async function to run.
        max_seconds: Limit of the virtual time.

    Raises:
        ConfigError: trio is not installed.
        TimeoutError: `main` did not end within the limit, probably because a task waits forever.
    """
    try:
        trio = importlib.import_module("trio")
        core = importlib.import_module("trio._core._run")
    except ImportError as error:
        raise ConfigError("A simulation needs trio: pip install 'llm-actors[trio]'") from error

    async def run_with_timeout() -> T:
        with trio.move_on_after(max_seconds):
            return await main()
        raise TimeoutError(
            f"The simulation has not ended after {max_seconds:g} virtual seconds, so a task waits forever"
        )

    clock = _VirtualClock(core, trio.sleep)
    with (
        _seed_scheduler(core, seed),
        _skip_system_events(core),
        _replace_attribute(trio, "sleep", clock.sleep),
        _pause_collection(),
        _suppress_logs(),
    ):
        result: T = trio.run(run_with_timeout, clock=clock)
    return result


class _VirtualClock:
    """A clock that stands still while a task can run, and otherwise jumps to the next deadline or timer.

    trio's `MockClock` does the same, but needs two more iterations of the event loop for each jump.
    """

    def __init__(self, core: "ModuleType", sleep: Callable[[float], Awaitable[None]]) -> None:
        self._core = core
        self._sleep = sleep  # the original `trio.sleep`
        self._now = 0.0
        self._timers: list[tuple[float, int, Task]] = []
        self._waiting: set[int] = set()  # numbers of the timers whose task was not cancelled
        self._numbers = count()

    def start_clock(self) -> None:
        """Do nothing, because the clock starts at zero when it is created."""

    def current_time(self) -> float:
        return self._now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Advance the clock to the deadline, or to an earlier timer. Return the real seconds for which trio must wait.

        trio calls this method when no task can run. If another thread has passed work to the event loop, the clock
        stands still.
        """
        due = min(deadline, self._timers[0][0]) if self._timers else deadline
        if math.isinf(due):
            return due
        if self._core.GLOBAL_RUN_CONTEXT.runner.entry_queue.size() == 0:
            self._now = max(self._now, due)
            self._wake_due_tasks()
        return 0.0

    def _wake_due_tasks(self) -> None:
        while self._timers and self._timers[0][0] <= self._now:
            _, number, task = heapq.heappop(self._timers)
            if number in self._waiting:
                self._waiting.remove(number)
                self._core.reschedule(task)

    async def sleep(self, seconds: float) -> None:
        """Sleep in virtual time. Replaces `trio.sleep`."""
        if not 0 < seconds < math.inf:
            await self._sleep(seconds)
            return
        number = next(self._numbers)

        def abort(_raise: object) -> "Abort":
            self._waiting.remove(number)
            return self._core.Abort.SUCCEEDED  # type: ignore[no-any-return]

        self._waiting.add(number)
        heapq.heappush(self._timers, (self._now + seconds, number, self._core.current_task()))
        await self._core.wait_task_rescheduled(abort)


class _SeededRandom(Random):
    """A seeded random generator, optimised for a scheduler that usually has only one runnable task."""

    def shuffle(self, x: MutableSequence[Any]) -> None:  # Any: as in `Random.shuffle`
        if len(x) > 1:
            super().shuffle(x)


@contextmanager
def _seed_scheduler(core: "ModuleType", seed: int) -> Generator[None]:
    """Replace the random generator of trio's scheduler. trio has no public interface for this."""
    chance = _SeededRandom(seed)
    with (
        _replace_attribute(core, "_r", chance),
        _replace_attribute(core, "_ALLOW_DETERMINISTIC_SCHEDULING", True),
    ):
        yield


def _no_instruments(_: object) -> dict[str, object]:
    return {}


@contextmanager
def _skip_system_events(core: "ModuleType") -> Generator[None]:
    """Let trio poll for system events only after a call from another thread, and disable trio's instruments.

    trio polls and runs instruments in each iteration of the event loop. A simulation has tens of thousands of
    iterations, but no sockets and no threads.
    """

    class Unconnected(core.TheIOManager):  # type: ignore[misc, name-defined]  # trio's class differs by platform
        def get_events(self, timeout: float) -> Any:  # Any: the type differs by platform
            is_called = timeout > 0 or core.GLOBAL_RUN_CONTEXT.runner.entry_queue.size()
            return super().get_events(timeout) if is_called else []  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

    with (
        _replace_attribute(core, "TheIOManager", Unconnected),
        _replace_attribute(core, "Instruments", _no_instruments),
    ):
        yield


@contextmanager
def _replace_attribute(module: "ModuleType", name: str, value: object) -> Generator[None]:
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


@contextmanager
def _pause_collection() -> Generator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def _suppress_logs() -> Generator[None]:
    """Suppress log messages during the block, because the simulation causes the logged faults intentionally."""
    logger = logging.getLogger("actors")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)


@asynccontextmanager
async def inline_threads(random: Random, running: Counter[str]) -> AsyncGenerator[None]:
    """Until the block ends, run work that is meant for threads in the event loop. Work that has not begun is dropped.

    Args:
        random: Decides the delays.
        running: Counts pending work under the key `threads`.
    """

    async def run_later(slot: ThreadSlot, work: Callable[[], object], seconds: float) -> None:
        try:
            await anyio.sleep(seconds)
            work()
        finally:
            running["threads"] -= 1
            slot.give_back()

    def start_work(slot: ThreadSlot, work: Callable[[], object]) -> None:
        running["threads"] += 1
        seconds = random.expovariate(2.0) + (LATE_SECONDS if random.random() < LATE_PROBABILITY else 0.0)
        tasks.start_soon(run_later, slot, work, seconds)

    before = THREADS.begin, CONVERSION_THREADS.begin
    async with anyio.create_task_group() as tasks:
        THREADS.begin = CONVERSION_THREADS.begin = start_work
        try:
            yield
        finally:
            THREADS.begin, CONVERSION_THREADS.begin = before
            tasks.cancel_scope.cancel()
