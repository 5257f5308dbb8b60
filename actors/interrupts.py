"""Distinguish interrupts that a signal handler raised from errors that the running code raised.

`actors.kernel.host_code` uses this module when it calls functions of the host program, and `actors.core.data.ingest`
when it reads the program's values.
"""

import inspect
import signal
from collections.abc import Iterator
from functools import partial
from opcode import opmap
from types import CodeType, TracebackType
from typing import Any, TypeGuard

_RAISE = opmap["RAISE_VARARGS"]


def is_from_signal(error: BaseException) -> bool:
    """Return True if a signal handler, and not the running code, raised this error.

    For a group, return True if a signal handler raised any error in the group. A handler that is a Python function has
    a frame in the traceback. Python's own SIGINT handler has none, so its `KeyboardInterrupt` is recognised because no
    `raise` statement raised it.
    """
    if is_group(error):
        return any(map(is_from_signal, error.exceptions))
    if isinstance(error, Exception):
        return False
    handlers = set(_handler_codes())
    if any(step.tb_frame.f_code in handlers for step in _traceback_steps(error.__traceback__)):
        return True
    return (
        isinstance(error, KeyboardInterrupt)
        and error.__traceback__ is not None
        and not is_raised_by_statement(error)
    )


def is_group(error: BaseException | None) -> TypeGuard[BaseExceptionGroup[BaseException]]:
    """Return True if the error is an exception group. Type checkers then know the type of its members."""
    return isinstance(error, BaseExceptionGroup)


def is_raised_by_statement(error: BaseException) -> bool:
    """Return True if a `raise` statement raised the error, and False if the interpreter itself raised it."""
    steps = tuple(_traceback_steps(error.__traceback__))
    return bool(steps) and steps[-1].tb_frame.f_code.co_code[steps[-1].tb_lasti] == _RAISE


def _traceback_steps(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _handler_codes() -> Iterator[CodeType]:
    """Yield the code objects of the installed signal handlers."""
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(
            number
        )  # Any: a function, a wrapper of a function, a constant or None
        while isinstance(handler, partial):
            handler = handler.func
        code = getattr(inspect.unwrap(handler), "__code__", None) if callable(handler) else None
        if code is not None:
            yield code
