"""How a task waits: one shape over the event loop's own primitive.

A `Waiter` is woken once and has one task waiting on it. On asyncio it is the loop's future, on trio a task
parked with `wait_task_rescheduled`. anyio's events and streams cost several times as much, and its streams lose
items when a host cancels tasks natively; so frequent waits are done here.

The rule that makes it safe under every kind of cancellation: a wake-up carries no item. A task that was woken
takes the item itself, once it runs; and one that is cancelled after it was woken leaves the item to the next.
"""

import sys
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import anyio
from msgspec import Struct

if TYPE_CHECKING:  # a program pays for the event loop that it runs on, and for no other
    import asyncio

    import trio

Scope: TypeAlias = "anyio.CancelScope | trio.CancelScope"
"""A cancel scope of the event loop's own, which costs less than to ask anyio for one each time."""


class Waiter(Protocol):
    """What `asyncio.Future` and `TrioWaiter` have in common."""

    def done(self) -> bool: ...
    def cancelled(self) -> bool: ...
    def set_result(self, value: Any, /) -> None:  # Any: it carries whatever its owner wakes it with
        """Wake the task with `value`. Must not be called when `done`."""

    def result(self) -> Any: ...  # Any: as above; `Reply` and `BoundedQueue` are typed
    def __await__(self) -> Generator[Any, None, Any]: ...  # Any: the traps of the event loop, and as above


class TrioWaiter:
    """A task parked with `trio.lowlevel.wait_task_rescheduled`, in the shape of `asyncio.Future`."""

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
    """Wake the task that waits there, if one still does."""
    if waiter is not None and not waiter.done():
        waiter.set_result(value)


class EventLoop(Struct, frozen=True):
    """What the kernel needs of the running event loop.

    `spawn` starts a task of the loop's own, of a coroutine that must not raise; nobody waits for it, and its starter
    must keep a reference to it, or it may be garbage collected. `next` calls a function at the loop's next turn; `soon`
    does that from any thread and from a finalizer, at a higher cost. `protect` keeps interrupts out of a plain function
    and what it calls.
    """

    waiter: Callable[[], Waiter]
    scope: Callable[..., Scope]  # `shield` and `deadline` by name
    now: Callable[[], float]  # seconds on the loop's clock, which `anyio.current_time` reads; in any thread
    task: Callable[[], object]  # the running one
    next: Callable[[Callable[[], None]], object]
    soon: Callable[[Callable[[], None]], object]
    spawn: Callable[[Coroutine[Any, Any, None], str, Context], object]  # Any: the traps of the event loop
    uncancel: Callable[[], None]  # withdraw native cancellation requests against the running task
    cancelled: type[BaseException]
    protect: Callable[[Callable[..., object]], object]


class Changes:
    """Wakes all who wait for something to change; each looks for itself what it is."""

    __slots__ = ("_parking", "_waiting")

    def __init__(self, parking: EventLoop) -> None:
        self._parking = parking
        self._waiting: list[Waiter] = []

    def tell(self) -> None:
        for waiter in self._waiting:
            wake(waiter)

    async def next(self) -> None:
        waiter = self._parking.waiter()
        self._waiting.append(waiter)
        try:
            await waiter
        finally:
            self._waiting.remove(waiter)

    async def until(self, is_so: Callable[[], object]) -> None:
        """Wait until something is so, of which each change is told."""
        while not is_so():
            await self.next()


def running_loop() -> object | None:
    """Return what stands for the event loop that runs in this thread, to be compared with `is`; None without one."""
    loop: object | None = None
    if (trio := sys.modules.get("trio")) is not None and trio.lowlevel.in_trio_run():
        loop = trio.lowlevel.current_trio_token()
    elif (asyncio := sys.modules.get("asyncio")) is not None:
        loop = asyncio._get_running_loop()
    return loop


def parking() -> EventLoop:
    """Return the running loop's parking.

    Raises:
        RuntimeError: No event loop is running.
    """
    if (loop := running_loop()) is None:
        raise RuntimeError("no running event loop")
    return _parking(loop)


@lru_cache(maxsize=1)
def _parking(loop: Any) -> EventLoop:  # Any: trio's token, or asyncio's loop
    return _asyncio(loop) if hasattr(loop, "call_soon") else _trio(loop)


def _asyncio(loop: "asyncio.AbstractEventLoop") -> EventLoop:
    import asyncio

    return EventLoop(
        waiter=partial(asyncio.Future, loop=loop),
        # found once: to ask for the loop's class costs as much as to make one
        scope=type(anyio.CancelScope()),
        now=loop.time,
        task=asyncio.current_task,
        next=loop.call_soon,
        soon=loop.call_soon_threadsafe,
        # never eager, whatever the loop's factory is
        spawn=lambda coroutine, name, context: asyncio.Task(coroutine, name=name, context=context),
        uncancel=_uncancel,
        cancelled=asyncio.CancelledError,
        protect=lambda _function: None,  # it raises no interrupt in the midst of a task
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
        uncancel=lambda: None,  # it has no native cancellation beside its scopes
        cancelled=trio.Cancelled,
        protect=trio.lowlevel.enable_ki_protection,
    )
