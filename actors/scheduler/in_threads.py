"""Run blocking code of a tool call in a thread, and wait for its result in the event loop.

A call first waits for a slot of a pool (`actors.scheduler.threads`), which entitles it to one thread. The code in the
thread can use the call's context variables and event loop. A thread cannot be cancelled: if the caller is cancelled,
the thread continues, and its late result is discarded.
"""

import inspect
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Any

import anyio
from msgspec import Struct

from actors.errors import ThreadsBusy
from actors.kernel.event_loop import Waiter, event_loop, wake
from actors.scheduler.executor import Executor
from actors.scheduler.from_threads import loop_context, run_in
from actors.scheduler.threads import SlotRequest, Threads, ThreadSlot


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
