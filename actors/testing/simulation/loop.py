"""One run on trio whose clock is virtual and whose scheduler is seeded: the same seed, the same order of steps.

Time passes only when no task can run, and then it jumps to the next deadline. trio shuffles the tasks that can run;
here it does so with the seed's own chance, from an order that is the same in every process. A sleep is a timer of the
clock, at a third of what trio's costs, which is a cancel scope that is cancelled. The garbage collector is held back
meanwhile: when it runs depends on what ran before.
"""

import gc
import heapq
import importlib
import logging
import math
from collections.abc import Awaitable, Callable, Iterator, MutableSequence
from contextlib import contextmanager
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from actors.errors import ConfigError

if TYPE_CHECKING:
    from types import ModuleType

    from trio.lowlevel import Abort, Task

T = TypeVar("T")


def run(seed: int, main: Callable[[], Awaitable[T]], seconds: float) -> T:
    """Run `main` in virtual time.

    Args:
        seconds: Virtual time after which it is ended.

    Raises:
        ConfigError: trio is not installed.
        TimeoutError: It did not end in time: something waits for what never comes.
    """
    try:
        trio = importlib.import_module("trio")
        core = importlib.import_module("trio._core._run")
    except ImportError as error:
        raise ConfigError("A simulation needs trio: pip install 'llm-actors[trio]'") from error

    async def bounded() -> T:
        with trio.move_on_after(seconds):
            return await main()
        raise TimeoutError(f"Something still waits after {seconds:g} virtual seconds")

    clock = _VirtualClock(core, trio.sleep)
    with (
        _seeded(core, seed),
        _unconnected(core),
        _replaced(trio, "sleep", clock.sleep),
        _uncollected(),
        _silent(),
    ):
        result: T = trio.run(bounded, clock=clock)
    return result


class _VirtualClock:
    """A clock that stands still while a task can run, and jumps to the next deadline or timer when none can.

    trio's own `MockClock` does the same, but takes two more turns of the loop for each jump, and statistics.
    """

    def __init__(self, core: "ModuleType", sleep: Callable[[float], Awaitable[None]]) -> None:
        self._core = core
        self._sleep = sleep  # trio's own
        self._now = 0.0
        self._timers: list[tuple[float, int, Task]] = []
        self._waiting: set[int] = set()  # numbers of the timers that nobody was cancelled at
        self._numbers = count()

    def start_clock(self) -> None:
        """Begin at zero."""

    def current_time(self) -> float:
        return self._now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Jump to a deadline. trio asks when no task can run; what was put off to the loop's next turn comes first."""
        due = min(deadline, self._timers[0][0]) if self._timers else deadline
        if math.isinf(due):
            return due
        if self._core.GLOBAL_RUN_CONTEXT.runner.entry_queue.size() == 0:
            self._now = max(self._now, due)
            self._wake()
        return 0.0

    def _wake(self) -> None:
        while self._timers and self._timers[0][0] <= self._now:
            _, number, task = heapq.heappop(self._timers)
            if number in self._waiting:
                self._waiting.remove(number)
                self._core.reschedule(task)

    async def sleep(self, seconds: float) -> None:
        """Wait, as `trio.sleep` does."""
        if not 0 < seconds < math.inf:
            await self._sleep(seconds)
            return
        number = next(self._numbers)

        def aborted(_raise: object) -> "Abort":
            self._waiting.remove(number)
            return self._core.Abort.SUCCEEDED  # type: ignore[no-any-return]

        self._waiting.add(number)
        heapq.heappush(self._timers, (self._now + seconds, number, self._core.current_task()))
        await self._core.wait_task_rescheduled(aborted)


class _Chance(Random):
    """A seed's own chance, for a scheduler that mostly has one task to run."""

    def shuffle(self, x: MutableSequence[Any]) -> None:  # Any: whatever it is given
        if len(x) > 1:
            super().shuffle(x)


@contextmanager
def _seeded(core: "ModuleType", seed: int) -> Iterator[None]:
    """Have trio's scheduler follow a seed; it has no other door to its chance."""
    chance = _Chance(seed)
    with _replaced(core, "_r", chance), _replaced(core, "_ALLOW_DETERMINISTIC_SCHEDULING", True):
        yield


@contextmanager
def _unconnected(core: "ModuleType") -> Iterator[None]:
    """Have trio ask the system for news only when somebody called for the loop, and do without its instruments.

    It does both at each turn of the loop, of which a run has ten thousands, and there are neither sockets nor threads.
    """

    class Unconnected(core.TheIOManager):  # type: ignore[misc, name-defined]  # trio's own, by platform
        def get_events(self, timeout: float) -> Any:  # Any: as it gives them, by platform
            is_called = timeout > 0 or core.GLOBAL_RUN_CONTEXT.runner.entry_queue.size()
            return super().get_events(timeout) if is_called else []

    with _replaced(core, "TheIOManager", Unconnected), _replaced(core, "Instruments", lambda _: {}):
        yield


@contextmanager
def _replaced(module: "ModuleType", name: str, by: object) -> Iterator[None]:
    before = getattr(module, name)
    setattr(module, name, by)
    try:
        yield
    finally:
        setattr(module, name, before)


@contextmanager
def _uncollected() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def _silent() -> Iterator[None]:
    """Say nothing of what goes wrong on purpose."""
    logger = logging.getLogger("actors")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)
