"""Host code: functions of the program that uses this package, called in one way wherever they are called.

Host code may raise anything: an error, an exit, an interrupt or a cancellation of its own making, or a group of them.
None of that may end what called it, so each place that calls host code says what comes of a failure instead. It denies,
returns an error that the model is shown, fails the ask with a typed error, or logs once and calls the function no more.

Two things pass. A cancellation that the runtime asked for reaches only code that waits, and ends the wait. An interrupt
that a signal delivered to the process strikes whatever code happens to run, and is not that code's failure.
"""

import inspect
import signal
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from opcode import opmap
from types import CodeType, TracebackType
from typing import Any, TypeVar

R = TypeVar("R")
S = TypeVar("S")

_RAISE = opmap["RAISE_VARARGS"]


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


async def await_host(
    work: Callable[[], Awaitable[R] | R],
    failed: Callable[[BaseException], S],
    is_stopped: Callable[[], bool],
) -> R | S:
    """Return what host code returns or gives to await, or what `failed` makes of whatever it raises.

    `is_stopped`: whether the runtime has asked the running task to end. Then whatever is raised propagates.
    """
    try:
        value: Any = work()  # Any: a value, or what gives one
        returned: R = await value if inspect.isawaitable(value) else value
        return returned
    except GeneratorExit:  # thrown in from outside: Python lets nothing be returned after this one
        raise
    except BaseException as error:
        if is_stopped() or is_delivered(error):
            raise
        return failed(error)


class Hook:
    """A function of the host's that is told what happens. Once it has raised, it is called no more.

    Args:
        function: The host's.
        off: Told what it raised, once.
    """

    __slots__ = ("_function", "_off", "is_off")

    def __init__(self, function: Callable[..., object], off: Callable[[BaseException], object]) -> None:
        self._function, self._off = function, off
        self.is_off = False

    def __call__(self, *arguments: object) -> None:
        if not self.is_off:
            call_host(partial(self._function, *arguments), self._failed)

    def _failed(self, error: BaseException) -> None:
        if not self.is_off:
            self.is_off = True
            self._off(error)


def is_delivered(error: BaseException) -> bool:
    """Tell whether a signal raised this error, or one of the group that it is, in code that merely happened to run.

    Python's own handler of SIGINT raises without a frame, between two steps of the code or inside a call, while code
    that raises an interrupt itself does so by `raise`. Other handlers, those of the event loops and of the program
    included, are functions in the traceback.
    """
    if isinstance(error, BaseExceptionGroup):
        return any(map(is_delivered, error.exceptions))
    if isinstance(error, Exception):
        return False
    handlers = set(_handlers())
    last: TracebackType | None = None
    for last in _steps(error.__traceback__):
        if last.tb_frame.f_code in handlers:
            return True
    if not isinstance(error, KeyboardInterrupt) or last is None:
        return False
    return last.tb_frame.f_code.co_code[last.tb_lasti] != _RAISE


def _steps(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _handlers() -> Iterator[CodeType]:
    """Yield the code of the functions that handle signals now."""
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)  # Any: a function, however it is wrapped, or none
        while isinstance(handler, partial):
            handler = handler.func
        code = getattr(inspect.unwrap(handler), "__code__", None) if callable(handler) else None
        if code is not None:
            yield code
