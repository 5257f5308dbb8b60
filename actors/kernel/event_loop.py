"""Suspend and wake tasks, with one interface for the primitives of asyncio and trio.

A task suspends itself by awaiting a `Waiter`, and is woken once. On asyncio, the waiter is a future of the loop. On
trio, it parks the task with `wait_task_rescheduled`. anyio's events and streams cost several times as much, and anyio's
streams lose items under native cancellation, so frequent waits are implemented here.

A queue that uses waiters is safe under every form of cancellation, because a wake-up carries no item. The woken task
takes the item from the queue when it runs. If the task is cancelled before it runs, the item stays for the next task.

A forked child process has neither the loops nor the other threads of its parent. So a module whose state depends on
them resets that state in the child (`reset_after_fork`).
"""

import os
import sys
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import anyio
from msgspec import Struct

if TYPE_CHECKING:
    import asyncio

    import trio

Scope: TypeAlias = "anyio.CancelScope | trio.CancelScope"
"""A native cancel scope of the event loop, which is cheaper than anyio's generic constructor."""


class Waiter(Protocol):
    """The common interface of `asyncio.Future` and `TrioWaiter`."""

    def done(self) -> bool: ...
    def cancelled(self) -> bool: ...
    def set_result(self, value: Any, /) -> None:  # Any: a task is woken with a value of any type
        """Wake the task with `value`. Must not be called on a waiter that is done."""

    def result(self) -> Any: ...  # Any: the waker chooses the value; `Reply` and `BoundedQueue` are typed
    def __await__(self) -> Generator[Any, None, Any]: ...  # Any: the loop and the waker choose the values


class TrioWaiter:
    """A task parked with `trio.lowlevel.wait_task_rescheduled`, with the interface of `asyncio.Future`."""

    __slots__ = ("_cancelled", "_done", "_task", "_value")

    def __init__(self) -> None:
        self._task: trio.lowlevel.Task | None = None
        self._done = False
        self._cancelled = False
        self._value: Any = None  # Any: a task is woken with a value of any type

    def done(self) -> bool:
        return self._done

    def cancelled(self) -> bool:
        return self._cancelled

    def set_result(self, value: Any, /) -> None:  # Any: the waker chooses the value, as in `Waiter`
        """Wake the task with `value`. Must not be called on a waiter that is done."""
        self._done = True
        self._value = value
        if self._task is not None:
            task, self._task = self._task, None
            sys.modules["trio"].lowlevel.reschedule(task)

    def result(self) -> Any:  # Any: the waker chooses the value, as in `Waiter`
        return self._value

    def __await__(self) -> Generator[Any, None, Any]:  # Any: the waker chooses the value, as in `Waiter`
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


class TrioTurnQueue:
    """A queue of functions that a system task calls at trio's next turn. The task is parked between the turns.

    trio's own `run_sync_soon` (here `soon`) works in every thread, because it wakes the loop through a socket, and
    therefore takes twice as long. It is used only at the end of trio's run, when no more system tasks can be started.
    """

    __slots__ = ("_due", "_ends", "_is_running", "_parked", "_soon")

    def __init__(self, soon: Callable[[Callable[[], None]], object]) -> None:
        self._soon = soon
        self._due: list[Callable[[], None]] = []
        self._parked: trio.lowlevel.Task | None = None
        self._is_running = self._ends = False

    def call_next(self, work: Callable[[], None]) -> None:
        """Call `work` at the next turn, after functions that were added earlier. `work` must not raise."""
        self._due.append(work)
        self._ends = False
        if self._is_running:
            self._wake()
            return
        try:
            sys.modules["trio"].lowlevel.spawn_system_task(self._run, name="turns", context=Context())
            self._is_running = True
        except RuntimeError:  # trio's run is ending and starts no more system tasks
            self._soon(self._call_due)

    def end_idle_task(self) -> None:
        """End the system task once no function is due. A later `call_next` starts another task."""
        self._ends = True
        self._wake()

    def _wake(self) -> None:
        task, self._parked = self._parked, None
        if task is not None:
            sys.modules["trio"].lowlevel.reschedule(task)

    async def _run(self) -> None:
        lowlevel = sys.modules["trio"].lowlevel
        while self._due or not self._ends:
            if not self._due:
                self._parked = lowlevel.current_task()
                await lowlevel.wait_task_rescheduled(self._abort)
            self._call_due()
            if self._due:  # added by the functions just called, so due one turn later
                await lowlevel.cancel_shielded_checkpoint()
        self._is_running = False

    def _call_due(self) -> None:
        due, self._due = self._due, []
        for work in due:
            work()

    def _abort(self, _raise_cancel: object) -> "trio.lowlevel.Abort":
        self._parked, self._is_running = None, False  # the next `call_next` starts another task
        abort: trio.lowlevel.Abort = sys.modules["trio"].lowlevel.Abort.SUCCEEDED
        return abort


def wake(waiter: Waiter | None, value: object = None) -> None:
    """Wake the task that awaits `waiter`. This has no effect if `waiter` is None or done."""
    if waiter is not None and not waiter.done():
        waiter.set_result(value)


class EventLoop(Struct, frozen=True):
    """The functions of an event loop that the kernel uses.

    Args:
        waiter: Creates a waiter.
        scope: Creates a native cancel scope, with the keyword arguments `shield` and `deadline`.
        now: Returns the time of the loop's clock in seconds, as `anyio.current_time` does. May be called in any thread.
        task: Returns the running task.
        next: Calls a function at the loop's next turn.
        end_idle_task: Ends the system task that `next` uses on trio, once no function is due. Called when a system
            ends.
        soon: Like `next`, but may be called from any thread and from a finalizer. Costs more than `next`.
        spawn: Starts a native task with a coroutine that must not raise. The task is not awaited, and is
            garbage-collected unless the caller keeps a reference to it.
        uncancel: Withdraws native cancellation requests against the running task.
        cancelled: The exception type of native cancellations.
        protect: Defers interrupts while a plain function and its callees run.
    """

    waiter: Callable[[], Waiter]
    scope: Callable[..., Scope]
    now: Callable[[], float]
    task: Callable[[], object]
    next: Callable[[Callable[[], None]], object]
    end_idle_task: Callable[[], None]
    soon: Callable[[Callable[[], None]], object]
    spawn: Callable[[Coroutine[Any, Any, None], str, Context], object]  # Any: seen by the event loop only
    uncancel: Callable[[], None]
    cancelled: type[BaseException]
    protect: Callable[[Callable[..., object]], object]


class Changes:
    """A notifier for changes of state. A change wakes all waiting tasks, and each checks the new state itself."""

    __slots__ = ("_loop", "_waiting")

    def __init__(self, loop: EventLoop) -> None:
        self._loop = loop
        self._waiting: list[Waiter] = []

    def notify(self) -> None:
        """Wake all waiting tasks, because the state has changed."""
        for waiter in self._waiting:
            wake(waiter)

    async def wait_for_change(self) -> None:
        """Wait for the next change."""
        waiter = self._loop.waiter()
        self._waiting.append(waiter)
        try:
            await waiter
        finally:
            self._waiting.remove(waiter)

    async def wait_until(self, condition: Callable[[], object]) -> None:
        """Wait until `condition` returns true. `condition` is called immediately, and after each change."""
        while not condition():
            await self.wait_for_change()


def running_loop() -> object | None:
    """Return an object that identifies this thread's running event loop, or None if no loop is running.

    Compare two results with `is`.
    """
    loop: object | None = None
    if (trio := sys.modules.get("trio")) is not None and trio.lowlevel.in_trio_run():
        loop = trio.lowlevel.current_trio_token()
    elif (asyncio := sys.modules.get("asyncio")) is not None:
        loop = asyncio._get_running_loop()
    return loop


def event_loop() -> EventLoop:
    """Return the kernel's interface to the running event loop.

    Raises:
        RuntimeError: No event loop is running.
    """
    if (loop := running_loop()) is None:
        raise RuntimeError("No event loop is running in this thread; call this from an async function")
    return _kernel_interface(loop)


@lru_cache(maxsize=1)
def _kernel_interface(loop: Any) -> EventLoop:  # Any: asyncio and trio have different types
    return _asyncio_interface(loop) if hasattr(loop, "call_soon") else _trio_interface(loop)


def _asyncio_interface(loop: "asyncio.AbstractEventLoop") -> EventLoop:
    import asyncio

    return EventLoop(
        waiter=partial(asyncio.Future[Any], loop=loop),
        # the class is looked up once, because the lookup costs as much as creating a scope
        scope=type(anyio.CancelScope()),
        now=loop.time,
        task=asyncio.current_task,
        next=loop.call_soon,
        end_idle_task=lambda: None,
        soon=loop.call_soon_threadsafe,
        # created directly, because the loop's task factory may start tasks eagerly
        spawn=lambda coroutine, name, context: asyncio.Task(coroutine, name=name, context=context),
        uncancel=_uncancel,
        cancelled=asyncio.CancelledError,
        protect=lambda _function: None,  # asyncio raises no interrupt inside a task
    )


def _uncancel() -> None:
    """Withdraw all native cancellation requests against the running asyncio task."""
    task = sys.modules["asyncio"].current_task()
    while task is not None and task.cancelling():
        task.uncancel()


def _trio_interface(token: "trio.lowlevel.TrioToken") -> EventLoop:
    import trio

    turns = TrioTurnQueue(token.run_sync_soon)
    return EventLoop(
        waiter=TrioWaiter,
        scope=trio.CancelScope,
        now=trio.lowlevel.current_clock().current_time,
        task=trio.lowlevel.current_task,
        next=turns.call_next,
        end_idle_task=turns.end_idle_task,
        soon=token.run_sync_soon,
        spawn=lambda coroutine, name, context: trio.lowlevel.spawn_system_task(
            lambda: coroutine, name=name, context=context
        ),
        uncancel=lambda: None,  # trio has no native cancellation apart from its scopes
        cancelled=trio.Cancelled,
        protect=trio.lowlevel.enable_ki_protection,
    )


def reset_after_fork(reset: Callable[[], None]) -> None:
    """Call `reset` in every child process that is forked from now on, before any other code runs there.

    `reset` must not acquire a lock, because the thread that would release the lock may not exist in the child.
    """
    if hasattr(os, "register_at_fork"):  # Windows does not fork
        os.register_at_fork(after_in_child=reset)
