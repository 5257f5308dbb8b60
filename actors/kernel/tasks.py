"""Start independent tasks, which cannot affect each other, and contain foreign code in separate tasks.

The kernel uses this module instead of anyio's task groups. A task in a group cancels the group if it fails, or even if
it leaves a cancel scope open. A task in a group also costs several times as much as a native task of the event loop, so
this module starts native tasks. Each task has a cancel scope and reports its end to its starter. An owner can cancel
and await all of its tasks together, and no other code cancels them. On trio, their scopes are shielded from the end of
the run, which would otherwise cancel all of them at once.

Foreign code, such as tools, runs in contained tasks, which it may corrupt without harm to the runtime. A tool may leave
a task group open, swallow its cancellation, raise an exit exception, or never end. On trio, a task that leaves a
nursery open breaks the surrounding nursery, and the entire trio run if that nursery is the system's. So each contained
task runs alone in a nursery, which a separate containing task keeps open. An intact nursery is reused for the next
contained task. On asyncio, a separate task is enough.

To stop a contained task, this module cancels its scope. A task that swallows the cancellation would spin, because a
cancelled scope raises at every wait. Such a task is detached: its inner scope is shielded from then on. When the host
ends, a task that still runs is dropped: this module drives each coroutine step by step, so it can close a coroutine at
any step without waiting.
"""

import contextvars
import sys
import types
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
from anyio.lowlevel import checkpoint

from actors.interrupts import is_from_signal
from actors.kernel.event_loop import Changes, EventLoop, Scope

if TYPE_CHECKING:
    import trio

Work: TypeAlias = Callable[[], Coroutine[Any, Any, object]]  # Any: seen by the event loop only
OnEnd: TypeAlias = Callable[[BaseException | None], None]
Run: TypeAlias = Coroutine[Any, Any, None]  # Any: seen by the event loop only
MAX_SPARE_NURSERIES = 16  # maximum number of idle nurseries that are kept for reuse
PASSES = 64  # maximum number of turns of the event loop to wait for dropped tasks


@types.coroutine
def priming_point() -> Generator[None, None, None]:
    """Suspend a coroutine until its task starts. `prime` runs the coroutine up to this point."""
    yield


def prime(coroutine: Coroutine[Any, Any, None]) -> Coroutine[Any, Any, None]:  # Any: as in `Work`
    """Run a coroutine up to its `priming_point`, which must be its first await, and return the coroutine.

    If asyncio natively cancels a task before its first step, it throws the cancellation into the unstarted coroutine,
    so none of the coroutine's `except` and `finally` blocks run. A primed coroutine is already inside these blocks.
    """
    coroutine.send(None)
    return coroutine


class Tasks:
    """The tasks of one owner. Once `cancelled` is True, a task that starts later is cancelled immediately."""

    __slots__ = ("_changes", "_loop", "_running", "cancelled")

    def __init__(self, loop: EventLoop) -> None:
        self._loop = loop
        self._changes = Changes(loop)
        self._running: dict[Scope, object] = {}  # asyncio keeps only weak references to tasks
        self.cancelled: bool = False

    def start(
        self,
        work: Work,
        on_end: OnEnd,
        name: str,
        context: contextvars.Context | None = None,
        *,
        shielded: bool = True,
    ) -> Scope:
        """Start `work` in a task, and return the scope that cancels the task.

        When the task ends, `on_end` is called with its exception. It is called with None after a normal end or a
        cancellation by the scope. It must not raise. `context` defaults to a copy of the caller's. If `shielded` is
        True, the end of trio's run does not cancel the task.
        """
        scope = self._loop.scope(shield=shielded)
        if self.cancelled:
            scope.cancel()
        run = prime(self._run(scope, work, on_end))
        self._running[scope] = self._loop.spawn(run, name, context or contextvars.copy_context())
        return scope

    def cancel(self) -> None:
        """Cancel all tasks, and every task that starts later."""
        self.cancelled = True
        for scope in tuple(self._running):
            scope.cancel()

    async def join(self) -> None:
        """Wait until all tasks have ended."""
        await self._changes.wait_until(lambda: not self._running)

    async def _run(self, scope: Scope, work: Work, on_end: OnEnd) -> None:
        raised: BaseException | None = None
        try:
            await priming_point()
            with scope:
                running = work()
                del work  # its arguments are in the coroutine
                await running
        except BaseException as error:  # no exception may leave the task
            raised = error
        del self._running[scope]
        try:
            on_end(raised)
        finally:
            del raised  # the traceback of `raised` refers to this frame
            if not self._running:
                self._changes.notify()


class TaskDropped(BaseException):
    """Raised inside a contained task that was dropped."""


class ContainedTask:
    """A running task with foreign code, started by `ContainedTasks.start`. `about` describes the work."""

    name: str
    about: object
    cancelled: bool
    dropped: bool

    def __init__(
        self, contained_tasks: "ContainedTasks", work: Work, on_end: OnEnd, name: str, about: object
    ) -> None:
        self._contained_tasks, self._work, self._on_end = contained_tasks, work, on_end
        self.name, self.about = name, about
        self._loop = loop = contained_tasks.loop
        self._outer, self._inner = loop.scope(shield=True), loop.scope()
        self._task: Any = None  # Any: asyncio and trio have different task types
        self._at: object = None  # the object that the coroutine yielded to the event loop
        self.cancelled = self.dropped = False

    def cancel(self) -> None:
        """Ask the task to end. Repeated calls have no effect."""
        self.cancelled = True
        self._outer.cancel()

    def detach(self) -> None:
        """Stop cancelling a task that ignored its cancellation, and let the task continue."""
        self._inner.shield = True

    def close_coroutine(self) -> None:
        """Close the task's coroutine at its current step.

        If the coroutine is in a wait that cannot be interrupted, such as a wait for a thread, it is closed after that
        wait.
        """
        self.dropped = True
        self.cancel()
        if self._task is None or self._at is None:
            return
        if (
            abort := getattr(self._task, "_attempt_abort", None)
        ) is None:  # asyncio's tasks do not have this attribute
            self._task.cancel()
        elif self._task._abort_func is not None:  # trio offers no public way to interrupt a shielded task
            abort(_raise_dropped)

    async def run(self) -> None:
        """Run the foreign code in the current task, which the code may corrupt, and report its end.

        After this returns, the task must not await anything.
        """
        raised: BaseException | None = None
        try:
            await priming_point()
            self._task = self._loop.task()
            with self._outer, self._inner:
                await self.drive()
        except BaseException as error:  # no exception may leave the task
            raised = error
            self._outer.cancel()  # on asyncio, ends a task group that was left open
        self._task = None
        on_end = self._on_end
        del self._on_end, self._work  # break reference cycles with the owners of these functions
        self._contained_tasks.record_end(self, is_sound=raised is None and not self.cancelled)
        try:
            on_end(raised)
            if raised is not None and is_from_signal(raised):
                self._contained_tasks.on_interrupt(raised)
        finally:
            del raised  # the traceback of `raised` refers to this frame

    @types.coroutine
    def drive(self) -> Generator[Any, Any, None]:  # Any: seen by the event loop only
        """Run the coroutine of the foreign code step by step until it ends or the task is dropped."""
        coroutine, contained_tasks = self._work(), self._contained_tasks
        value: Any = None  # Any: the event loop sends objects of any type
        error: BaseException | None = None
        while True:
            if self.dropped:
                with suppress(BaseException):  # errors during the close are ignored
                    coroutine.close()
                raise TaskDropped
            contained_tasks.step = (self, monotonic())
            try:
                self._at = coroutine.send(value) if error is None else coroutine.throw(error)
            except StopIteration:
                return
            finally:
                contained_tasks.step = None
            value = error = None
            try:
                value = yield self._at
            except BaseException as raised:
                error = raised
            self._at = None


class ContainedTasks:
    """The contained tasks of one host. Enter `open` in the host's task.

    Args:
        loop: The event loop of the host.
    """

    def __init__(self, loop: EventLoop) -> None:
        self.loop = loop
        self.step: tuple[ContainedTask, float] | None = None
        """The contained task that is executing right now, and the `time.monotonic` at which the event loop resumed it.
        None if no contained task is executing. Other threads read this."""
        self.on_start: Callable[[], object] = _do_nothing
        """Called when a task with `about` starts."""
        self.on_interrupt: Callable[[BaseException], object] = _do_nothing
        """Called with an interrupt that a signal raised in a contained task. The interrupt is meant for the program."""
        self.described_count: int = 0
        """Number of running tasks that were started with `about`."""
        self._nursery: trio.Nursery | None = None
        self._spare: list[trio.Nursery] = []  # open nurseries without a contained task
        self._running: dict[ContainedTask, object] = {}
        self._changes = Changes(loop)

    @property
    def names(self) -> list[str]:
        """Names of the running contained tasks."""
        return [contained.name for contained in self._running]

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        """Return a context in which contained tasks can be started. Call `close` before exiting the context.

        On trio, exiting the context waits for contained tasks that continue after `close`, because trio cannot abandon
        a task.
        """
        if (trio := sys.modules.get("trio")) is None or not trio.lowlevel.in_trio_run():
            yield
            return
        # deliver interrupts to the host, where no tool can swallow them
        trio.lowlevel.enable_ki_protection(ContainedTask.run)
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            yield
            self._spare.clear()
            nursery.cancel_scope.cancel()  # ends only the containing tasks, because contained tasks are shielded

    def start(
        self, work: Work, on_end: OnEnd, name: str, context: contextvars.Context, about: object = None
    ) -> ContainedTask:
        """Start `work` in a task that it may corrupt. `on_end` and `context` are as in `Tasks.start`.

        `about` describes the work to a thread that reads `step`, such as a watchdog. A task without `about` is not
        counted in `described_count`, and `on_start` is not called for it.
        """
        contained = ContainedTask(self, work, on_end, name, about)
        run = prime(contained.run())
        self._running[contained] = None
        self.described_count += about is not None
        if self._nursery is None:
            self._running[contained] = self.loop.spawn(run, name, context)
        elif self._spare:
            _start_in_nursery(self._spare.pop(), run, name, context)
        else:
            contextvars.Context().run(self._nursery.start_soon, self._run_containing_task, run, name, context)
        if about is not None:
            self.on_start()
        return contained

    def record_end(self, contained: ContainedTask, *, is_sound: bool) -> None:
        """Record the end of `contained`, which is the running task. `is_sound` means that its nursery is intact."""
        del self._running[contained]
        self.described_count -= contained.about is not None
        if self._nursery is not None:
            self._reuse_nursery(is_sound=is_sound)
        if not self._running:
            self._changes.notify()

    async def _run_containing_task(self, run: Run, name: str, context: contextvars.Context) -> None:
        """Start `run` in a new nursery, and keep the nursery open for further contained tasks until it is cancelled."""
        trio = sys.modules["trio"]
        with suppress(BaseException):
            async with trio.open_nursery() as nursery:
                _start_in_nursery(nursery, run, name, context)
                del run, context  # `run` and `context` refer to a session, which this task may outlive by far
                await trio.sleep_forever()

    def _reuse_nursery(self, *, is_sound: bool) -> None:
        """Keep the nursery of the running task for the next contained task, or cancel it if `is_sound` is False."""
        nursery = sys.modules["trio"].lowlevel.current_task().parent_nursery
        if is_sound and len(self._spare) < MAX_SPARE_NURSERIES:
            self._spare.append(nursery)
        else:
            nursery.cancel_scope.cancel()

    async def close(self, grace: float) -> None:
        """Cancel all contained tasks, wait for up to `grace` seconds, and close the coroutines that still run.

        A task in a wait that cannot be interrupted, such as a wait for a thread, continues until the wait ends.
        """
        fresh = [contained for contained in self._running if not contained.cancelled]
        for contained in fresh:
            contained.cancel()
        with anyio.move_on_after(grace if fresh else 0):  # tasks that were cancelled earlier had time to end
            await self._changes.wait_until(lambda: not self._running)
        for contained in tuple(self._running):
            contained.close_coroutine()
        for _ in range(PASSES):
            if not self._running:
                break
            await checkpoint()


def _start_in_nursery(nursery: "trio.Nursery", run: Run, name: str, context: contextvars.Context) -> None:
    context.run(partial(nursery.start_soon, lambda: run, name=name))


def _do_nothing(*_: object) -> None:
    """Do nothing. The default for optional callbacks."""


def _raise_dropped() -> None:
    raise TaskDropped
