"""A cell: the passive body of an actor, without a task of its own. It handles messages, crashes, restarts and ends.

A crash has three steps. *Down*, at once: no further message is handled, unanswered questions fail, children are
cancelled and awaited. *Wait*: a backoff that doubles with each recent crash, with seeded jitter. *Up*: the factory
creates a new object; the mailbox is kept, and the message that crashed is not retried. The members of a `Group` go
down and up together; a single actor has a group of its own. A group that crashes more often than its restart
intensity allows is faulted: its mail becomes dead letters, and its watchers are notified.

Some errors are not crashes: no code is at fault, and a restart would not help. They end the group after the first
step, and its askers get the error itself.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from msgspec import Struct

from actors.errors import ActorFailed
from actors.kernel.account import Reason, State
from actors.kernel.actor import Actor, Context
from actors.kernel.mailbox import BoundedQueue
from actors.kernel.message import NO_REPLY, Command
from actors.kernel.receiver import C, Receiver
from actors.kernel.shared import SystemState

AnyCell: TypeAlias = "Cell[Any]"  # Any: the kernel serves cells of every protocol; refs carry the type


class Restart(Struct, frozen=True):
    """The policy for restarts after crashes.

    Args:
        intensity: Restarts allowed within `period`. One more crash faults the actor; with 0, the first does.
        period: Seconds.
        backoff: Seconds before the first restart, and the maximum; doubles with each crash within `period`.
        ends: Errors that are not crashes: they are not reported or counted, and end the actor.
    """

    intensity: int = 3
    period: float = 60.0
    backoff: tuple[float, float] = (0.05, 5.0)
    ends: tuple[type[Exception], ...] = ()


RESTART = Restart()


class Group(Struct, eq=False):
    """Actors that restart together, in the order they were started. Passed to `System.spawn`.

    `error`: the crash that is being handled; further crashes on the way down and up count as the same one. `ended`:
    the error that ended the group, if it was no crash.
    """

    system: SystemState
    restart: Restart = RESTART
    members: "list[AnyCell]" = []
    crashes: list[float] = []
    is_backing_off: bool = False  # whether the backoff is running
    error: BaseException | None = None
    ended: BaseException | None = None

    def join(self, cell: "AnyCell") -> None:
        """Make `cell` a member. If the group is going down, so does the cell."""
        cell.group = self
        self.members.append(cell)
        if self.error is not None:
            cell.go_down(self.error)

    def take_down(self, error: BaseException) -> None:
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
        """Restart, fault or end the members, after all of them are down."""
        if (
            self.error is None
            or self.is_backing_off
            or any(cell.life and cell.life.children for cell in self.members)
        ):
            return
        if self.ended is not None or len(self.crashes) > self.restart.intensity:
            self.error = None
            for member in tuple(reversed(self.members)):
                member.finish("faulted" if self.ended is None else "stopped", self.ended)
            return
        self.is_backing_off = True
        self.system.deadlines.at(self.system.now() + self.delay(len(self.crashes)), self._come_up)

    def delay(self, crashes: int) -> float:
        """Return the seconds before the restart after this number of crashes."""
        first, most = self.restart.backoff
        doubled = min(most, first * 2.0 ** (crashes - 1))
        return doubled * self.system.random.uniform(0.5, 1.0)

    def _come_up(self) -> None:
        self.is_backing_off = False
        self.error = None
        waiting = [cell for cell in self.members if cell.state == "restarting"]
        for cell in waiting:
            cell.state, cell.life = "running", None
            cell.restarts += 1
        for cell in waiting:
            cell.resume()


class Cell(Receiver[C], eq=False, kw_only=True):
    """One actor. Other code refers to it by a `Ref`."""

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
            self._dead_letter(command, "poison", self._failure(error))
            self._handle_error(error)
        else:
            self.handled += 1
            reply = command.reply
            if reply is not NO_REPLY and not (reply.ended if reply.waiter is None else reply.waiter.done()):
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
            if command.reply.is_expired:
                self.system.account.dead_letter(self.name, command, "expired")
            else:
                self.handle(command)
        return False

    def _begin(self) -> Context[C] | None:
        """Create the actor's object if a crash has lost it, and run its `on_start` hook. Return None after a crash."""
        dispatcher = self.system.dispatcher
        dispatcher.acting = self
        try:
            life = self.life = self.life or Context(self, self.factory())
            life.fresh = False
            life.actor.on_start(life)
        except BaseException as error:
            self._handle_error(error)
        dispatcher.acting = None
        dispatcher.catch_up()
        return self.life

    def _handle_error(self, error: BaseException) -> None:
        if self.system.is_crash(error):
            self.crash(error)
        else:
            self.system.fatal(error)

    def _rest(self) -> None:
        """Become inactive, and drop unused queues."""
        self.busy = False
        self.system.rest()
        if self.mail is not None and self.mail.is_unused:
            self.mail = None
        if self.control is not None and self.control.is_unused:
            self.control = None

    @property
    def idle(self) -> bool:
        """True if the actor has no work, no expected message, and nothing that it waits for."""
        life = self.life
        if self.state != "running" or self.busy or life is None:
            return False
        if any(queue is not None and not queue.is_unused for queue in (self.mail, self.control)):
            return False
        is_acting = self.system.dispatcher.acting is self
        owes = any(not waiter.done() for waiter in life.deferred or ())  # an abandoned ask needs no answer
        return not (is_acting or life.children or owes) and life.actor.idle

    # Crashing and ending

    def crash(self, error: BaseException) -> None:
        self.system.dispatcher.afterwards(partial(self._take_down, error))

    def is_end(self, error: BaseException) -> bool:
        return isinstance(error, (self.group or self).restart.ends)

    def _take_down(self, error: BaseException) -> None:
        if not self.is_end(error):
            self.system.crashed(self.name, error)
        if self.state == "running":
            group = self.group or Group(self.system, self.restart)
            if self.group is None:
                group.join(self)
            group.take_down(error)

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
        """End the actor: handle nothing further, and cancel its children."""
        if self.state not in ("running", "restarting"):
            return
        self.state: State = "stopping"
        self.closed: bool = True
        self.occupy()
        life = self.life
        if life is None or not life.children:
            self.finish("stopped")
        elif not life.is_over:
            life.end()

    def finish(self, state: State, why: BaseException | None = None) -> None:
        """End for good: turn the mail into dead letters, fail the questions (with `why` if given), notify the
        watchers."""
        if self.state in ("stopped", "faulted"):
            return
        self.state, self.closed = state, True
        system, life, self.life = self.system, self.life, None
        if life is not None:
            life.end(why or self.stopped_error())
            del life.actor  # they refer to each other, which would leave them to the garbage collector
        del self.factory  # likewise: it may belong to an owner of this cell
        self._bury_all("unhandled" if state == "faulted" else "stopped", why or self.stopped_error())
        if self.busy:
            system.rest()
        self.busy: bool = True  # so that the cell is never scheduled again
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
        """Call `watcher` when the actor has ended; at once if it already has."""
        if self.state in ("stopped", "faulted"):
            self.notify(watcher)
        else:
            self.watchers = [*(self.watchers or ()), watcher]

    def notify(self, watcher: Callable[[], object]) -> None:
        """Call `watcher`. Its errors are reported, so that the other watchers still run."""
        try:
            watcher()
        except Exception as error:
            self.system.crashed(self.name, error)

    def _dead_letter(self, command: Command, reason: Reason, error: BaseException) -> None:
        """Record `command`, taken from its queue but not handled, as a dead letter. Its asker gets `error`."""
        self.system.account.dead_letter(self.name, command, reason)
        command.reply.fail(error)

    def _bury_all(self, reason: Reason, error: BaseException) -> None:
        for queue in (self.control, self.mail):
            if queue is not None:
                while queue:
                    self._dead_letter(queue.popleft(), reason, error)
                queue.dismiss()
        self.control: BoundedQueue[Command] | None = None
        self.mail: BoundedQueue[Command] | None = None

    def _failure(self, cause: BaseException) -> BaseException:
        """Return the error for the askers."""
        if self.is_end(cause):
            return cause
        kind = type(cause).__name__
        error = ActorFailed(f"Actor {self.name!r} crashed with {kind}; the message is not tried again.")
        error.__cause__ = cause
        return error
