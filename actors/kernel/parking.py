"""How a task waits: one shape over the event loop's own primitive.

A `Waiter` is woken once and has one task waiting on it. On asyncio it is the loop's future, on trio a task
parked with `wait_task_rescheduled`. Events and streams of the portable layer cost several times as much, and
its streams lose items when a host cancels tasks natively; so what is waited for often is waited for here.

The rule that makes it safe under every kind of cancellation: a wake-up carries no item. Whoever is woken
takes the item itself, once it runs; and whoever is cancelled after it was woken wakes the next.
"""

import asyncio
import sys
import types
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Protocol, Self

import anyio

if TYPE_CHECKING:
    import trio


class Waiter(Protocol):
    """One wait of one task. `asyncio.Future` has this shape."""

    def done(self) -> bool:
        """Tell whether it was woken or its task was cancelled."""

    def cancelled(self) -> bool:
        """Tell whether its task was cancelled before it was woken."""

    # Any: a waiter carries whatever its owner wakes it with; `Reply` and `BoundedQueue` are the typed faces.
    def set_result(self, value: Any, /) -> None:
        """Wake the task with `value`. Must not be called when `done`."""

    def result(self) -> Any:  # Any: see set_result
        """Return what it was woken with."""

    def __await__(self) -> Generator[Any, None, Any]:  # Any: the traps of the event loop, and see set_result
        """Wait until woken; return at once if it was already."""


def wake(waiter: Waiter | None, value: object = None) -> None:
    """Wake who waits there, if somebody still does."""
    if waiter is not None and not waiter.done():
        waiter.set_result(value)


class Scope(Protocol):
    """A cancel scope of the event loop, with what the portable layer's has and without its cost."""

    shield: bool
    deadline: float

    @property
    def cancel_called(self) -> bool:
        """Whether it was cancelled, or its deadline has passed."""

    @property
    def cancelled_caught(self) -> bool:
        """Whether it was left because of that."""

    def cancel(self) -> None:
        """Cancel what runs in it."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
        /,
    ) -> bool | None: ...


class TrioWaiter:
    """A task parked with `trio.lowlevel.wait_task_rescheduled`."""

    __slots__ = ("_cancelled", "_done", "_task", "_value")

    def __init__(self) -> None:
        self._task: trio.lowlevel.Task | None = None
        self._done = False
        self._cancelled = False
        self._value: Any = None  # Any: see Waiter.set_result

    def done(self) -> bool:
        return self._done

    def cancelled(self) -> bool:
        return self._cancelled

    def set_result(self, value: Any, /) -> None:  # Any: see Waiter.set_result
        self._done = True
        self._value = value
        if self._task is not None:
            task, self._task = self._task, None
            sys.modules["trio"].lowlevel.reschedule(task)

    def result(self) -> Any:  # Any: see Waiter.set_result
        return self._value

    def __await__(self) -> Generator[Any, None, Any]:  # Any: see Waiter.__await__
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


@dataclass(frozen=True, slots=True)
class Parking:
    """What the kernel needs of the running event loop.

    Args:
        waiter: Make a fresh waiter.
        scope: Make a cancel scope; `shield` and `deadline` by name.
        now: Seconds on the loop's clock, the one that `anyio.current_time` reads.
        task: The running task.
        next: Call a function at the loop's next turn, from the loop.
        soon: Call a function in the loop, from any thread and from a finalizer.
        spawn: Start a task of the loop's own, which nobody waits for: coroutine, name, context. It must not raise.
            The caller must keep a reference to the result, or the task may be garbage collected.
        uncancel: Withdraw native cancellation requests against the running task.
        cancelled: The loop's cancellation exception.
        protect: Keep interrupts out of a plain function and what it calls. asyncio raises none in the midst of a task.
    """

    waiter: Callable[[], Waiter]
    scope: Callable[..., Scope]
    now: Callable[[], float]
    task: Callable[[], object]
    next: Callable[[Callable[[], None]], object]
    soon: Callable[[Callable[[], None]], object]
    spawn: Callable[[Coroutine[Any, Any, None], str, Context], object]  # Any: the traps of the event loop
    uncancel: Callable[[], None]
    cancelled: type[BaseException]
    protect: Callable[[Callable[..., object]], object]


def parking() -> Parking:
    """Return the running loop's parking.

    Raises:
        RuntimeError: No event loop is running.
    """
    trio_module = sys.modules.get("trio")
    if trio_module is not None and trio_module.lowlevel.in_trio_run():
        return _trio_parking(trio_module.lowlevel.current_trio_token())
    return _asyncio_parking(asyncio.get_running_loop())


def running_loop() -> object | None:
    """Return what stands for the event loop that runs in this thread, to be compared with `is`; None without one."""
    trio_module = sys.modules.get("trio")
    if trio_module is not None and trio_module.lowlevel.in_trio_run():
        token: object = trio_module.lowlevel.current_trio_token()
        return token
    return asyncio._get_running_loop()


@lru_cache(maxsize=1)
def _asyncio_parking(loop: asyncio.AbstractEventLoop) -> Parking:
    return Parking(
        waiter=partial(asyncio.Future, loop=loop),
        scope=type(
            anyio.CancelScope()
        ),  # what it makes here: to ask for the loop's class each time costs as much again
        now=loop.time,
        task=asyncio.current_task,
        next=loop.call_soon,
        soon=loop.call_soon_threadsafe,
        spawn=_asyncio_spawn,
        uncancel=_uncancel,
        cancelled=asyncio.CancelledError,
        protect=_nothing_of,
    )


def _asyncio_spawn(
    coroutine: Coroutine[Any, Any, None], name: str, context: Context
) -> object:  # Any: as above
    return asyncio.Task(coroutine, name=name, context=context)  # never eager, whatever the loop's factory is


def _uncancel() -> None:
    task = asyncio.current_task()
    while task is not None and task.cancelling():
        task.uncancel()


@lru_cache(maxsize=1)
def _trio_parking(token: "trio.lowlevel.TrioToken") -> Parking:
    import trio

    return Parking(
        waiter=TrioWaiter,
        scope=trio.CancelScope,
        now=trio.current_time,
        task=trio.lowlevel.current_task,
        next=token.run_sync_soon,
        soon=token.run_sync_soon,
        spawn=_trio_spawn,
        uncancel=_nothing,
        cancelled=trio.Cancelled,
        protect=trio.lowlevel.enable_ki_protection,
    )


def _trio_spawn(coroutine: Coroutine[Any, Any, None], name: str, context: Context) -> object:  # Any: as above
    return sys.modules["trio"].lowlevel.spawn_system_task(lambda: coroutine, name=name, context=context)


def _nothing() -> None:
    """Do nothing: trio has no native cancellation beside its scopes."""


def _nothing_of(_function: object) -> None:
    """Do nothing."""
