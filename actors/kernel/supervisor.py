"""What happens when an actor crashes, and how it ends.

A crash goes through three steps. *Down*, at once: no further message is handled, open questions fail, children are
cancelled and waited for. *Wait*: a backoff that doubles with each recent crash, with seeded jitter. *Up*: the factory
makes a new object; the mailbox is kept, the message that crashed it is not tried again. A `Group` is what goes down
and up together: several actors, or one alone. When it crashes more often than its restart intensity allows, it is given
up: its mail is dead, its watchers are told.
"""

from collections.abc import Callable
from typing import Any

from actors.kernel.account import ActorState, Reason
from actors.kernel.actor import Actor, Restart, Terminated
from actors.kernel.cell import AnyCell, failed
from actors.kernel.deadlines import Timer
from actors.kernel.parking import wake
from actors.kernel.shared import Shared

NOBODY: Actor[Any] = Actor()  # Any: it takes no messages


class Supervisor:
    """Restarts or stops a system's actors when they fail. `cells`: those that have not ended, by name."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self.cells: dict[str, AnyCell] = {}
        self._groups: dict[AnyCell, Group] = {}

    def join(self, cell: AnyCell, group: "Group") -> None:
        """Make `cell` a member of `group`."""
        self._groups[cell] = group
        group.join(cell)

    def failed(self, cell: AnyCell, error: BaseException) -> None:
        self.shared.crashed(cell.name, error)
        if cell.state is ActorState.RUNNING:
            if cell not in self._groups:
                self.join(cell, Group(self, cell.restart))
            self._groups[cell].crashed(error)

    def childless(self, cell: AnyCell) -> None:
        if cell.state is ActorState.STOPPING:
            self.finish(cell, ActorState.STOPPED, self._farewell(cell))
        elif cell in self._groups:
            self._groups[cell].settle()

    def order_stop(self, cell: AnyCell) -> None:
        """Have `cell` end: nothing further is handled, and its children are cancelled."""
        if cell.state not in (ActorState.RUNNING, ActorState.RESTARTING):
            return
        cell.state = ActorState.STOPPING
        cell.closed = True
        cell.occupy()
        life = cell.life
        if life is None or not life.children:
            self.childless(cell)
        elif not life.is_over:
            life.end()
            self.shared.deadlines.at(self.shared.now() + self.shared.patience, life.disown)

    def _farewell(self, cell: AnyCell) -> Exception | None:
        """Call the `stopped` hook of an actor that has begun; return what it raised."""
        life = cell.life
        if life is None or life.fresh or cell.state is not ActorState.STOPPING:
            return None
        life.is_over = True
        try:
            life.actor.stopped()
        except Exception as error:
            self.shared.crashed(cell.name, error)
            return error
        return None

    def finish(self, cell: AnyCell, state: ActorState, error: BaseException | None = None) -> None:
        """End `cell` for good: bury its mail, fail its questions, tell those who watch and those who wait."""
        if cell.state in (ActorState.STOPPED, ActorState.FAULTED):
            return
        cell.state = state
        cell.closed = True
        life, cell.life = cell.life, None
        if life is not None:
            life.end(cell.gone())
            life.actor = NOBODY  # they hold each other, and would be left to the garbage collector
        _bury_all(cell, "unhandled" if state is ActorState.FAULTED else "stopped")
        if cell.busy:
            self.shared.active -= 1
            if not self.shared.active:
                self.shared.became_idle()
        cell.busy = True  # so that nobody has it visited any more
        self.shared.tally.retire(cell.sent, cell.handled)
        del self.cells[cell.name]
        if (group := self._groups.pop(cell, None)) is not None:
            group.leave(cell)
        watchers, cell.watchers = cell.watchers, None
        for watcher in watchers or ():
            self.notify(watcher, Terminated(cell.name, error, state is ActorState.FAULTED))
        for waiter in cell.endings or ():
            wake(waiter)
        cell.endings = None

    def notify(self, watcher: Callable[[Terminated], object], terminated: Terminated) -> None:
        """Call `watcher`; what it raises is reported, so that it disturbs nobody else."""
        try:
            watcher(terminated)
        except Exception as error:
            self.shared.crashed(terminated.name, error)

    def finish_all(self) -> None:
        """End all actors, the last started first. There will be no restart."""
        self._groups.clear()
        for cell in reversed(tuple(self.cells.values())):
            self.finish(cell, ActorState.STOPPED)


class Group:
    """Actors that restart together, in the order they were started. Made by `System.group`.

    `error`: the crash that is being dealt with. Further ones on the way down and up count as the same.
    """

    __slots__ = ("_crashes", "_members", "_patience", "_restart", "_supervisor", "_waits", "error")

    def __init__(self, supervisor: Supervisor, restart: Restart) -> None:
        self._supervisor = supervisor
        self._restart = restart
        self._members: list[AnyCell] = []
        self._crashes: list[float] = []
        self._patience: Timer | None = None
        self._waits = False  # for the delay before the restart
        self.error: BaseException | None = None

    def join(self, cell: AnyCell) -> None:
        """Make `cell` a member; if the others are on their way down, it goes with them."""
        self._members.append(cell)
        if self.error is not None:
            self._take_down(cell)

    def leave(self, cell: AnyCell) -> None:
        """Forget `cell`, which has ended."""
        self._members.remove(cell)
        self.settle()

    def crashed(self, error: BaseException) -> None:
        """Take all members down, at once."""
        shared = self._supervisor.shared
        now = shared.now()
        self.error = error
        self._crashes = [*(when for when in self._crashes if when >= now - self._restart.period), now]
        self._patience = shared.deadlines.at(now + shared.patience, self._disown)
        for member in self._members:
            self._take_down(member)
        self.settle()

    def settle(self) -> None:
        """Restart the members or give them up, if all are down."""
        error = self.error
        if error is None or self._waits or any(cell.life and cell.life.children for cell in self._members):
            return
        shared = self._supervisor.shared
        if self._patience is not None:
            shared.deadlines.withdraw(self._patience)
        if len(self._crashes) > self._restart.intensity:
            self.error = None
            for member in tuple(reversed(self._members)):
                self._supervisor.finish(member, ActorState.FAULTED, error)
            return
        self._waits = True
        shared.deadlines.at(shared.now() + self.delay(len(self._crashes)), self._up)

    def delay(self, crashes: int) -> float:
        """Return the seconds before the restart after the last of so many crashes."""
        first, most = self._restart.backoff
        doubled = min(most, first * 2.0 ** (crashes - 1))
        return doubled * self._supervisor.shared.random.uniform(0.5, 1.0)

    def _take_down(self, cell: AnyCell) -> None:
        if cell.state is ActorState.RUNNING:
            cell.state = ActorState.RESTARTING
            cell.occupy()
            if cell.life is not None:
                cell.life.end(failed(cell.name, self.error))

    def _disown(self) -> None:
        for member in tuple(self._members):
            if member.life is not None:
                member.life.disown()

    def _up(self) -> None:
        self._waits = False
        self.error = None
        waiting = [cell for cell in self._members if cell.state is ActorState.RESTARTING]
        for cell in waiting:
            cell.state, cell.life = ActorState.RUNNING, None
            cell.restarts += 1
        for cell in waiting:
            cell.resume()


def _bury_all(cell: AnyCell, reason: Reason) -> None:
    for queue in (cell.control, cell.mail):
        if queue is not None:
            while queue:
                cell.bury(queue.popleft(), reason, cell.gone())
            queue.dismiss()
    cell.control = cell.mail = None
