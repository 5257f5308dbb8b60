"""Runners: the few tasks that serve all cells.

Cells with something to do stand in one ready queue. A runner takes the first, handles up to `BATCH` messages,
puts the cell back if there is more, and goes on. While a handler waits for something, its runner waits with
it; then another one has to attend to the queue. `attending` counts the runners that will look at the queue
before they wait: the running one, those woken or started and not run yet, those resumed. Whenever it would be
zero with cells ready, a parked runner is woken or a new one started. So there are as many runners as handlers
are waiting, and one more; of parked ones at most `idle_limit` are kept.

That a handler waits is seen from outside: `_watched` forwards what the runner's coroutine yields to the event
loop, which costs nothing for the many handlers that never yield.
"""

import contextvars
import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, TypeVarTuple

import anyio
from anyio.abc import TaskGroup

from actors.kernel.account import State, Tally
from actors.kernel.actor import Actor, Context, current
from actors.kernel.cell import AnyCell
from actors.kernel.deadlines import Deadlines
from actors.kernel.mailbox import BoundedQueue
from actors.kernel.message import Command, Query
from actors.kernel.parking import Parking, Waiter
from actors.kernel.supervisor import crash, cut_off, wind_down

if TYPE_CHECKING:
    from actors.kernel.system import System

BATCH = 32  # messages handled in one visit
STRETCH = 64  # messages handled by one runner before other tasks of the loop get their turn

Args = TypeVarTuple("Args")


class Pool:
    """What all cells of one system share."""

    def __init__(
        self,
        system: "System",
        parking: Parking,
        tasks: TaskGroup,
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
        self.tasks = tasks
        self.idle_limit = idle_limit
        self.patience = patience
        self.random = random
        self.on_crash = on_crash
        self.tally = Tally()
        self.deadlines = Deadlines(parking, lambda: self.launch(self.deadlines.run, name="deadlines"))
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

    def launch(
        self, function: Callable[[*Args], Coroutine[Any, Any, object]], *args: *Args, name: str
    ) -> None:
        """Start a task in the context the system was made in: a sender's context does not leak into it."""
        self._context.copy().run(partial(self.tasks.start_soon, function, *args, name=name))

    def gives_way(self) -> None:
        """Note that a runner waits inside a handler, and have another attend to the ready queue."""
        self.attending -= 1
        if self.ready and not self.attending:
            self._summon()

    def rest(self) -> None:
        """Note that a cell or a child has nothing more to do."""
        self.active -= 1
        if not self.active:
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
        if self.tasks.cancel_scope.cancel_called:
            return False
        if isinstance(error, BaseExceptionGroup):
            return error.split(self.parking.cancelled)[1] is None
        return isinstance(error, self.parking.cancelled)

    def _summon(self) -> None:
        self.attending += 1
        while self.idle:
            waiter = self.idle.pop().waiter
            if waiter is not None and not waiter.done():
                waiter.set_result(None)
                return
        self.launch(Runner(self).run, name="runner")


class Runner:
    """One task that serves cells."""

    __slots__ = ("_acting", "_spent", "pool", "scope", "severed", "task", "visiting", "waiter")

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.scope = anyio.CancelScope()
        self.task: object = None
        self.waiter: Waiter | None = None
        self.visiting = False
        self.severed = False
        self._acting: AnyCell | None = None
        self._spent = 0

    async def run(self) -> None:
        """Serve cells until there are enough other idle runners, or until cut off."""
        pool = self.pool
        self.task = pool.parking.task()
        try:
            with self.scope:
                await _watched(self._serve(), self)
        finally:
            pool.gives_way()

    def cut_off(self, cell: AnyCell, command: Command | None) -> None:
        """Cancel the handler of `cell` if it still is the one that has `command` in hands."""
        if cell.runner is self and cell.current is command:
            self.severed = True
            self.scope.cancel()

    async def _serve(self) -> None:
        pool, ready = self.pool, self.pool.ready
        while True:
            while ready:
                cell = ready.popleft()
                self.visiting = True
                try:
                    await self._handle(cell)
                except Exception as error:
                    crash(cell, error)
                except BaseException as error:
                    self._cancelled(cell, error)
                cell.runner = None
                if self.severed:  # this task can wait for nothing any more
                    pool.requeue(cell)
                    return
                if cell.halt:
                    await wind_down(cell)
                elif cell.mail or cell.control:
                    cell.since = pool.now()
                    ready.append(cell)
                else:
                    cell.rest()
                    if not pool.active:
                        pool.note_calm()
                self.visiting = False
                if self._spent >= STRETCH:
                    self._spent = 0
                    await pool.parking.checkpoint()
            if len(pool.idle) >= pool.idle_limit:
                return
            await self._park()

    async def _park(self) -> None:
        pool = self.pool
        pool.attending -= 1
        self.waiter = waiter = pool.waiter()
        pool.idle.append(self)
        try:
            await waiter
        except BaseException as error:
            if self in pool.idle:
                pool.idle.remove(self)
            if waiter.cancelled():  # it was not summoned, which would have counted it
                pool.attending += 1
            if not pool.astray(error):
                raise
            pool.parking.forgive()

    async def _handle(self, cell: AnyCell) -> None:
        """Handle up to `BATCH` messages of `cell`."""
        if self._acting is not cell:
            self._acting = cell
            current.set(cell)
        cell.runner = self
        if cell.halt:
            return
        actor = cell.actor
        if actor is None or cell.fresh:
            actor = await _begin(cell)
        receive = actor.receive
        for _ in range(BATCH):
            queue = cell.control or cell.mail
            if not queue or cell.halt:
                break
            cell.current = command = queue.popleft()
            if queue.waiting is not None:
                queue.grant()
            if isinstance(command, Query):
                slot = command.reply.slot
                if slot.done() and not slot.cancelled():
                    cell.bury_expired()
                    continue
                await receive(command)
                if not slot.done():
                    cell.defer(command.reply)
            else:
                await receive(command)
            cell.handled += 1
            self._spent += 1
        cell.current = None

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


@types.coroutine
def _watched(
    coroutine: Coroutine[Any, Any, None],  # Any: the event loop's own traps and answers pass through
    runner: Runner,
) -> Generator[Any, Any, None]:  # Any: as above
    """Run `coroutine`, and tell the pool each time it gives way during a visit."""
    pool = runner.pool
    value: object = None
    error: BaseException | None = None
    while True:
        try:
            trap = coroutine.send(value) if error is None else coroutine.throw(error)
        except StopIteration:
            return
        visiting = runner.visiting
        if visiting:
            pool.gives_way()
        value = error = None
        try:
            value = yield trap
        except BaseException as raised:
            error = raised
        if visiting:
            pool.attending += 1
