"""Suspend and wake tasks, with one interface over the primitives of asyncio and trio.

A `Waiter` is woken once and has one waiting task. On asyncio it is a future of the loop, on trio a task parked with
`wait_task_rescheduled`. anyio's events and streams cost several times as much, and its streams lose items under
native cancellation, so frequent waits are implemented here.

The rule that makes it safe under every kind of cancellation: a wake-up carries no item. A woken task takes the item
itself when it runs, and a task that is cancelled after it was woken leaves the item to the next.
"""

import sys
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import anyio
from msgspec import Struct

if TYPE_CHECKING:  # a program imports only the event loop that it runs on
    import asyncio

    import trio

Scope: TypeAlias = "anyio.CancelScope | trio.CancelScope"
"""A native cancel scope of the event loop, which is cheaper than anyio's generic constructor."""


class Waiter(Protocol):
    """The common interface of `asyncio.Future` and `TrioWaiter`."""

    def done(self) -> bool: ...
    def cancelled(self) -> bool: ...
    def set_result(self, value: Any, /) -> None:  # Any: it carries whatever its owner wakes it with
        """Wake the task with `value`. Must not be called when `done`."""

    def result(self) -> Any: ...  # Any: as above; `Reply` and `BoundedQueue` are typed
    def __await__(self) -> Generator[Any, None, Any]: ...  # Any: the traps of the event loop, and as above


class TrioWaiter:
    """A task parked with `trio.lowlevel.wait_task_rescheduled`, with the interface of `asyncio.Future`."""

    __slots__ = ("_cancelled", "_done", "_task", "_value")

    def __init__(self) -> None:
        self._task: trio.lowlevel.Task | None = None
        self._done = False
        self._cancelled = False
        self._value: Any = None  # Any: it carries whatever its owner wakes it with

    def done(self) -> bool:
        return self._done

    def cancelled(self) -> bool:
        return self._cancelled

    def set_result(self, value: Any, /) -> None:  # Any: as above
        """Wake the task with `value`. Must not be called when `done`."""
        self._done = True
        self._value = value
        if self._task is not None:
            task, self._task = self._task, None
            sys.modules["trio"].lowlevel.reschedule(task)

    def result(self) -> Any:  # Any: as above
        return self._value

    def __await__(self) -> Generator[Any, None, Any]:  # Any: the traps of the event loop, and as above
        if not self._done:
            lowlevel = sys.modules["trio"].lowlevel
            self._task = lowlevel.current_task()
            yield from lowlevel.wait_task_rescheduled(self._abort).__await__()
        return self._value

    def _abort(self, _raise_cancel: object) -> "trio.lowlevel.Abort":
        import trio

        self._task = None
        self._done = self._cancelled = True
        return trio.lowlevel.Abort.SUCCEEDED


def wake(waiter: Waiter | None, value: object = None) -> None:
    """Wake the task that waits there, if there is one."""
    if waiter is not None and not waiter.done():
        waiter.set_result(value)


class EventLoop(Struct, frozen=True):
    """The functions of the running event loop that the kernel uses.

    `spawn` starts a native task of the loop, with a coroutine that must not raise. The task is not awaited, and the
    caller must keep a reference to it, or it may be garbage-collected. `next` calls a function at the loop's next
    turn; `soon` does so from any thread and from a finalizer, at a higher cost. `protect` defers interrupts during a
    plain function and its callees.
    """

    waiter: Callable[[], Waiter]
    scope: Callable[..., Scope]  # `shield` and `deadline` by name
    now: Callable[[], float]  # seconds on the loop's clock, which `anyio.current_time` reads; in any thread
    task: Callable[[], object]  # the running one
    next: Callable[[Callable[[], None]], object]
    soon: Callable[[Callable[[], None]], object]
    spawn: Callable[[Coroutine[Any, Any, None], str, Context], object]  # Any: the traps of the event loop
    uncancel: Callable[[], None]  # withdraws native cancellation requests against the running task
    cancelled: type[BaseException]
    protect: Callable[[Callable[..., object]], object]


class Changes:
    """Wakes all tasks that wait for a change; each of them checks the new state itself."""

    __slots__ = ("_loop", "_waiting")

    def __init__(self, loop: EventLoop) -> None:
        self._loop = loop
        self._waiting: list[Waiter] = []

    def tell(self) -> None:
        for waiter in self._waiting:
            wake(waiter)

    async def next(self) -> None:
        waiter = self._loop.waiter()
        self._waiting.append(waiter)
        try:
            await waiter
        finally:
            self._waiting.remove(waiter)

    async def until(self, is_so: Callable[[], object]) -> None:
        """Wait until a condition holds. It is checked after each change."""
        while not is_so():
            await self.next()


def running_loop() -> object | None:
    """Return an object that identifies the running event loop of this thread, for comparison by `is`; None without
    one."""
    loop: object | None = None
    if (trio := sys.modules.get("trio")) is not None and trio.lowlevel.in_trio_run():
        loop = trio.lowlevel.current_trio_token()
    elif (asyncio := sys.modules.get("asyncio")) is not None:
        loop = asyncio._get_running_loop()
    return loop


def event_loop() -> EventLoop:
    """Return the interface of the running loop.

    Raises:
        RuntimeError: No event loop is running.
    """
    if (loop := running_loop()) is None:
        raise RuntimeError("no running event loop")
    return _interface_of(loop)


@lru_cache(maxsize=1)
def _interface_of(loop: Any) -> EventLoop:  # Any: trio's token, or asyncio's loop
    return _asyncio(loop) if hasattr(loop, "call_soon") else _trio(loop)


def _asyncio(loop: "asyncio.AbstractEventLoop") -> EventLoop:
    import asyncio

    return EventLoop(
        waiter=partial(asyncio.Future[Any], loop=loop),
        # found once: the lookup of the class costs as much as creating a scope
        scope=type(anyio.CancelScope()),
        now=loop.time,
        task=asyncio.current_task,
        next=loop.call_soon,
        soon=loop.call_soon_threadsafe,
        # never eager, even if the loop's task factory is
        spawn=lambda coroutine, name, context: asyncio.Task(coroutine, name=name, context=context),
        uncancel=_uncancel,
        cancelled=asyncio.CancelledError,
        protect=lambda _function: None,  # asyncio raises no interrupt inside a task
    )


def _uncancel() -> None:
    task = sys.modules["asyncio"].current_task()
    while task is not None and task.cancelling():
        task.uncancel()


def _trio(token: "trio.lowlevel.TrioToken") -> EventLoop:
    import trio

    return EventLoop(
        waiter=TrioWaiter,
        scope=trio.CancelScope,
        now=trio.lowlevel.current_clock().current_time,
        task=trio.lowlevel.current_task,
        next=token.run_sync_soon,
        soon=token.run_sync_soon,
        spawn=lambda coroutine, name, context: trio.lowlevel.spawn_system_task(
            lambda: coroutine, name=name, context=context
        ),
        uncancel=lambda: None,  # trio has no native cancellation apart from its scopes
        cancelled=trio.Cancelled,
        protect=trio.lowlevel.enable_ki_protection,
    )
