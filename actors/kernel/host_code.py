"""Call host code: functions of the program that uses this package. All modules call host code through this module.

Host code may raise anything: an error, an exit, an interrupt, a cancellation or a group of them. None of these may end
the component that calls the code. So each caller decides what follows a failure: it denies a call, returns an error to
the model, fails the ask with a typed error, or logs once and disables the function.

Two kinds of exception propagate, because they are not failures of host code: cancellations by the runtime, and
interrupts raised by a signal, which may hit any running code.
"""

import sys
from collections.abc import Awaitable, Callable
from math import inf
from typing import TypeVar

import anyio

from actors.interrupts import is_from_signal, is_raised_by_statement

R = TypeVar("R")
S = TypeVar("S")


def call_host(work: Callable[[], R], on_failure: Callable[[BaseException], S]) -> R | S:
    """Return the result of `work()`, or the result of `on_failure(error)` if `work` raises an exception.

    `on_failure` is the caller's policy: it returns a substitute, or raises one of our errors. Nothing is awaited here,
    so a cancellation can only come from the host code itself.
    """
    try:
        return work()
    except BaseException as error:  # host code may raise anything, including an exit
        if is_from_signal(error):
            raise
        return on_failure(error)


async def await_host(work: Callable[[], Awaitable[R]], on_failure: Callable[[BaseException], S]) -> R | S:
    """Return the result of `await work()`, or the result of `on_failure(error)` if `work` raises an exception.

    While the running task is being cancelled, exceptions propagate.
    """
    try:
        return await work()
    except BaseException as error:
        if not is_failure(error):
            raise
        return on_failure(error)


def is_failure(error: BaseException) -> bool:
    """Return True if awaited host code raised this error itself.

    Return False for a cancellation by the runtime, for an interrupt by a signal, and for the `GeneratorExit` that
    closes the coroutine, after which the coroutine must not return a value.
    """
    if isinstance(error, GeneratorExit) and not is_raised_by_statement(error):
        return False
    return not (_is_being_cancelled() or is_from_signal(error))


def _is_being_cancelled() -> bool:
    """Return True if the running task is being cancelled: by a scope around it, or natively on asyncio."""
    if anyio.current_effective_deadline() == -inf:
        return True
    asyncio = sys.modules.get("asyncio")
    task = asyncio.current_task() if asyncio is not None and asyncio._get_running_loop() else None
    return task is not None and bool(task.cancelling())


class Listener:
    """Callbacks of the host, which are disabled after one of them has raised.

    Args:
        on_failure: Called once, with the exception that disabled the callbacks.
    """

    __slots__ = ("_on_failure", "is_disabled")

    def __init__(self, on_failure: Callable[[BaseException], object]) -> None:
        self._on_failure = on_failure
        self.is_disabled: bool = False

    def call(self, work: Callable[[], R]) -> R | None:
        """Return the result of `work()`. Return None if it raises, or if an earlier callback has raised."""
        return None if self.is_disabled else call_host(work, self._disable)

    def _disable(self, error: BaseException) -> None:
        if not self.is_disabled:  # a nested call of another callback may have failed first
            self.is_disabled = True
            self._on_failure(error)
