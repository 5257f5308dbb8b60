"""A system: the actors of one event loop, and the tasks that serve them.

A task of its own, the host, owns all that the system starts, and ends it: in the order in which actors may ask, each
with a bounded time to do so. Whoever entered the system asks the host to leave and waits for that; being cancelled
does not take it back, and leaves nothing behind. A host that is cancelled itself, because the loop is being shut down,
leaves too: so a system that was entered and never left keeps no process alive. A second cancellation of either, or a
second interrupt, leaves at once.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import copy_context
from functools import partial
from random import Random
from types import TracebackType
from typing import Any, Never, Self

import anyio
import anyio.lowlevel

from actors.errors import Draining, KernelError
from actors.kernel.account import ActorState, Counts, DeadLetters
from actors.kernel.actor import Actor, Restart, Terminated, current
from actors.kernel.cell import AnyCell, Cell
from actors.kernel.contained import Containment
from actors.kernel.dispatch import Dispatcher
from actors.kernel.host import SystemHost
from actors.kernel.mailbox import Mailbox
from actors.kernel.parking import parking
from actors.kernel.ref import C, Ref
from actors.kernel.shared import Shared
from actors.kernel.supervisor import Group, Supervisor

SHARED = 1 << 30  # the depth of actors that those of every other depth may ask
GRACE = 0.5
"""Seconds that foreign code has to end when the system is left, before it is dropped."""

Step = Callable[[], Awaitable[object]]

_MAILBOX = Mailbox()
_RESTART = Restart()


class System:
    """Starts actors, and stops them when its block is left.

    Args:
        seed: Seed of the restart jitter. None: a different one each time.
        patience: Seconds that an actor's children may take to end when it does.
        shutdown: Seconds that all actors together may take to end when the block is left; what is left then
            is cancelled.
        slow: Seconds from which a handler is reported as slow: nobody can interrupt it, and all others wait.
        on_crash: Called with the actor's name and the error at each crash. It must not raise.
        on_slow: Called with the actor's name, the message's type and the seconds its handler took. It must not raise.
        first: What the host does before it stops the actors, with the seconds that may take.
        last: What the host does after that.
    """

    def __init__(
        self,
        *,
        seed: int | None = None,
        patience: float = 5.0,
        shutdown: float = 10.0,
        slow: float = 0.1,
        on_crash: Callable[[str, BaseException], None] | None = None,
        on_slow: Callable[[str, str, float], None] | None = None,
        first: tuple[Step, float] | None = None,
        last: tuple[Step, float] | None = None,
    ) -> None:
        random = Random(seed)  # noqa: S311 - jitter, not secrets
        self._shared = partial(
            Shared, patience=patience, slow=slow, random=random, on_crash=on_crash, on_slow=on_slow
        )
        self._shutdown = shutdown
        self._first, self._last = first, last
        self._supervisor: Supervisor | None = None
        self._containment: Containment | None = None
        self._host: SystemHost | None = None

    @property
    def supervisor(self) -> Supervisor:
        """The supervisor of the actors."""
        if self._supervisor is None:
            raise KernelError("This system is not running; enter it with 'async with System() as system'.")
        return self._supervisor

    @property
    def shared(self) -> Shared:
        """What the system's actors share."""
        return self.supervisor.shared

    @property
    def containment(self) -> Containment:
        """Where foreign code runs."""
        assert self._containment is not None, "the system has not been entered"
        return self._containment

    async def __aenter__(self) -> Self:
        await anyio.lowlevel.checkpoint()  # who is cancelled already enters nothing
        here = parking()
        self._containment = Containment(here)
        context = copy_context()
        context.run(current.set, None)
        self._host = host = SystemHost(here, self._containment.open, self._leave, context)
        self._supervisor = Supervisor(self._shared(here, host.fail, context))
        for function in (
            Cell._take,
            Dispatcher.begin,
            Dispatcher.serve,
        ):  # handlers run on the stacks of tasks that are not
            here.protect(function)
        await host.enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        assert self._host is not None
        return await self._host.leave(kind, error, trace)

    async def _leave(self, host: SystemHost) -> bool:
        """End everything; the host calls it, in its own task. Say whether no foreign code runs any more."""
        shared, containment = self.shared, self.containment
        if self._first is not None:
            await host.step(*self._first)
        await host.step(self._stop_all, self._shutdown)
        await host.step(partial(containment.close, GRACE), 2 * GRACE)
        await host.step(partial(containment.close, 0), GRACE)  # what is left if that was cut short
        if self._last is not None:
            await host.step(*self._last)
        shared.tasks.cancel()
        await host.step(shared.tasks.join, self._shutdown)
        self.supervisor.finish_all()
        return not containment.names

    def spawn(
        self,
        factory: Callable[[], Actor[C]],
        name: str,
        *,
        mailbox: Mailbox = _MAILBOX,
        restart: Restart = _RESTART,
        group: Group | None = None,
        depth: int = 0,
    ) -> Ref[C]:
        """Make an actor and return its address.

        Args:
            factory: Makes the actor's object, now and at each restart. What it raises now is raised here.
            name: Unique among the actors that have not ended.
            mailbox: Its bounds.
            restart: Its restart intensity; in a group the group's holds instead.
            group: Who restarts with it. An actor without a group restarts alone.
            depth: Orders asks, before the actor's level. `SHARED` for actors that every other may ask.

        Raises:
            KernelError: The name is taken.
            Draining: The system is shutting down, and the caller is not one of its actors.
        """
        supervisor = self.supervisor
        shared = supervisor.shared
        if name in supervisor.cells:
            raise KernelError(f"An actor named {name!r} is running already; stop it, or take another name.")
        if shared.draining and current.get() is None:
            raise Draining(f"Actor {name!r} is not started: the system is shutting down.")
        cell: Cell[C] = Cell(shared, supervisor, factory, name, mailbox, restart, depth)
        supervisor.cells[name] = cell
        cell.closed = shared.draining
        if group is not None:
            supervisor.join(cell, group)
        if cell.life is not None and cell.life.fresh:
            shared.dispatcher.begin(cell)
        return cell

    def group(self, restart: Restart = _RESTART) -> Group:
        """Make a group for `spawn`, whose members restart together, by `restart`."""
        return Group(self.supervisor, restart)

    async def stop(self, ref: Ref[Never]) -> None:
        """End an actor: its mail is dead, its children are cancelled.

        Returns when it has ended; at once if it had. A caller that is cancelled does not take the order back.
        """
        cell = _cell(ref)
        self.supervisor.order_stop(cell)
        if cell.state is ActorState.STOPPING:
            waiter = self.shared.parking.waiter()
            cell.endings = [*(cell.endings or ()), waiter]
            await waiter

    def passivate(self, *refs: Ref[Never]) -> tuple[Actor[Any], ...] | None:
        """End actors that have nothing to do, all of them or none, and return their objects; None if one has.

        At once, and without `stopped`: others may be made from the objects, at the next use, under the same names.
        An actor has nothing to do when it has no mail, handler, child or question to answer, and is `idle`. Watchers
        are told of its end; nothing can be sent to its old address any more.
        """
        cells = [_cell(ref) for ref in refs]
        if not all(cell.idle for cell in cells):
            return None
        objects = tuple(cell.life.actor for cell in cells if cell.life is not None)
        for cell in cells:
            self.supervisor.finish(cell, ActorState.STOPPED)
        return objects

    async def drain(self, *, grace: float = 30.0) -> bool:
        """Take no more work from outside, let what is under way end, then stop all actors.

        Under way is all mail and all children, and what these send to each other. Call it from outside, not from
        a child, which would wait for itself.

        Args:
            grace: Seconds until what has not ended is stopped.

        Returns:
            Whether all of it ended by itself.
        """
        self.shared.draining = True
        for cell in self.supervisor.cells.values():
            cell.closed = True
        with anyio.move_on_after(grace) as scope:
            await self.shared.quiescent()
        await self._stop_all()
        return not scope.cancelled_caught

    async def _stop_all(self) -> None:
        """Stop actors before those they ask: by depth and, at one depth, the last started first."""
        cells = [*self.supervisor.cells.values()]
        cells.reverse()
        cells.sort(key=lambda cell: cell.rank[0])
        for cell in cells:
            await self.stop(cell)

    def watch(self, ref: Ref[Never], callback: Callable[[Terminated], object]) -> Callable[[], None]:
        """Call `callback` when the actor behind `ref` ends; now, if it has.

        Returns:
            A function that ends the watch.
        """
        cell = _cell(ref)
        if cell.state in (ActorState.STOPPED, ActorState.FAULTED):
            self.supervisor.notify(callback, Terminated(cell.name, None, cell.state is ActorState.FAULTED))
            return partial(_unwatch, cell, callback)
        cell.watchers = cell.watchers or []
        cell.watchers.append(callback)
        return partial(_unwatch, cell, callback)

    def dead_letters(self) -> DeadLetters:
        """Return the last 256 dead letters, and how many there have been for each reason."""
        tally = self.shared.tally
        return DeadLetters(recent=tuple(tally.recent), counts=dict(tally.dead))

    def counts(self) -> Counts:
        """Return the totals of all messages and asks so far."""
        tally, cells = self.shared.tally, self.supervisor.cells.values()
        return Counts(
            sent=tally.refused + tally.retired_sent + sum(cell.sent for cell in cells),
            handled=tally.retired_handled + sum(cell.handled for cell in cells),
            dead=tally.dead.total(),
            queued=sum(len(cell.mail or ()) + len(cell.control or ()) for cell in cells),
            running=int(self.shared.dispatcher.command is not None),
            asked=tally.asked,
            answered=tally.answered,
            failed=tally.failed,
            timed_out=tally.timed_out,
            abandoned=tally.abandoned,
        )


@asynccontextmanager
async def spawn(actor: Actor[C], *, mailbox: Mailbox = _MAILBOX) -> AsyncIterator[Ref[C]]:
    """Run one actor in a system of its own. It is not restarted: its first crash ends it."""
    async with System() as system:
        yield system.spawn(lambda: actor, type(actor).__name__, mailbox=mailbox, restart=Restart(intensity=0))


def _cell(ref: Ref[Never]) -> AnyCell:
    if not isinstance(ref, Cell):
        raise TypeError(f"{ref!r} is no actor of a system; pass what `spawn` returned.")
    return ref


def _unwatch(cell: AnyCell, callback: Callable[[Terminated], object]) -> None:
    if cell.watchers and callback in cell.watchers:
        cell.watchers.remove(callback)
