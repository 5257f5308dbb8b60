"""A cell: the passive body of an actor, with no task of its own. How it handles, crashes, restarts, ends.

A crash goes through three steps. *Down*, at once: no further message is handled, open questions fail, children are
cancelled and waited for. *Wait*: a backoff that doubles with each recent crash, with seeded jitter. *Up*: the factory
makes a new object; the mailbox is kept, the message that crashed it is not tried again. A `Group` is what goes down
and up together: several actors, or one alone. When it crashes more often than its restart intensity allows, it is given
up: its mail is dead, its watchers are told.

Some errors are no crash: nobody here made a mistake, and a restart would not help. They end the group after the first
step, and who waits for an answer of it gets the error itself.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from msgspec import Struct, field

from actors.errors import ActorFailed
from actors.kernel.account import Reason, State
from actors.kernel.actor import Actor, Context
from actors.kernel.message import TOLD, Command
from actors.kernel.receiver import C, Receiver
from actors.kernel.shared import SystemState

AnyCell: TypeAlias = "Cell[Any]"  # Any: the kernel serves cells of every protocol; refs carry the type


class Restart(Struct, frozen=True):
    """How often a crash is answered by a restart.

    Args:
        intensity: Restarts allowed within `period`; at one crash more the actor is given up. 0: at the first.
        period: Seconds.
        backoff: Seconds before the first restart, and at most; doubles with each crash within `period`.
        ends: Errors that are no crash: they are neither reported nor counted, and end the actor.
    """

    intensity: int = 3
    period: float = 60.0
    backoff: tuple[float, float] = (0.05, 5.0)
    ends: tuple[type[Exception], ...] = ()


RESTART = Restart()


class Group(Struct, eq=False):
    """Actors that restart together, in the order they were started. Given to `System.spawn`.

    `error`: the crash that is being dealt with. Further ones on the way down and up count as the same. `ended`: what
    the group was ended by, if it was no crash.
    """

    system: SystemState
    restart: Restart = RESTART
    members: "list[AnyCell]" = field(default_factory=list)
    crashes: list[float] = field(default_factory=list)
    waits: bool = False  # for the delay before the restart
    error: BaseException | None = None
    ended: BaseException | None = None

    def join(self, cell: "AnyCell") -> None:
        """Make `cell` a member; if the others are on their way down, it goes with them."""
        cell.group = self
        self.members.append(cell)
        if self.error is not None:
            cell.go_down(self.error)

    def crashed(self, error: BaseException) -> None:
        """Take all members down, at once."""
        now = self.system.now()
        self.error = error
        if isinstance(error, self.restart.ends):
            self.ended = error
        else:
            self.crashes = [*(when for when in self.crashes if when >= now - self.restart.period), now]
        for member in self.members:
            member.go_down(error)
        self.settle()

    def settle(self) -> None:
        """Restart the members, give them up or end them, if all are down."""
        if self.error is None or self.waits or any(cell.life and cell.life.children for cell in self.members):
            return
        if self.ended is not None or len(self.crashes) > self.restart.intensity:
            self.error = None
            for member in tuple(reversed(self.members)):
                member.finish("faulted" if self.ended is None else "stopped", self.ended)
            return
        self.waits = True
        self.system.deadlines.at(self.system.now() + self.delay(len(self.crashes)), self._up)

    def delay(self, crashes: int) -> float:
        """Return the seconds before the restart after the last of so many crashes."""
        first, most = self.restart.backoff
        doubled = min(most, first * 2.0 ** (crashes - 1))
        return doubled * self.system.random.uniform(0.5, 1.0)

    def _up(self) -> None:
        self.waits = False
        self.error = None
        waiting = [cell for cell in self.members if cell.state == "restarting"]
        for cell in waiting:
            cell.state, cell.life = "running", None
            cell.restarts += 1
        for cell in waiting:
            cell.resume()


class Cell(Receiver[C], eq=False, kw_only=True):
    """One actor. Others hold a `Ref` of it."""

    factory: Callable[[], Actor[C]]
    restart: Restart
    life: Context[C] | None = None
    group: Group | None = None
    handled: int = 0
    restarts: int = 0

    def handle(self, command: Command) -> None:
        system, life = self.system, self.life
        assert life is not None
        dispatcher = system.dispatcher
        dispatcher.acting, dispatcher.command = self, command
        dispatcher.stretch += 1
        message: Any = command  # Any: refs have checked that it is one of this actor's
        began = system.clock()
        try:
            life.actor.receive(message)
        except BaseException as error:
            self._bury(command, "poison", self._failure(error))
            self._raised(error)
        else:
            self.handled += 1
            reply = command.reply
            if reply is not TOLD and not (reply.ended if reply.waiter is None else reply.waiter.done()):
                life.defer(reply)
        took = system.clock() - began
        if took > system.slow:
            system.lagged(self.name, type(command).__name__, took)
        dispatcher.acting = dispatcher.command = None
        if dispatcher.late:
            dispatcher.catch_up()

    def visit(self, most: int) -> bool:
        if self.state != "running":
            return False
        life = self.life
        if life is None or life.fresh:
            life = self._begin()
        while self.busy and not (life is None or life.holds or life.is_over):
            queue = self.control or self.mail
            if not queue:
                self._rest()
                return False
            if not most:
                return True
            most -= 1
            command = queue.popleft()
            if queue.waiting:
                queue.grant()
            if command.reply.expired:
                self.system.account.bury(self.name, command, "expired")
            else:
                self.handle(command)
        return False

    def _begin(self) -> Context[C] | None:
        """Make the actor's object if a crash has cost it, and run its `started` hook; None if there is none."""
        dispatcher = self.system.dispatcher
        dispatcher.acting = self
        try:
            life = self.life = self.life or Context(self, self.factory())
            life.fresh = False
            life.actor.started(life)
        except BaseException as error:
            self._raised(error)
        dispatcher.acting = None
        dispatcher.catch_up()
        return self.life

    def _raised(self, error: BaseException) -> None:
        if self.system.is_crash(error):
            self.crash(error)
        else:
            self.system.fatal(error)

    def _rest(self) -> None:
        """Note that there is nothing to do, and give back the queues, unless somebody waits at one."""
        self.busy = False
        self.system.rest()
        if self.mail is not None and self.mail.unused:
            self.mail = None
        if self.control is not None and self.control.unused:
            self.control = None

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do, nothing on its way, and nothing that the actor waits for."""
        life = self.life
        if self.state != "running" or self.busy or life is None:
            return False
        if any(queue is not None and not queue.unused for queue in (self.mail, self.control)):
            return False
        is_acting = self.system.dispatcher.acting is self
        owes = any(not waiter.done() for waiter in life.deferred or ())  # nothing to an asker that went away
        return not (is_acting or life.children or owes) and life.actor.idle

    # Crashing and ending

    def crash(self, error: BaseException) -> None:
        self.system.dispatcher.afterwards(partial(self._crashed, error))

    def is_end(self, error: BaseException) -> bool:
        return isinstance(error, (self.group or self).restart.ends)

    def _crashed(self, error: BaseException) -> None:
        if not self.is_end(error):
            self.system.crashed(self.name, error)
        if self.state == "running":
            group = self.group or Group(self.system, self.restart)
            if self.group is None:
                group.join(self)
            group.crashed(error)

    def go_down(self, error: BaseException) -> None:
        """Handle nothing more, because the group has crashed with `error`."""
        if self.state == "running":
            self.state = "restarting"
            self.occupy()
            if self.life is not None:
                self.life.end(self._failure(error))

    def childless(self) -> None:
        if self.state == "stopping":
            self.finish("stopped")
        elif self.state == "restarting" and self.group is not None:
            self.group.settle()

    def stop(self) -> None:
        """Have the actor end: nothing further is handled, and its children are cancelled."""
        if self.state not in ("running", "restarting"):
            return
        self.state, self.closed = "stopping", True
        self.occupy()
        life = self.life
        if life is None or not life.children:
            self.finish("stopped")
        elif not life.is_over:
            life.end()

    def finish(self, state: State, why: BaseException | None = None) -> None:
        """End for good: bury the mail, fail the questions, with `why` if there is one, tell those who watch."""
        if self.state in ("stopped", "faulted"):
            return
        self.state, self.closed = state, True
        system, life, self.life = self.system, self.life, None
        if life is not None:
            life.end(why or self.gone())
            del life.actor  # they hold each other, and would be left to the garbage collector
        del self.factory  # as above: it may belong to who holds this
        self._bury_all("unhandled" if state == "faulted" else "stopped", why or self.gone())
        if self.busy:
            system.rest()
        self.busy = True  # so that nobody has it visited any more
        system.account.sent += self.sent
        system.account.handled += self.handled
        del system.cells[self.name]
        if self.group is not None:
            self.group.members.remove(self)
            self.group.settle()
        watchers, self.watchers = self.watchers, None
        for watcher in watchers or ():
            self.notify(watcher)

    def watch(self, watcher: Callable[[], object]) -> None:
        """Call `watcher` when the actor has ended; now, if it has."""
        if self.state in ("stopped", "faulted"):
            self.notify(watcher)
        else:
            self.watchers = [*(self.watchers or ()), watcher]

    def notify(self, watcher: Callable[[], object]) -> None:
        """Call `watcher`; what it raises is reported, so that it disturbs nobody else."""
        try:
            watcher()
        except Exception as error:
            self.system.crashed(self.name, error)

    def _bury(self, command: Command, reason: Reason, error: BaseException) -> None:
        """Make `command`, which was taken and not handled, a dead letter; its asker gets `error`."""
        self.system.account.bury(self.name, command, reason)
        command.reply.fail(error)

    def _bury_all(self, reason: Reason, error: BaseException) -> None:
        for queue in (self.control, self.mail):
            if queue is not None:
                while queue:
                    self._bury(queue.popleft(), reason, error)
                queue.dismiss()
        self.control = self.mail = None

    def _failure(self, cause: BaseException) -> BaseException:
        """Return what is told to who waits for an answer."""
        if self.is_end(cause):
            return cause
        kind = type(cause).__name__
        error = ActorFailed(f"Actor {self.name!r} crashed with {kind}; the message is not tried again.")
        error.__cause__ = cause
        return error
