"""Call host code: functions of the program that uses this package, called in the same way everywhere.

Host code may raise anything: an error, an exit, an interrupt, a cancellation of its own, or a group of them. None of
these may end the calling component, so each call site defines the consequence of a failure: it denies a call, returns
an error to the model, fails the ask with a typed error, or logs once and disables the function.

Two things propagate. A cancellation by the runtime reaches only code that waits, and ends the wait. An interrupt that
a signal raised may strike any running code, and is not a failure of that code.
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
    """Return the result of host code, or the result of `failed` for any exception.

    `failed` is the policy of the call site: it returns a substitute, or raises an error of ours. Nothing is awaited
    here, so a cancellation can only come from the host code itself.
    """
    try:
        return work()
    except BaseException as error:  # it may be anything, including an exit
        if is_delivered(error):
            raise
        return failed(error)


async def await_host(work: Callable[[], Awaitable[R]], failed: Callable[[BaseException], S]) -> R | S:
    """Await host code and return its result, or the result of `failed` for any exception.

    While the running task is being cancelled, exceptions propagate.
    """
    try:
        return await work()
    except BaseException as error:
        if not is_failure(error):
            raise
        return failed(error)


def is_failure(error: BaseException) -> bool:
    """Return True if awaited host code raised this error itself.

    Otherwise it is a cancellation by the runtime, an interrupt by a signal, or the close of the coroutine, after
    which Python forbids returning a value.
    """
    if isinstance(error, GeneratorExit) and not is_raised(error):
        return False
    return not (_is_told_to_end() or is_delivered(error))


def _is_told_to_end() -> bool:
    """Return True if a scope around the running task was cancelled, or (on asyncio) the task itself."""
    if anyio.current_effective_deadline() == -inf:
        return True
    asyncio = sys.modules.get("asyncio")
    task = asyncio.current_task() if asyncio is not None and asyncio._get_running_loop() else None
    return task is not None and bool(task.cancelling())


class Listener:
    """Callbacks of the host. After one has raised, none of them is called again.

    Args:
        off: Called once, with the exception.
    """

    __slots__ = ("_off", "is_off")

    def __init__(self, off: Callable[[BaseException], object]) -> None:
        self._off = off
        self.is_off: bool = False

    def call(self, work: Callable[[], R]) -> R | None:
        """Return the result of a callback; None if it raises, or a callback has raised before."""
        return None if self.is_off else call_host(work, self._switch_off)

    def _switch_off(self, error: BaseException) -> None:
        if not self.is_off:  # otherwise a nested call has failed first
            self.is_off = True
            self._off(error)
