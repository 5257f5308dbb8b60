"""Runners: the few tasks that serve all cells.

Cells with something to do stand in one ready queue. A runner takes the first, handles up to `BATCH` messages,
puts the cell back if there is more, and goes on. While a handler waits for something, its runner waits with
it; then another one has to attend to the queue. `attending` counts the runners that will look at the queue
before they wait: the running one, those woken or started and not run yet, those resumed. Whenever it would be
zero with cells ready, a parked runner is woken or a new one started. So there are as many runners as handlers
are waiting, and one more; of parked ones at most `idle_limit` are kept.

A runner that has nothing left to do lets those run first whom it answered, and only then waits: an ask that follows
another finds it attending, and is handled in the same turn of the event loop with nobody to be woken.

That a handler waits is seen from outside: a runner takes a handler's first step itself, which is all there is of
most, and `_waiting` forwards what the others yield to the event loop.
"""

import contextvars
import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from random import Random
from typing import TYPE_CHECKING, Any

from anyio import CancelScope

from actors.kernel.account import State, Tally
from actors.kernel.actor import Actor, Context, current
from actors.kernel.cell import AnyCell
from actors.kernel.deadlines import Deadlines
from actors.kernel.mailbox import BoundedQueue
from actors.kernel.message import Command, Query, R
from actors.kernel.parking import Parking, Waiter
from actors.kernel.supervisor import crash, cut_off, wind_down
from actors.kernel.tasks import Tasks, Work

if TYPE_CHECKING:
    from actors.kernel.system import System

BATCH = 32  # messages handled in one visit
STRETCH = 64  # messages handled by one runner before other tasks of the loop get their turn


class Pool:
    """What all cells of one system share."""

    def __init__(
        self,
        system: "System",
        parking: Parking,
        doom: Callable[[BaseException | None], None],
        *,
        idle_limit: int,
        patience: float,
        random: Random,
        on_crash: Callable[[str, BaseException], None] | None,
    ) -> None:
        self.system = system
        self.parking = parking
        self.now = parking.now
        self.waiter = parking.waiter
        self.spares: list[BoundedQueue[Command]] = []
        self.tasks = Tasks(parking)
        self.doom = doom
        self.idle_limit = idle_limit
        self.patience = patience
        self.random = random
        self.on_crash = on_crash
        self.tally = Tally()
        self.deadlines = Deadlines(
            parking, lambda: self.launch(self.deadlines.run, self._unwatched, name="deadlines")
        )
        self.cells: dict[str, AnyCell] = {}
        self.faulted: deque[AnyCell] = deque(maxlen=64)
        self.draining = False
        self.ready: deque[AnyCell] = deque()
        self.idle: list[Runner] = []
        self.attending = 0
        self.active = 0  # cells with something to do, and children
        self._calm: Waiter | None = None
        self._context = contextvars.copy_context()
        self._context.run(current.set, None)

    def schedule(self, cell: AnyCell) -> None:
        """Put `cell`, which is not busy, into the ready queue."""
        cell.busy = True
        cell.since = self.now()
        self.active += 1
        self.ready.append(cell)
        if not self.attending:
            self._summon()

    def requeue(self, cell: AnyCell) -> None:
        """Put `cell`, which is busy already, into the ready queue."""
        self.ready.append(cell)
        if not self.attending:
            self._summon()

    def launch(self, work: Work, ended: Callable[[BaseException | None], None], name: str) -> CancelScope:
        """Start a task in the context the system was made in: a sender's context does not leak into it."""
        return self.tasks.start(work, ended, name, self._context.copy())

    def gives_way(self) -> None:
        """Note that a runner waits inside a handler, and have another attend to the ready queue."""
        self.attending -= 1
        if self.ready and not self.attending:
            self._summon()

    def rest(self) -> None:
        """Note that a cell or a child has nothing more to do."""
        self.active -= 1
        if not self.active and self._calm is not None:
            self.note_calm()

    def note_calm(self) -> None:
        """Wake who waits for calm."""
        if self._calm is not None and not self._calm.done():
            self._calm.set_result(None)

    async def calm(self) -> None:
        """Wait until no cell has anything to do and no child runs."""
        while self.active:
            self._calm = self.parking.waiter()
            await self._calm

    def retire(self, cell: AnyCell) -> None:
        """Take `cell`, which has ended, out of the tree, and keep its totals."""
        self.tally.retired_sent += cell.sent
        self.tally.retired_handled += cell.handled
        del self.cells[cell.name]
        if cell.state is State.FAULTED:
            self.faulted.append(cell)

    def report(self, name: str, error: BaseException) -> None:
        """Pass on a crash of actor `name`, one that is not to be seen anywhere else included."""
        if self.on_crash is not None:
            self.on_crash(name, error)

    def astray(self, error: BaseException) -> bool:
        """Tell whether `error` is a cancellation that this system did not ask for."""
        if self.tasks.cancelled:
            return False
        if isinstance(error, BaseExceptionGroup):
            return error.split(self.parking.cancelled)[1] is None
        return isinstance(error, self.parking.cancelled)

    def _unwatched(self, error: BaseException | None) -> None:
        """Watch the deadlines again after a cancellation that this system did not ask for."""
        if error is None or not self.astray(error):
            self.doom(error)
        else:
            self.launch(self.deadlines.run, self._unwatched, name="deadlines")

    def _summon(self) -> None:
        self.attending += 1
        while self.idle:
            waiter = self.idle.pop().waiter
            if waiter is not None and not waiter.done():
                waiter.set_result(None)
                return
        runner = Runner(self)
        runner.scope = self.launch(runner.run, runner.ended, name="runner")


class Runner:
    """One task that serves cells."""

    __slots__ = ("_acting", "_spent", "pool", "scope", "severed", "task", "waiter")
    scope: CancelScope

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.task: object = None
        self.waiter: Waiter | None = None
        self.severed = False
        self._acting: AnyCell | None = None
        self._spent = 0

    async def run(self) -> None:
        """Serve cells until there are enough other idle runners, or until cut off."""
        pool, ready = self.pool, self.pool.ready
        self.task = pool.parking.task()
        while True:
            while ready:
                cell = ready.popleft()
                await self._visit(cell)
                if self.severed:  # this task can wait for nothing any more
                    pool.requeue(cell)
                    return
                if cell.halt:
                    await self._wind_down(cell)
                elif cell.mail or cell.control:
                    cell.since = pool.now()
                    ready.append(cell)
                else:
                    cell.rest()
                if self._spent >= STRETCH:
                    self._spent = 0
                    await self._pause()
            if pool.attending == 1:
                await self._pause()  # see the head of this module
                if ready:
                    continue
            if len(pool.idle) >= pool.idle_limit:
                return
            pool.attending -= 1
            self.waiter = waiter = pool.waiter()
            pool.idle.append(self)
            try:
                await waiter
            except BaseException as error:
                self._roused(waiter, error)

    async def _wind_down(self, cell: AnyCell) -> None:
        """Take `cell` down; once more if a cancellation that this system did not ask for came in between."""
        try:
            await _watched(wind_down(cell), self.pool)
        except BaseException as error:
            self._stray(error)
            self.pool.requeue(cell)

    def ended(self, error: BaseException | None) -> None:
        """Have others attend to the ready queue; an error that no handler is to blame for ends the system."""
        self.pool.gives_way()
        if error is not None and not self.pool.astray(error):
            self.pool.doom(error)

    def cut_off(self, cell: AnyCell, command: Command | None) -> None:
        """Cancel the handler of `cell` if it still is the one that has `command` in hands."""
        if cell.runner is self and cell.current is command:
            self.severed = True
            self.scope.cancel()

    def _roused(self, waiter: Waiter, error: BaseException) -> None:
        """Go on after `error` ended the wait for work, if this system did not ask for that."""
        pool = self.pool
        if self in pool.idle:
            pool.idle.remove(self)
        if waiter.cancelled():  # it was not summoned, which would have counted it
            pool.attending += 1
        self._stray(error)

    async def _pause(self) -> None:
        """Let other tasks of the loop run."""
        try:
            await self.pool.parking.checkpoint()
        except BaseException as error:
            self._stray(error)

    def _stray(self, error: BaseException) -> None:
        """Withdraw a cancellation that this system did not ask for; raise any other error."""
        if not self.pool.astray(error):
            raise error
        self.pool.parking.forgive()

    async def _visit(self, cell: AnyCell) -> None:
        """Handle up to `BATCH` messages of `cell`, and deal with what its handlers raise."""
        if self._acting is not cell:
            self._acting = cell
            current.set(cell)
        cell.runner = self
        try:
            actor = cell.actor
            if (actor is None or cell.fresh) and not cell.halt:
                actor = await _watched(_begin(cell), self.pool)
            for _ in range(BATCH):
                queue = cell.control or cell.mail
                if not queue or cell.halt:
                    break
                cell.current = command = queue.popleft()
                if queue.waiting is not None:
                    queue.grant()
                reply = command.reply if isinstance(command, Query) else None
                if reply is not None and reply.slot.done() and not reply.slot.cancelled():
                    cell.bury_expired()
                    continue
                assert actor is not None
                handling = actor.receive(command)
                try:
                    trap = handling.send(None)
                except StopIteration:  # like most, it never had to wait
                    pass
                else:
                    await _waiting(handling, trap, self.pool)
                if reply is not None and not reply.slot.done():
                    cell.defer(reply)
                cell.handled += 1
                self._spent += 1
            cell.current = None
        except Exception as error:
            crash(cell, error)
        except BaseException as error:
            self._cancelled(cell, error)
        cell.runner = None

    def _cancelled(self, cell: AnyCell, error: BaseException) -> None:
        """Deal with a handler that ended by `error`, which is not an `Exception`."""
        if not self.pool.astray(error):
            raise error
        if self.severed:
            cut_off(cell)
        else:
            self.pool.parking.forgive()
            crash(cell, error)


async def _begin(cell: AnyCell) -> Actor[Any]:  # Any: see AnyCell
    """Make the actor's object if a crash has cost it, and run its `started` hook."""
    actor = cell.actor
    if actor is None:
        actor = cell.actor = cell.factory()
        cell.fresh = type(actor).started is not Actor.started
    if cell.fresh:
        await actor.started(Context(cell))
        cell.fresh = False
    return actor


async def _watched(coroutine: Coroutine[Any, Any, R], pool: Pool) -> R:  # Any: as in `_waiting`
    """Run `coroutine`, and tell the pool each time it gives way."""
    try:
        trap = coroutine.send(None)
    except StopIteration as stop:
        result: R = stop.value
        return result
    return await _waiting(coroutine, trap, pool)


@types.coroutine
def _waiting(
    coroutine: Coroutine[Any, Any, R],  # Any: the event loop's own traps and answers pass through
    trap: object,
    pool: Pool,
) -> Generator[Any, Any, R]:  # Any: as above
    """Go on with `coroutine`, which gave way with `trap`, and tell the pool each time it does."""
    while True:
        value: object = None
        error: BaseException | None = None
        pool.gives_way()
        try:
            value = yield trap
        except BaseException as raised:
            error = raised
        pool.attending += 1
        try:
            trap = coroutine.send(value) if error is None else coroutine.throw(error)
        except StopIteration as stop:
            result: R = stop.value
            return result
