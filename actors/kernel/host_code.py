"""Host code: functions of the program that uses this package, called in one way wherever they are called.

Host code may raise anything: an error, an exit, an interrupt or a cancellation of its own making, or a group of them.
None of that may end what called it, so each place that calls host code says what comes of a failure instead. It denies,
returns an error that the model is shown, fails the ask with a typed error, or logs once and calls the function no more.

Two things pass. A cancellation that the runtime asked for reaches only code that waits, and ends the wait. An interrupt
that a signal delivered to the process strikes whatever code happens to run, and is not that code's failure.
"""

import sys
from collections.abc import Awaitable, Callable
from math import inf
from typing import TypeVar

import anyio

from actors.interrupts import is_delivered, is_raised

R = TypeVar("R")
S = TypeVar("S")


def call_host(work: Callable[[], R], failed: Callable[[BaseException], S]) -> R | S:
    """Return what host code returns, or what `failed` makes of whatever it raises.

    `failed` is the policy of the place that calls: it returns what stands for the value, or raises an error of ours.
    Nothing is awaited here, so a cancellation is one that the host code itself raised.
    """
    try:
        return work()
    except BaseException as error:  # it may be anything, an exit included
        if is_delivered(error):
            raise
        return failed(error)


async def await_host(work: Callable[[], Awaitable[R]], failed: Callable[[BaseException], S]) -> R | S:
    """Return what host code gives to await, or what `failed` makes of whatever it raises.

    While the running task is told to end, whatever is raised propagates.
    """
    try:
        return await work()
    except BaseException as error:
        if not is_failure(error):
            raise
        return failed(error)


def is_failure(error: BaseException) -> bool:
    """Tell whether awaited host code raised this error itself.

    Else it is a cancellation that the runtime asked for, an interrupt that a signal delivered, or the end of the
    coroutine, behind which Python lets nothing be returned.
    """
    if isinstance(error, GeneratorExit) and not is_raised(error):
        return False
    return not (_is_told_to_end() or is_delivered(error))


def _is_told_to_end() -> bool:
    """Tell whether a scope around the running task was cancelled, or the task itself, as asyncio can."""
    if anyio.current_effective_deadline() == -inf:
        return True
    asyncio = sys.modules.get("asyncio")
    task = asyncio.current_task() if asyncio is not None and asyncio._get_running_loop() else None
    return task is not None and bool(task.cancelling())


class Listener:
    """Functions of the host's that are told what happens. Once one has raised, none of them is called any more.

    Args:
        off: Told what it raised, once.
    """

    __slots__ = ("_off", "is_off")

    def __init__(self, off: Callable[[BaseException], object]) -> None:
        self._off = off
        self.is_off = False

    def call(self, work: Callable[[], R]) -> R | None:
        """Return what one of the functions returns; None if it raises, or one has raised before."""
        return None if self.is_off else call_host(work, self._failed)

    def _failed(self, error: BaseException) -> None:
        if not self.is_off:  # else it raised within the call that is the first to fail
            self.is_off = True
            self._off(error)
