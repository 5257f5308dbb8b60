"""One run on trio whose clock is virtual and whose scheduler is seeded: the same seed, the same order of steps.

Time passes only when no task can run, and then it jumps to the next deadline. trio shuffles the tasks that can run;
here it does so with the seed's own chance, from an order that is the same in every process. The garbage collector is
held back meanwhile: when it runs depends on what ran before.
"""

import gc
import importlib
import logging
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
        testing = importlib.import_module("trio.testing")
    except ImportError as error:
        raise ConfigError("A simulation needs trio: pip install 'llm-actors[trio]'") from error

    async def bounded() -> T:
        with trio.move_on_after(seconds):
            return await main()
        raise TimeoutError(f"Something still waits after {seconds:g} virtual seconds")

    clock = testing.MockClock(autojump_threshold=0)
    with _seeded(core, seed), _uncollected(), _silent():
        result: T = trio.run(bounded, clock=clock)
    return result


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
