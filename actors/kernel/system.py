"""Run the actors of one event loop: start them, and stop them in order when the system exits.

A separate task, the host, owns everything that the system starts. To end the system, the host stops each actor before
the actors that it may ask, within time limits. The task that entered the system asks the host to start and later to end
the system, and waits. No interruption stops the shutdown:

- A cancelled scope of the caller does not reach the shutdown, which is shielded.
- A native cancellation of the caller, or an interrupt, is raised in the caller after everything has ended. A second
  interruption shortens the remaining steps.
- A native cancellation of the host, as when a program or the end of the event loop cancels every task, starts the
  shutdown. So a system whose block never ends does not keep the process alive. During the shutdown, a cancellation
  shortens the remaining steps.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from contextvars import Context as Variables
from functools import partial
from types import TracebackType
from typing import Any, Never, Self

import anyio
import anyio.lowlevel
from msgspec.structs import replace

from actors.errors import KernelError, ShuttingDown
from actors.kernel.actor import Actor, Context
from actors.kernel.cell import RESTART, AnyCell, Cell, Group, Restart
from actors.kernel.event_loop import Changes, EventLoop
from actors.kernel.receiver import C, Receiver, current, is_outside
from actors.kernel.ref import Ref
from actors.kernel.shared import Account, Dispatcher, SystemState
from actors.kernel.tasks import ContainedTasks, Tasks

HURRIED_STEP_TIMEOUT = 0.2  # seconds for each step of the shutdown after a second interruption
SHARED = 1 << 30  # the depth of actors that actors of every other depth may ask
GRACE = 0.5  # seconds for foreign code to end when the system exits; code that continues is dropped
SHUTDOWN_TIMEOUT = 10.0  # seconds for all actors together to end; the remaining tasks are then cancelled
Step = Callable[[], Awaitable[object]]


class SystemHost:
    """A task that owns a system. When it is asked to shut down or is cancelled, it calls `end_everything`.

    Args:
        loop: The event loop of the system.
        open_context: Returns a context manager. The host enters it, and exits it when the system has ended.
        end_everything: Ends everything that the system started, with calls of `run_step`. Returns False if foreign code
            is still running.
        context: Context variables of the host.
    """

    is_open: bool

    def __init__(
        self,
        loop: EventLoop,
        open_context: Callable[[], AbstractAsyncContextManager[None]],
        end_everything: "Callable[[SystemHost], Awaitable[bool]]",
        context: Variables,
    ) -> None:
        self._loop, self._open_context, self._end_everything, self._context = (
            loop,
            open_context,
            end_everything,
            context,
        )
        self._tasks = Tasks(loop)
        self._changes = Changes(loop)
        self._block = anyio.CancelScope()
        self._entered_by: object = None
        self._step: anyio.CancelScope | None = None
        self.is_open = self._is_leaving = self._is_hurried = self._is_over = False
        self._failure: BaseException | None = None
        self._interrupt: BaseException | None = None  # an interrupt during the shutdown

    async def start(self) -> None:
        """Start the host. If the caller is cancelled meanwhile, the host is stopped again."""
        # not shielded, so that the end of trio's run cancels the host
        self._tasks.start(self._run, self._on_end, "host", self._context.copy(), shielded=False)
        self._entered_by = self._loop.task()
        self._block.__enter__()
        try:
            await self._changes.wait_until(lambda: self.is_open or self._is_over)
        except BaseException as error:
            await self.shut_down(type(error), error, None)
            raise

    async def shut_down(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """Ask the host to end everything, and wait until everything has ended.

        This takes the arguments of `__aexit__` and returns its result.
        """
        self._is_leaving = True
        self._changes.notify()
        struck: BaseException | None = None
        with anyio.CancelScope(shield=True):
            while not self._is_over:
                try:
                    await self._changes.wait_for_change()
                except GeneratorExit:  # the event loop is gone
                    raise
                except (
                    BaseException
                ) as raised:  # a native cancellation or an interrupt; cancelled scopes do not reach this wait
                    if struck is not None:
                        self._shorten_steps()
                    struck = raised
        is_own = self._loop.task() is self._entered_by  # only the task that entered a scope can exit it
        swallowed = self._block.__exit__(kind, error, trace) if is_own else None
        if self._failure is not None:
            raise self._failure
        if struck is not None:
            raise struck
        if self._interrupt is not None and error is None:
            raise self._interrupt
        return swallowed

    def _shorten_steps(self) -> None:
        """Shorten the current step and all later steps to `HURRIED_STEP_TIMEOUT` seconds."""
        self._is_hurried = True
        if self._step is not None:
            self._step.deadline = min(self._step.deadline, anyio.current_time() + HURRIED_STEP_TIMEOUT)

    def fail(self, error: BaseException | None) -> None:
        """End the system because of `error`, which no actor caused. The `async with` block of the system raises it.

        If `error` is None, nothing happens.
        """
        if error is None or self._failure is not None or self._is_over:
            return
        if self._is_leaving and isinstance(error, self._loop.cancelled):
            return
        self._failure = error
        self._block.cancel()
        self._is_leaving = True
        self._changes.notify()

    def interrupt(self, error: BaseException) -> None:
        """End the system after an interrupt in foreign code. If it is already ending, shorten the remaining steps."""
        if self._is_leaving:
            self._interrupt = error
            self._shorten_steps()
        else:
            self.fail(error)

    async def run_step(self, work: Callable[[], Awaitable[object]], seconds: float) -> None:
        """Run one step of the shutdown for at most `seconds`. Cancellations of the host do not reach the step."""
        done: list[BaseException | None] = []

        def on_end(error: BaseException | None) -> None:
            done.append(error)
            self._changes.notify()

        async def work_within_limit() -> None:
            with anyio.move_on_after(HURRIED_STEP_TIMEOUT if self._is_hurried else seconds) as self._step:
                await work()

        self._tasks.start(work_within_limit, on_end, "leaving", self._context.copy())
        with anyio.move_on_after(
            seconds + HURRIED_STEP_TIMEOUT
        ) as limit:  # do not wait for work that shields itself
            while not done:
                try:
                    await self._changes.wait_for_change()
                except BaseException as error:
                    if limit.cancel_called or isinstance(error, GeneratorExit):
                        raise
                    self._shorten_steps()  # a native cancellation of the host during the shutdown
        self._step = None
        if done and isinstance(done[0], Exception):
            self.fail(done[0])

    async def _run(self) -> None:
        async with self._open_context():
            self.is_open = True
            self._changes.notify()
            try:
                await self._changes.wait_until(lambda: self._is_leaving)
            except self._loop.cancelled:  # the loop is shutting down
                self._is_leaving = True
                self._loop.uncancel()
            is_empty = False
            with anyio.CancelScope(shield=True):
                is_empty = await self._end_everything(self)
            self._loop.end_idle_task()
            if not is_empty:
                # let the caller continue; on trio, exiting the context waits for the remaining foreign code
                self._on_end(None)

    def _on_end(self, error: BaseException | None) -> None:
        self.fail(error)
        self._is_over = True
        self._changes.notify()


class System(SystemState):
    """A context manager that starts actors on the running event loop, and stops them when its block ends.

    `first_steps` lists functions that run before the actors are stopped, each with a time limit in seconds.
    `last_steps` lists functions that run after the actors have stopped.
    """

    cells: dict[str, AnyCell]
    contained_tasks: ContainedTasks
    first_steps: tuple[tuple[Step, float], ...] = ()
    last_steps: tuple[tuple[Step, float], ...] = ()
    _host: SystemHost

    async def __aenter__(self) -> Self:
        await anyio.lowlevel.checkpoint()  # raise before the start if the caller is already cancelled
        self.variables.run(current.set, None)
        self.contained_tasks = ContainedTasks(self.loop)
        self._host = SystemHost(self.loop, self.contained_tasks.open, self._end_everything, self.variables)
        self.fatal: Callable[[BaseException], None] = self._host.fail
        self.contained_tasks.on_interrupt = self._host.interrupt
        # an interrupt during a handler must not end the unrelated task on whose stack the handler runs
        functions: Sequence[Callable[..., object]] = (Receiver[Any].accept, Dispatcher.run_ready)
        for function in functions:
            self.loop.protect(function)
        await self._host.start()
        if self._host.is_open:  # otherwise the loop was shut down before the host started
            self._start_deadlines()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._host.shut_down(kind, error, trace)

    async def _end_everything(self, host: SystemHost) -> bool:
        """Stop all actors and tasks, and return True if no foreign code is still running.

        The host calls this in its own task.
        """
        contained_tasks = self.contained_tasks
        for step in self.first_steps:
            await host.run_step(*step)
        await host.run_step(self._stop_all, SHUTDOWN_TIMEOUT)
        await host.run_step(partial(contained_tasks.close, GRACE), 2 * GRACE)
        # drops the remaining foreign code if the step above was cut short
        await host.run_step(partial(contained_tasks.close, 0), GRACE)
        for step in self.last_steps:
            await host.run_step(*step)
        self.tasks.cancel()
        await host.run_step(self.tasks.join, SHUTDOWN_TIMEOUT)
        for cell in reversed(tuple(self.cells.values())):
            cell.finish("stopped")
        return not contained_tasks.names

    def spawn(
        self,
        factory: Callable[[], Actor[C]],
        name: str,
        *,
        capacity: int = 256,
        restart: Restart = RESTART,
        group: Group | None = None,
        depth: int = 0,
    ) -> Ref[C]:
        """Start an actor and return its address.

        Args:
            factory: Creates the actor's object, now and at each restart. If it raises now, the exception propagates.
            name: Unique among the actors that have not ended.
            capacity: Maximum number of queued messages, separately for mail and control commands. When a queue is full,
                senders wait.
            restart: The restart policy. In a group, the group's policy applies instead.
            group: The actors that restart together with this actor, or None if it restarts alone.
            depth: Prevents circular asks: a child of an actor may ask only actors with a greater (depth, level). Use
                `SHARED` for an actor that all other actors may ask.

        Raises:
            KernelError: The name is in use.
            ShuttingDown: The system is shutting down, and the caller is not one of its actors.
        """
        if name in self.cells:
            raise KernelError(
                f"An actor with the name {name!r} is already running; stop that actor, or choose another name."
            )
        if self.draining and is_outside(self):
            raise ShuttingDown(f"Actor {name!r} cannot be started, because the system is shutting down.")
        actor = factory()
        rank = (depth, type(actor).level)
        rank = self.ranks.setdefault(rank, rank)
        cell = Cell(self, name, capacity, rank, factory=factory, restart=restart)
        cell.life = Context(cell, actor)
        cell.closed = self.draining
        self.cells[name] = cell
        if group is not None:
            group.add_member(cell)
        self.dispatcher.schedule(cell.handle_queued)
        return Ref(cell)

    async def stop(self, ref: Ref[Never]) -> None:
        """End an actor: its queued messages become dead letters, and its children are cancelled.

        Returns when the actor has ended. If the caller is cancelled meanwhile, the actor is still stopped.
        """
        await self._stop_cell(_cell_of(ref))

    async def _stop_cell(self, cell: AnyCell) -> None:
        cell.stop()
        if cell.state == "stopping":
            ended = Changes(self.loop)
            cell.watch(ended.notify)
            await ended.wait_for_change()

    def passivate(self, *refs: Ref[Never]) -> tuple[Actor[Any], ...] | None:
        """End idle actors, all of them or none, and return their objects. Return None if one of them is not idle.

        New actors can be created later from the objects, under the same names. An actor is idle if it has no message,
        running handler, child or unanswered query, and its `idle` is True. Watchers are not notified, since the
        objects live on. The old addresses accept no more messages.
        """
        cells = [_cell_of(ref) for ref in refs]
        if not all(cell.idle for cell in cells):
            return None
        objects = tuple(cell.life.actor for cell in cells if cell.life is not None)
        for cell in cells:
            cell.watchers = None
            cell.finish("stopped")
        return objects

    async def drain(self, *, grace: float = 30.0) -> bool:
        """Reject new work from outside, let current work end, then stop all actors.

        Current work consists of all queued messages, all children, and the messages that they send to each other. Work
        that has not ended after `grace` seconds is stopped. Do not call this from a child, which would wait for its own
        end.

        Returns:
            True if all work ended by itself.
        """
        self.draining = True
        for cell in self.cells.values():
            cell.closed = True
        with anyio.move_on_after(grace) as scope:
            await self.became_idle.wait_until(lambda: not self.active)
        await self._stop_all()
        return not scope.cancelled_caught

    async def _stop_all(self) -> None:
        """Stop each actor before the actors that it may ask.

        Actors with a smaller depth are stopped first. Within a depth, the actor that started last is stopped first.
        """
        cells = [*self.cells.values()]
        cells.reverse()
        cells.sort(key=lambda cell: cell.rank[0])
        for cell in cells:
            await self._stop_cell(cell)

    def watch(self, ref: Ref[Never], watcher: Callable[[], object]) -> None:
        """Call `watcher` when the actor of `ref` has ended, or now if it has already ended."""
        _cell_of(ref).watch(watcher)

    def counts(self) -> Account:
        """Return the totals of all messages and asks so far, including those of actors that have ended."""
        cells = self.cells.values()
        return replace(
            self.account,
            dead=self.account.dead.copy(),
            sent=self.account.sent + sum(cell.sent for cell in cells),
            handled=self.account.handled + sum(cell.handled for cell in cells),
            queued=sum(len(cell.mail or ()) + len(cell.control or ()) for cell in cells),
            running=int(self.dispatcher.command is not None),
        )

    def _start_deadlines(self) -> None:
        self.launch(self.deadlines.run, self._restart_deadlines, "deadlines")

    def _restart_deadlines(self, error: BaseException | None) -> None:
        """Restart the task that runs the deadlines, if it failed or was cancelled by foreign code."""
        if error is not None and self.is_crash(error):
            self._start_deadlines()
        elif error is not None:
            self.fatal(error)


def _cell_of(ref: Ref[Never]) -> AnyCell:
    assert isinstance(ref.receiver, Cell)
    return ref.receiver
