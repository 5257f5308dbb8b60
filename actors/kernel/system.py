"""A system: the actors of one event loop, and the tasks that serve them.

A task of its own, the host, owns all that the system starts, and ends it: in the order in which actors may ask, each
with a bounded time to do so. The task that entered the system asks the host to leave and waits for that; a cancellation
does not take it back, and leaves nothing behind. A host that is cancelled itself, because the loop is being shut down,
leaves too: so a system that was entered and never left keeps no process alive. A second cancellation of either, or a
second interrupt, leaves at once.
"""

from collections.abc import Awaitable, Callable
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
from actors.kernel.host import SystemHost
from actors.kernel.parking import Changes
from actors.kernel.receiver import C, Receiver, current, is_outside
from actors.kernel.ref import Ref
from actors.kernel.shared import SystemState

SHARED = 1 << 30  # the depth of actors that those of every other depth may ask
GRACE = 0.5  # seconds that foreign code has to end when the system is left, before it is dropped
SHUTDOWN = 10.0  # seconds that all actors together have to end then; what is left is cancelled

Step = Callable[[], Awaitable[object]]


class System(SystemState):
    """Starts actors on the running event loop, and stops them when its block is left.

    `first` is what the host does before it stops the actors, in steps with the seconds each may take; `last`, after
    that.
    """

    cells: dict[str, AnyCell]
    containment: Containment
    first: tuple[tuple[Step, float], ...] = ()
    last: tuple[tuple[Step, float], ...] = ()
    _host: SystemHost

    async def __aenter__(self) -> Self:
        await anyio.lowlevel.checkpoint()  # a caller that is cancelled already enters nothing
        self.variables.run(current.set, None)
        self.containment = Containment(self.parking)
        self._host = SystemHost(self.parking, self.containment.open, self._leave, self.variables)
        self.fatal = self._host.fail
        self.containment.on_interrupt = self._host.interrupt
        # handlers run on the stacks of tasks that are not theirs
        for function in (Receiver.take, Dispatcher.serve):
            self.parking.protect(function)
        await self._host.enter()
        if self._host.is_open:  # else nobody would end the task: the loop was shut down before the host began
            self._watch_deadlines()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._host.leave(kind, error, trace)

    async def _leave(self, host: SystemHost) -> bool:
        """End everything; the host calls it, in its own task. Say whether no foreign code runs any more."""
        containment = self.containment
        for step in self.first:
            await host.step(*step)
        await host.step(self._stop_all, SHUTDOWN)
        await host.step(partial(containment.close, GRACE), 2 * GRACE)
        await host.step(partial(containment.close, 0), GRACE)  # what is left if that was cut short
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
        """Make an actor and return its address.

        Args:
            factory: Makes the actor's object, now and at each restart. What it raises now is raised here.
            name: Unique among the actors that have not ended.
            capacity: Messages that wait at most, of mail and of control commands. Beyond that senders wait.
            restart: Its restart intensity; in a group the group's holds instead.
            group: The actors that it restarts with. Without one it restarts alone.
            depth: Orders asks, before the actor's level. `SHARED` for actors that every other may ask.

        Raises:
            KernelError: The name is taken.
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
        """End an actor: its mail is dead, its children are cancelled.

        Returns when it has ended; at once if it had. A caller that is cancelled does not take the order back.
        """
        await self._stop(_cell(ref))

    async def _stop(self, cell: AnyCell) -> None:
        cell.stop()
        if cell.state == "stopping":
            ended = Changes(self.parking)
            cell.watch(ended.tell)
            await ended.next()

    def passivate(self, *refs: Ref[Never]) -> tuple[Actor[Any], ...] | None:
        """End actors that have nothing to do, all of them or none, and return their objects; None if one has.

        At once: others may be made from the objects, at the next use, under the same names. An actor has nothing to do
        when it has no mail, handler, child or question to answer, and is `idle`. Watchers are not told, for the objects
        live on; nothing can be sent to the old addresses any more.
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
        """Take no more work from outside, let what is under way end, then stop all actors.

        Under way is all mail and all children, and what these send to each other. Call it from outside, not from
        a child, which would wait for itself. What has not ended after `grace` seconds is stopped.

        Returns:
            Whether all of it ended by itself.
        """
        self.draining = True
        for cell in self.cells.values():
            cell.closed = True
        with anyio.move_on_after(grace) as scope:
            await self.rested.until(lambda: not self.active)
        await self._stop_all()
        return not scope.cancelled_caught

    async def _stop_all(self) -> None:
        """Stop actors before those they ask: by depth and, at one depth, the last started first."""
        cells = [*self.cells.values()]
        cells.reverse()
        cells.sort(key=lambda cell: cell.rank[0])
        for cell in cells:
            await self._stop(cell)

    def watch(self, ref: Ref[Never], watcher: Callable[[], object]) -> None:
        """Call `watcher` when the actor behind `ref` ends; now, if it has."""
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
        self.launch(self.deadlines.run, self._unwatched, "deadlines")

    def _unwatched(self, error: BaseException | None) -> None:
        """Watch the deadlines again after a cancellation that this system did not ask for."""
        if error is not None and self.is_crash(error):
            self._watch_deadlines()
        elif error is not None:
            self.fatal(error)


def _cell(ref: Ref[Never]) -> AnyCell:
    assert isinstance(ref.receiver, Cell)
    return ref.receiver
