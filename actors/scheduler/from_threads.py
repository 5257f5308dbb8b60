"""Let tools in threads call into the event loop with `anyio.from_thread` or `trio.from_thread`.

Both libraries look up the event loop in data of the current thread, which only their own worker threads set. Our
threads are not workers of a loop, because no loop may wait for them, so this module sets the same data. Neither library
has a public function for that.

On asyncio, an exit exception (`SystemExit`, `KeyboardInterrupt`) in a callback or task ends the event loop. Functions
that a tool runs in the loop therefore return this exception as a value, and the tool's thread raises it.
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
    """Run `work` with a task's context variables, but marked as outside an event loop, so that it may run its own."""
    # anyio does not annotate the type of the returned token
    context.run(_eventloop.set_current_async_library, None)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    return context.run(work)


class _Exit:
    """An exit exception that was raised by what the loop ran."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


@cache
def _containing_backend(backend: type[AsyncBackend]) -> type[AsyncBackend]:
    """Return a backend whose event loop survives an exit exception in a function that a thread runs in it."""

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
