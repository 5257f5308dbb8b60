"""One run on trio whose clock is virtual and whose scheduler is seeded: the same seed, the same order of steps.

Time passes only when no task can run, and then it jumps to the next deadline. trio shuffles the tasks that can run;
here it does so with the seed's own chance, from an order that is the same in every process. The garbage collector is
held back meanwhile: when it runs depends on what ran before.
"""

import gc
import importlib
import logging
import math
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING, TypeVar

from actors.errors import ConfigError

if TYPE_CHECKING:
    from types import ModuleType

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

    clock = _VirtualClock(core)
    with _seeded(core, seed), _uncollected(), _silent():
        result: T = trio.run(bounded, clock=clock)
    return result


class _VirtualClock:
    """A clock that stands still while a task can run, and jumps to the next deadline when none can.

    trio's own `MockClock` does the same, but takes two more turns of the loop for each jump, and statistics.
    """

    def __init__(self, core: "ModuleType") -> None:
        self._core = core
        self._now = 0.0

    def start_clock(self) -> None:
        """Begin at zero."""

    def current_time(self) -> float:
        return self._now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Jump to a deadline. trio asks when no task can run; what was put off to the loop's next turn comes first."""
        if math.isinf(deadline):
            return deadline
        if self._core.GLOBAL_RUN_CONTEXT.runner.entry_queue.size() == 0:
            self._now = max(self._now, deadline)
        return 0.0


@contextmanager
def _seeded(core: "ModuleType", seed: int) -> Iterator[None]:
    """Have trio's scheduler follow a seed."""
    before = core._r, core._ALLOW_DETERMINISTIC_SCHEDULING
    core._r, core._ALLOW_DETERMINISTIC_SCHEDULING = Random(seed), True  # type: ignore[attr-defined] # noqa: S311  trio has no other door to its chance
    try:
        yield
    finally:
        core._r, core._ALLOW_DETERMINISTIC_SCHEDULING = before  # type: ignore[attr-defined]  # as above


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
