"""Let a tool's thread run functions in the event loop, with `anyio.from_thread` or `trio.from_thread`.

Both libraries look up the event loop of the calling thread, which they register only for their own worker threads. The
threads of tools are not worker threads of a library, because no loop waits for them; this module registers them in the
same place. Neither library has a public name for that.

An exit exception raised in a callback or a task of asyncio ends the event loop. A function that a tool runs in the loop
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
    """Return a factory of context managers that register a thread as a worker thread of the running event loop."""
    return partial(_enter_loop, current_token())


@contextmanager
def _enter_loop(token: EventLoopToken) -> Generator[None]:
    backend = _containing_backend(token.backend_class)
    with _eventloop.claim_worker_thread(backend, token.native_token), _notify_trio(token.native_token):
        yield


def run_in(context: Context, work: Callable[[], R]) -> R:
    """Run `work` with a task's context variables, but marked as outside an event loop, so that it may run its own."""
    # anyio does not annotate the type of the returned token
    context.run(_eventloop.set_current_async_library, None)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    return context.run(work)


class _Exit:
    """Carries an exit exception from a callback in the event loop to the tool's thread, which raises it."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


@cache
def _containing_backend(backend: type[AsyncBackend]) -> type[AsyncBackend]:
    """Return a backend whose event loop survives an exit exception raised by a callback of a thread."""

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
    """Register the thread with trio, if the loop is trio's. Functions then run in system tasks, not in the tool's."""
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
