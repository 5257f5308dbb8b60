"""A tool's thread may have the event loop run something, with `anyio.from_thread` or `trio.from_thread`.

Both look in the thread for the loop that it belongs to, and only their own worker threads say so. Ours are threads of
their own, which no loop waits for, so they say it in the same place. Neither library has a public name for that.

An exit exception that is raised in a callback or a task of asyncio ends its event loop. What a tool has the loop run
therefore returns such an exception as a value, and the tool's thread raises it.
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

from actors.interrupts import is_delivered

R = TypeVar("R")
Belonging = Callable[[], AbstractContextManager[None]]


def loop_context() -> Belonging:
    """Return a context in which a thread belongs to the event loop that runs here."""
    return partial(_enter_loop, current_token())


@contextmanager
def _enter_loop(token: EventLoopToken) -> Generator[None]:
    backend = _containing_backend(token.backend_class)
    with _eventloop.claim_worker_thread(backend, token.native_token), _notify_trio(token.native_token):
        yield


def run_in(context: Context, work: Callable[[], R]) -> R:
    """Run `work` with the variables of a task, outside of its event loop: it may run one of its own."""
    # of what its token is, anyio does not say
    context.run(_eventloop.set_current_async_library, None)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    return context.run(work)


class _Exit:
    """An exit exception that was raised by what the loop ran."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


@cache
def _containing_backend(backend: type[AsyncBackend]) -> type[AsyncBackend]:
    """Return a backend whose event loop goes on though what a thread has it run raises an exit exception."""

    class Containing(backend):  # type: ignore[misc,valid-type]  # a class that is known when it runs
        @classmethod
        def run_async_from_thread(cls, func: Any, args: Any, token: Any) -> Any:  # Any: as anyio has them
            return _value(super().run_async_from_thread(partial(_await_call, func), args, token))

        @classmethod
        def run_sync_from_thread(cls, func: Any, args: Any, token: Any) -> Any:  # Any: as above
            return _value(super().run_sync_from_thread(partial(_call_function, func), args, token))

    return Containing


async def _await_call(function: Callable[..., Awaitable[object]], *args: object) -> object:
    try:
        return await function(*args)
    except (SystemExit, KeyboardInterrupt) as error:
        if is_delivered(error):
            raise
        return _Exit(error)


def _call_function(function: Callable[..., object], *args: object) -> object:
    try:
        return function(*args)
    except (SystemExit, KeyboardInterrupt) as error:
        if is_delivered(error):
            raise
        return _Exit(error)


def _value(answer: object) -> object:
    if isinstance(answer, _Exit):
        raise answer.error
    return answer


@contextmanager
def _notify_trio(token: object) -> Generator[None]:
    """Say so to trio, if the loop is trio's. What is run then is a task of its own, and no part of the tool's."""
    trio = sys.modules.get("trio")
    if trio is None or not isinstance(token, trio.lowlevel.TrioToken):
        yield
        return
    told = trio._threads.PARENT_TASK_DATA
    told.token, told.abandon_on_cancel = token, True
    try:
        yield
    finally:
        del told.token, told.abandon_on_cancel
