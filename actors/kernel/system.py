"""Run the actors of one event loop: start them, and stop them in order when the system exits.

A separate task, the host, owns everything that the system starts. To end the system, the host stops each actor before
the actors that it may ask, within time limits. The task that entered the system asks the host to end the system, and
waits. Cancelling that task does not revoke the request, so nothing keeps running. If the event loop shuts down and
cancels the host, the host ends the system too. So a system whose block never ends does not keep the process alive. A
second cancellation of either task, or a second interrupt, shortens the remaining steps.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Never, Self

import anyio
import anyio.lowlevel
from msgspec.structs import replace

from actors.errors import KernelError, ShuttingDown
from actors.kernel.account import Account
from actors.kernel.actor import Actor, Context
from actors.kernel.cell import RESTART, AnyCell, Cell, Group, Restart
from actors.kernel.contained import ContainedTasks
from actors.kernel.dispatch import Dispatcher
from actors.kernel.event_loop import Changes
from actors.kernel.host import SystemHost
from actors.kernel.receiver import C, Receiver, current, is_outside
from actors.kernel.ref import Ref
from actors.kernel.shared import SystemState

SHARED = 1 << 30  # the depth of actors that actors of every other depth may ask
GRACE = 0.5  # seconds for foreign code to end when the system exits; code that continues is dropped
SHUTDOWN = 10.0  # seconds for all actors together to end; the remaining tasks are then cancelled

Step = Callable[[], Awaitable[object]]


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
        await host.run_step(self._stop_all, SHUTDOWN)
        await host.run_step(partial(contained_tasks.close, GRACE), 2 * GRACE)
        # drops the remaining foreign code if the step above was cut short
        await host.run_step(partial(contained_tasks.close, 0), GRACE)
        for step in self.last_steps:
            await host.run_step(*step)
        self.tasks.cancel()
        await host.run_step(self.tasks.join, SHUTDOWN)
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
            factory: Creates the actor's object, now and at each restart. An exception raised now propagates.
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

        Returns when the actor has ended. Cancelling the caller does not revoke the request.
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

        This is synchronous. New actors can be created later from the objects, under the same names. An actor is idle if
        it has no message, running handler, child or unanswered query, and its `idle` is True. Watchers are not
        notified, since the objects live on. The old addresses accept no more messages.
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
            await self.rested.wait_until(lambda: not self.active)
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
