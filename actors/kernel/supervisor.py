"""What happens when an actor crashes, and how it ends.

A crash goes through three steps. *Down*: no further message is handled, children are cancelled and waited
for, open questions fail. *Wait*: a backoff that doubles with each recent crash, with seeded jitter. *Up*: the
factory makes a new object; the mailbox is kept, the message that crashed it is not tried again. A `Unit` is
what goes down and up together: one actor, or all of a one-for-all group. When a unit crashes more often than
its restart intensity allows, it is given up: its mail is dead, its watchers are told.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from actors.errors import ActorFailed, KernelError
from actors.kernel.account import Reason, State
from actors.kernel.actor import Actor, Terminated
from actors.kernel.cell import AnyCell
from actors.kernel.message import fail_slot

if TYPE_CHECKING:
    from actors.kernel.runner import Pool


class Strategy(Enum):
    """Who restarts when one member of a group crashes."""

    ONE_FOR_ONE = "one_for_one"  # it alone, by its own `Restart`
    ONE_FOR_ALL = "one_for_all"  # every member, by the group's


@dataclass(frozen=True, slots=True)
class Restart:
    """How often a crash is answered by a restart.

    Args:
        intensity: Restarts allowed within `period`; at one crash more the actor is given up. 0: at the first.
        period: Seconds.
        backoff: Seconds before the first restart, and at most; doubles with each crash within `period`.
    """

    intensity: int = 3
    period: float = 60.0
    backoff: tuple[float, float] = (0.05, 5.0)


@dataclass(eq=False, slots=True)
class Unit:
    """Actors that restart together, in the order they were started."""

    pool: "Pool"
    restart: Restart
    members: list[AnyCell] = field(default_factory=list)
    crashes: list[float] = field(
        default_factory=list
    )  # no deque: most units never crash, and it takes 600 bytes
    down: set[AnyCell] = field(default_factory=set)
    error: BaseException | None = None  # the crash being dealt with
    doomed: bool = False
    waiting: bool = False

    def join(self, cell: AnyCell) -> None:
        """Make `cell` a member; if the others are on their way down, it goes with them."""
        cell.unit = self
        self.members.append(cell)
        if self.error is not None:
            _interrupt(cell)

    def leave(self, cell: AnyCell) -> None:
        """Forget `cell`, which has ended."""
        if cell in self.members:
            self.members.remove(cell)
            self.down.discard(cell)
            self._when_all_are_down()

    def crashed(self, cell: AnyCell, error: BaseException) -> None:
        """Take the others down because `cell` crashed. Crashes on the way down count as one."""
        if self.error is not None:
            return
        now = self.pool.parking.now()
        self.error = error
        self.crashes.append(now)
        while self.crashes[0] < now - self.restart.period:
            self.crashes.pop(0)
        self.doomed = len(self.crashes) > self.restart.intensity
        for member in self.members:
            if member is not cell:
                _interrupt(member)

    def is_down(self, cell: AnyCell) -> None:
        """Note that `cell` is down."""
        self.down.add(cell)
        self._when_all_are_down()

    def delay(self) -> float:
        """Return the seconds before the next restart."""
        first, most = self.restart.backoff
        doubled = min(most, first * 2.0 ** (len(self.crashes) - 1))
        return doubled * self.pool.random.uniform(0.5, 1.0)

    def _when_all_are_down(self) -> None:
        if self.error is None or self.waiting or len(self.down) < len(self.members):
            return
        if self.doomed:
            error, self.error = self.error, None
            for member in tuple(reversed(self.members)):
                finish(member, State.FAULTED, error)
            return
        self.waiting = True
        self.pool.deadlines.at(self.pool.parking.now() + self.delay(), self._up)

    def _up(self) -> None:
        self.waiting = False
        self.error = None
        self.down.clear()
        for member in self.members:
            member.state = State.RUNNING
            member.halt = False
            member.restarts += 1
            self.pool.requeue(member)


class Group:
    """A name for actors that are supervised together. Made by `System.group`."""

    __slots__ = ("name", "restart", "strategy", "unit")

    def __init__(self, pool: "Pool", name: str, strategy: Strategy, restart: Restart) -> None:
        self.name = name
        self.strategy = strategy
        self.restart = restart
        self.unit = Unit(pool, restart) if strategy is Strategy.ONE_FOR_ALL else None


def crash(cell: AnyCell, error: BaseException) -> None:
    """Deal with `error`, which a handler of `cell` raised: its message is dead, and the actor goes down."""
    command, cell.current = cell.current, None
    if command is not None:
        cell.bury(command, "poison", _failed(cell, error))
    if not cell.fail(error):
        cell.pool.report(cell.name, error)


def cut_off(cell: AnyCell) -> None:
    """Deal with a handler that was cancelled because it did not end in time."""
    command, cell.current = cell.current, None
    if command is not None:
        cell.bury(command, "stopped", _farewell(cell))


async def wind_down(cell: AnyCell) -> None:
    """Take `cell` down, to be restarted or for good. A runner calls it, with no handler running."""
    if cell.state is not State.STOPPING:
        unit = _unit(cell)
        if cell.failure is not None:
            cell.pool.report(cell.name, cell.failure)
            unit.crashed(cell, cell.failure)
    await _end_children(cell)
    if cell.state is State.STOPPING:
        finish(cell, State.STOPPED, await _put_away(cell))
        return
    unit = _unit(cell)
    _fail_deferred(cell, _failed(cell, unit.error))
    cell.failure = cell.actor = None
    cell.state = State.RESTARTING
    unit.is_down(cell)


def order_stop(cell: AnyCell) -> None:
    """Have `cell` end: its running handler may finish, nothing further is handled."""
    if cell.state not in (State.RUNNING, State.RESTARTING):
        return
    is_down = cell.state is State.RESTARTING
    cell.state = State.STOPPING
    cell.closed = cell.halt = True
    if is_down or (not cell.busy and _needs_nothing(cell)):
        finish(cell, State.STOPPED)
    elif not cell.busy:
        cell.pool.schedule(cell)
    else:
        _hurry(cell)


def finish(cell: AnyCell, state: State, error: BaseException | None = None) -> None:
    """End `cell` for good: bury its mail, fail its questions, tell those who watch and those who wait."""
    if cell.state in (State.STOPPED, State.FAULTED):
        return
    cell.state = state
    cell.closed = cell.halt = True
    cell.actor = None
    reason: Reason = "unhandled" if state is State.FAULTED else "stopped"
    _bury_all(cell, reason)
    _fail_deferred(cell, cell.gone())
    if cell.busy:
        cell.pool.rest()
    cell.busy = True  # or a late sender would schedule it
    cell.pool.retire(cell)
    if cell.unit is not None:
        cell.unit.leave(cell)
    _tell_watchers(cell, Terminated(cell.name, cell, error, state is State.FAULTED))
    for waiter in cell.endings or ():
        if not waiter.done():
            waiter.set_result(None)
    cell.endings = None


def _needs_nothing(cell: AnyCell) -> bool:
    return not cell.children and (cell.fresh or not _has_hook(cell.actor))


def _has_hook(actor: Actor[Any] | None) -> bool:  # Any: see AnyCell
    return actor is not None and type(actor).stopped is not Actor.stopped


def _unit(cell: AnyCell) -> Unit:
    if cell.unit is None:
        Unit(cell.pool, cell.restart).join(cell)
    unit = cell.unit
    assert unit is not None
    return unit


def _interrupt(cell: AnyCell) -> None:
    """Have `cell` go down with its unit."""
    if cell.halt:
        return
    cell.halt = True
    if cell.busy:
        _hurry(cell)
    else:
        cell.pool.schedule(cell)


def _hurry(cell: AnyCell) -> None:
    """Cancel the running handler, if it does not end within the system's patience."""
    runner, command = cell.runner, cell.current
    if runner is not None:
        when = cell.pool.parking.now() + cell.pool.patience
        cell.pool.deadlines.at(when, partial(runner.cut_off, cell, command))


async def _end_children(cell: AnyCell) -> None:
    for child in tuple(cell.children or ()):
        child.cancel()
    with anyio.move_on_after(cell.pool.patience):
        while cell.children:
            cell.orphaned = cell.pool.parking.waiter()
            await cell.orphaned
    cell.orphaned = None
    for child in cell.children or ():
        child.disowned = True
    cell.children = None


async def _put_away(cell: AnyCell) -> BaseException | None:
    """Call the `stopped` hook; return what it raised."""
    actor = cell.actor
    if actor is None or cell.fresh or not _has_hook(actor):
        return None
    try:
        with anyio.move_on_after(cell.pool.patience):
            await actor.stopped()
    except Exception as error:
        cell.pool.report(cell.name, error)
        return error
    return None


def _bury_all(cell: AnyCell, reason: Reason) -> None:
    cut_off(cell)
    for queue in (cell.control, cell.mail):
        if queue is not None:
            while queue:
                cell.bury(queue.popleft(), reason, cell.gone())
            queue.dismiss()
    cell.control = cell.mail = None


def _fail_deferred(cell: AnyCell, error: KernelError) -> None:
    deferred, cell.deferred = cell.deferred, None
    for slot in deferred or ():
        fail_slot(slot, error)


def _failed(cell: AnyCell, cause: BaseException | None) -> ActorFailed:
    kind = "an error" if cause is None else type(cause).__name__
    error = ActorFailed(f"Actor {cell.name!r} crashed with {kind}; the message is not tried again.")
    error.__cause__ = cause
    return error


def _farewell(cell: AnyCell) -> KernelError:
    if cell.state is State.RUNNING:
        return _failed(cell, None if cell.unit is None else cell.unit.error)
    return cell.gone()


def _tell_watchers(cell: AnyCell, terminated: Terminated) -> None:
    watchers, cell.watchers = cell.watchers, None
    for watcher in watchers or ():
        notify(cell, watcher, terminated)


def notify(cell: AnyCell, watcher: Callable[[Terminated], object], terminated: Terminated) -> None:
    """Call `watcher`; what it raises is reported, so that it disturbs nobody else."""
    try:
        watcher(terminated)
    except Exception as error:
        cell.pool.report(cell.name, error)
