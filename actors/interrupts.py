"""Distinguish interrupts that a signal delivered to the process from errors that code raised itself.

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
    """Return True if a signal handler raised this error, or any error of this group, and not the running code.

    Python's SIGINT handler adds no frame and executes no `raise`. Other handlers, those of the event loops and of the
    program included, appear as frames in the traceback.
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
    """Return True if an error is an exception group. `isinstance` alone does not tell type checkers its members."""
    return isinstance(error, BaseExceptionGroup)


def is_raised(error: BaseException) -> bool:
    """Return True if a `raise` statement raised the error, and not the interpreter in the middle of other code."""
    steps = tuple(_steps(error.__traceback__))
    return bool(steps) and steps[-1].tb_frame.f_code.co_code[steps[-1].tb_lasti] == _RAISE


def _steps(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _handlers() -> Iterator[CodeType]:
    """Yield the code objects of the current signal handlers."""
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)  # Any: a function, however it is wrapped, or none
        while isinstance(handler, partial):
            handler = handler.func
        code = getattr(inspect.unwrap(handler), "__code__", None) if callable(handler) else None
        if code is not None:
            yield code
