"""A system: the actors of one event loop, and the tasks that serve them.

A task of its own, the host, owns everything that the system starts, and ends it: in the order in which actors may
ask, each within a bounded time. The task that entered the system asks the host to leave and waits for that; a
cancellation does not revoke the request, and leaves nothing behind. A host that is itself cancelled, because the loop
is shutting down, leaves too, so a system that was never left does not keep a process alive. A second cancellation of
either task, or a second interrupt, leaves at once.
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
from actors.kernel.contained import Containment
from actors.kernel.dispatch import Dispatcher
from actors.kernel.event_loop import Changes
from actors.kernel.host import SystemHost
from actors.kernel.receiver import C, Receiver, current, is_outside
from actors.kernel.ref import Ref
from actors.kernel.shared import SystemState

SHARED = 1 << 30  # the depth of actors that all actors of other depths may ask
GRACE = 0.5  # seconds for foreign code to end when the system is left; then it is dropped
SHUTDOWN = 10.0  # seconds for all actors together to end; then the rest is cancelled

Step = Callable[[], Awaitable[object]]


class System(SystemState):
    """Starts actors on the running event loop, and stops them when its block is left.

    `first` lists steps of the host before it stops the actors, each with a time limit in seconds; `last` lists steps
    afterwards.
    """

    cells: dict[str, AnyCell]
    containment: Containment
    first: tuple[tuple[Step, float], ...] = ()
    last: tuple[tuple[Step, float], ...] = ()
    _host: SystemHost

    async def __aenter__(self) -> Self:
        await anyio.lowlevel.checkpoint()  # a caller that is already cancelled enters nothing
        self.variables.run(current.set, None)
        self.containment = Containment(self.loop)
        self._host = SystemHost(self.loop, self.containment.open, self._leave, self.variables)
        self.fatal: Callable[[BaseException], None] = self._host.fail
        self.containment.on_interrupt = self._host.interrupt
        # handlers run on the stacks of unrelated tasks
        functions: Sequence[Callable[..., object]] = (Receiver[Any].take, Dispatcher.serve)
        for function in functions:
            self.loop.protect(function)
        await self._host.enter()
        if self._host.is_open:  # else the loop was shut down before the host started
            self._watch_deadlines()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._host.leave(kind, error, trace)

    async def _leave(self, host: SystemHost) -> bool:
        """End everything; called by the host in its own task. Return True if no foreign code is running."""
        containment = self.containment
        for step in self.first:
            await host.step(*step)
        await host.step(self._stop_all, SHUTDOWN)
        await host.step(partial(containment.close, GRACE), 2 * GRACE)
        await host.step(partial(containment.close, 0), GRACE)  # the rest, if the first call was cut short
        for step in self.last:
            await host.step(*step)
        self.tasks.cancel()
        await host.step(self.tasks.join, SHUTDOWN)
        for cell in reversed(tuple(self.cells.values())):
            cell.finish("stopped")
        return not containment.names

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
            capacity: Most queued messages, separately for mail and control commands. Beyond that, senders wait.
            restart: The restart policy; in a group, the group's policy applies instead.
            group: The actors that it restarts with. Without one it restarts alone.
            depth: Orders asks, before the actor's level. `SHARED` for actors that every other may ask.

        Raises:
            KernelError: The name is in use.
            ShuttingDown: The system is shutting down, and the caller is not one of its actors.
        """
        if name in self.cells:
            raise KernelError(f"An actor named {name!r} is running already; stop it, or take another name.")
        if self.draining and is_outside(self):
            raise ShuttingDown(f"Actor {name!r} is not started: the system is shutting down.")
        actor = factory()
        rank = (depth, type(actor).level)
        rank = self.ranks.setdefault(rank, rank)
        cell = Cell(self, name, capacity, rank, factory=factory, restart=restart)
        cell.life = Context(cell, actor)
        cell.closed = self.draining
        self.cells[name] = cell
        if group is not None:
            group.join(cell)
        self.dispatcher.add(cell.visit)
        return Ref(cell)

    async def stop(self, ref: Ref[Never]) -> None:
        """End an actor: its mail becomes dead letters, its children are cancelled.

        Returns when the actor has ended. Cancelling the caller does not revoke the request.
        """
        await self._stop(_cell(ref))

    async def _stop(self, cell: AnyCell) -> None:
        cell.stop()
        if cell.state == "stopping":
            ended = Changes(self.loop)
            cell.watch(ended.tell)
            await ended.next()

    def passivate(self, *refs: Ref[Never]) -> tuple[Actor[Any], ...] | None:
        """End idle actors, all of them or none, and return their objects; return None if one is not idle.

        This is synchronous: new actors can be created from the objects later, under the same names. An actor is idle
        if it has no mail, handler, child or unanswered question, and its `idle` is True. Watchers are not notified,
        since the objects live on. The old addresses accept no more messages.
        """
        cells = [_cell(ref) for ref in refs]
        if not all(cell.idle for cell in cells):
            return None
        objects = tuple(cell.life.actor for cell in cells if cell.life is not None)
        for cell in cells:
            cell.watchers = None
            cell.finish("stopped")
        return objects

    async def drain(self, *, grace: float = 30.0) -> bool:
        """Reject new work from outside, let current work end, then stop all actors.

        Current work is all mail and all children, and the messages that these send to each other. Call it from
        outside, not from a child, which would wait for itself. Work that has not ended after `grace` seconds is
        stopped.

        Returns:
            Whether all work ended by itself.
        """
        self.draining = True
        for cell in self.cells.values():
            cell.closed = True
        with anyio.move_on_after(grace) as scope:
            await self.rested.until(lambda: not self.active)
        await self._stop_all()
        return not scope.cancelled_caught

    async def _stop_all(self) -> None:
        """Stop actors before those that they ask: by depth, and the last started first within a depth."""
        cells = [*self.cells.values()]
        cells.reverse()
        cells.sort(key=lambda cell: cell.rank[0])
        for cell in cells:
            await self._stop(cell)

    def watch(self, ref: Ref[Never], watcher: Callable[[], object]) -> None:
        """Call `watcher` when the actor of `ref` ends; at once if it has."""
        _cell(ref).watch(watcher)

    def counts(self) -> Account:
        """Return the totals of all messages and asks so far, over all actors, past and present."""
        cells = self.cells.values()
        return replace(
            self.account,
            dead=self.account.dead.copy(),
            sent=self.account.sent + sum(cell.sent for cell in cells),
            handled=self.account.handled + sum(cell.handled for cell in cells),
            queued=sum(len(cell.mail or ()) + len(cell.control or ()) for cell in cells),
            running=int(self.dispatcher.command is not None),
        )

    def _watch_deadlines(self) -> None:
        self.launch(self.deadlines.run, self._restart_deadlines, "deadlines")

    def _restart_deadlines(self, error: BaseException | None) -> None:
        """Restart the deadlines' task after a cancellation that this system did not request."""
        if error is not None and self.is_crash(error):
            self._watch_deadlines()
        elif error is not None:
            self.fatal(error)


def _cell(ref: Ref[Never]) -> AnyCell:
    assert isinstance(ref.receiver, Cell)
    return ref.receiver
