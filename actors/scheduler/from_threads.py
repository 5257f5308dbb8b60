"""Let a tool's thread run functions in the event loop, with `anyio.from_thread` or `trio.from_thread`.

anyio and trio look up the event loop of the calling thread, which they register only for their own worker threads. The
threads of tools are not worker threads of a loop, because no loop waits for them. This module registers the threads of
tools in the same place. Neither library has a public name for this registration.

An exit exception (`SystemExit` or `KeyboardInterrupt`) in a callback or a task of asyncio ends the event loop. So a
function that a tool runs in the loop returns an exit exception as a value, and the tool's thread raises it.
"""

import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from contextvars import Context
from functools import cache, partial
from typing import Any, TypeVar

from anyio._core import _eventloop
from anyio.abc import AsyncBackend
from anyio.lowlevel import EventLoopToken, current_token

from actors.interrupts import is_from_signal

R = TypeVar("R")
LoopRegistration = Callable[[], AbstractContextManager[None]]


def loop_context() -> LoopRegistration:
    """Return a function that makes a tool's thread a worker thread of the running event loop.

    The thread calls the function and enters the context manager that it returns.
    """
    return partial(_enter_loop, current_token())


@contextmanager
def _enter_loop(token: EventLoopToken) -> Generator[None]:
    """Register the current thread as a worker thread of the event loop of `token` until the block ends."""
    backend = _exit_safe_backend(token.backend_class)
    with _eventloop.claim_worker_thread(backend, token.native_token), _register_with_trio(token.native_token):
        yield


def run_in(context: Context, work: Callable[[], R]) -> R:
    """Call `work` in `context`, the context of a task, but outside the event loop. `work` may then run another loop."""
    # anyio does not annotate the type of the token that this function returns
    context.run(_eventloop.set_current_async_library, None)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    return context.run(work)


class _ExitException:
    """An exit exception that a callback in the event loop raised. The tool's thread raises the exception again."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


@cache
def _exit_safe_backend(backend: type[AsyncBackend]) -> type[AsyncBackend]:
    """Return a subclass of an anyio backend that raises exit exceptions in the tool's thread, not in the event loop."""

    class ExitSafeBackend(backend):  # type: ignore[misc,valid-type]  # the base class is known only at run time
        @classmethod
        def run_async_from_thread(
            cls, func: Any, args: Any, token: Any
        ) -> Any:  # Any: as anyio declares them
            return _value_or_raise(super().run_async_from_thread(partial(_await_call, func), args, token))

        @classmethod
        def run_sync_from_thread(cls, func: Any, args: Any, token: Any) -> Any:  # Any: as anyio declares them
            return _value_or_raise(super().run_sync_from_thread(partial(_call_function, func), args, token))

    return ExitSafeBackend


async def _await_call(function: Callable[..., Awaitable[object]], *args: object) -> object:
    """Await a function in the event loop. Return an exit exception as a value, unless a signal has caused it."""
    try:
        return await function(*args)
    except (SystemExit, KeyboardInterrupt) as error:
        if is_from_signal(error):
            raise
        return _ExitException(error)


def _call_function(function: Callable[..., object], *args: object) -> object:
    """Call a function in the event loop. Return an exit exception as a value, unless a signal has caused it."""
    try:
        return function(*args)
    except (SystemExit, KeyboardInterrupt) as error:
        if is_from_signal(error):
            raise
        return _ExitException(error)


def _value_or_raise(answer: object) -> object:
    """Return `answer`, the result of a function that ran in the event loop.

    If `answer` stands for an exit exception that the function raised, raise the exception.
    """
    if isinstance(answer, _ExitException):
        raise answer.error
    return answer


@contextmanager
def _register_with_trio(token: object) -> Generator[None]:
    """Register the current thread with trio until the block ends, if trio runs the event loop.

    The functions that the thread sends to the loop then run in system tasks of trio.
    """
    trio = sys.modules.get("trio")
    if trio is None or not isinstance(token, trio.lowlevel.TrioToken):
        yield
        return
    parent_data = trio._threads.PARENT_TASK_DATA
    parent_data.token, parent_data.abandon_on_cancel = token, True
    try:
        yield
    finally:
        del parent_data.token, parent_data.abandon_on_cancel
