"""Interrupts: tell those that a signal delivered to the process from errors that code raised itself.

Used wherever code of the program is called (`actors.kernel.host_code`) or its values are read
(`actors.core.data.ingest`).
"""

import inspect
import signal
from collections.abc import Iterator
from functools import partial
from opcode import opmap
from types import CodeType, TracebackType
from typing import Any, TypeGuard

_RAISE = opmap["RAISE_VARARGS"]


def is_delivered(error: BaseException) -> bool:
    """Tell whether a signal raised this error, or one of the group that it is, in code that merely happened to run.

    Python's own handler of SIGINT raises without a frame, between two steps of the code or inside a call, while code
    that raises an interrupt itself does so by `raise`. Other handlers, those of the event loops and of the program
    included, are functions in the traceback.
    """
    if is_group(error):
        return any(map(is_delivered, error.exceptions))
    if isinstance(error, Exception):
        return False
    handlers = set(_handlers())
    if any(step.tb_frame.f_code in handlers for step in _steps(error.__traceback__)):
        return True
    return isinstance(error, KeyboardInterrupt) and error.__traceback__ is not None and not is_raised(error)


def is_group(error: BaseException | None) -> TypeGuard[BaseExceptionGroup[BaseException]]:
    """Return True if an error is a group of errors. Type checkers do not know of which, after `isinstance`."""
    return isinstance(error, BaseExceptionGroup)


def is_raised(error: BaseException) -> bool:
    """Tell whether a `raise` raised an error, and not the interpreter in the midst of the code."""
    steps = tuple(_steps(error.__traceback__))
    return bool(steps) and steps[-1].tb_frame.f_code.co_code[steps[-1].tb_lasti] == _RAISE


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
