"""Run blocking code of a tool call in a thread, and wait for its result in the event loop.

A call first waits for a slot of a pool (`actors.scheduler.threads`). A slot is the right to use one thread. The code in
the thread can use the call's context variables and event loop. A thread cannot be cancelled: if the caller is
cancelled, the thread continues, and its late result is discarded.

A tool's thread may run functions in the event loop, with `anyio.from_thread` or `trio.from_thread`. anyio and trio look
up the event loop of the calling thread, which they register only for their own worker threads. The threads of tools are
not worker threads of a loop, because no loop waits for them. This module registers the threads of tools in the same
place. Neither library has a public name for this registration.

An exit exception (`SystemExit` or `KeyboardInterrupt`) in a callback or a task of asyncio ends the event loop. So a
function that a tool runs in the loop returns an exit exception as a value, and the tool's thread raises it.
"""

import inspect
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from contextvars import Context, copy_context
from functools import cache, partial
from typing import Any, TypeVar

import anyio
from anyio._core import _eventloop
from anyio.abc import AsyncBackend
from anyio.lowlevel import EventLoopToken, current_token
from msgspec import Struct

from actors.errors import ThreadsBusy
from actors.interrupts import is_from_signal
from actors.kernel.event_loop import Waiter, event_loop, wake
from actors.scheduler.executor import Executor
from actors.scheduler.threads import SlotRequest, Threads, ThreadSlot

R = TypeVar("R")
LoopRegistration = Callable[[], AbstractContextManager[None]]


class CaughtException(Struct, frozen=True):
    """An exception that code in a thread raised. The thread returns the exception as a value."""

    error: BaseException


async def wait_for_slot(executor: Executor, pool: Threads, limit: int) -> ThreadSlot:
    """Wait for a thread slot of a pool. At most `limit` slots may be in use.

    Raises:
        ThreadsBusy: No slot became free in time, or none can become free.
    """
    here = event_loop()
    waiter = here.waiter()
    request = SlotRequest(executor.tenant, executor.key, limit, partial(here.soon, partial(wake, waiter)))
    with anyio.move_on_after(executor.limits.wait):
        try:
            pool.request_slot(request)
            if not request.is_answered:
                await waiter
            return request.result()
        except BaseException:  # the request may have received a slot just before the cancellation
            pool.withdraw(request)
            raise
    raise ThreadsBusy(f"all {limit} threads for tools were busy for {executor.limits.wait} s")


async def run_in_slot(slot: ThreadSlot, work: Callable[[], object]) -> Any:  # Any: `work` may return anything
    """Run `work` in the thread of a slot. Return its value, or its exception as a `CaughtException`.

    If the caller is cancelled, the thread continues.
    """
    here, context, thread = event_loop(), copy_context(), loop_context()
    waiter = here.waiter()

    def run() -> None:
        try:
            with thread():
                value: object = run_in(context, work)
        except BaseException as error:  # returned as a value; raising it would only end the thread
            value = CaughtException(error)
        try:
            here.soon(partial(_deliver_result, waiter, value))
        except RuntimeError:  # the event loop has ended
            _discard_result(value)

    slot.run(run)
    try:
        return await waiter
    except BaseException:
        slot.abandon()
        if waiter.done() and not waiter.cancelled():  # a result arrived despite the cancellation
            _discard_result(waiter.result())
        raise


def _deliver_result(waiter: Waiter, value: object) -> None:
    """Pass the result of a thread to its call. If the call no longer waits, discard the result."""
    if waiter.done():
        _discard_result(value)
    else:
        waiter.set_result(value)


def _discard_result(value: object) -> None:
    """Discard the result of a thread. A coroutine is closed, so that Python does not warn that it was never awaited."""
    if inspect.iscoroutine(value):
        value.close()


def loop_context() -> LoopRegistration:
    """Return a function that returns a context manager for a tool's thread.

    Inside the block, the thread is a worker thread of the event loop that ran when `loop_context` was called.
    """
    return partial(_enter_loop, current_token())


@contextmanager
def _enter_loop(token: EventLoopToken) -> Generator[None]:
    """Register the current thread as a worker thread of the event loop of `token` until the block ends."""
    backend = _exit_safe_backend(token.backend_class)
    with _eventloop.claim_worker_thread(backend, token.native_token), _register_with_trio(token.native_token):
        yield


def run_in(context: Context, work: Callable[[], R]) -> R:
    """Call `work` with the context variables of a task, but marked as outside of any event loop.

    `work` may therefore run an event loop of its own.
    """
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
