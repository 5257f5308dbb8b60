"""Run an actor in a cell, without a separate task: handle its messages, crashes, restarts and end.

A crash has three steps:

- *Down*, at once: no further message is handled, unanswered queries fail, and children are cancelled and awaited.
- *Wait*: a backoff that doubles with each recent crash, with seeded jitter.
- *Up*: the factory creates a new object. The mailbox is kept, but the message that caused the crash is not retried.

The members of a `Group` go down and up together; an actor without a group forms its own group. A group that crashes
more often than its `Restart` policy allows is faulted: its queued messages become dead letters, and its watchers are
notified.

Some errors (`Restart.ends`) are not crashes, because no code is at fault and a restart would not help. Such an error
ends the group after the first step, and callers whose queries are unanswered get the error itself.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from msgspec import Struct

from actors.errors import ActorFailed
from actors.kernel.actor import Actor, Context
from actors.kernel.message import NO_REPLY, BoundedQueue, Command
from actors.kernel.receiver import C, Receiver
from actors.kernel.shared import Reason, State, SystemState

AnyCell: TypeAlias = "Cell[Any]"  # Any: the kernel serves cells of every protocol; refs carry the type


class Restart(Struct, frozen=True):
    """The policy for restarts after crashes.

    Args:
        intensity: Maximum number of restarts within `period`. After one more crash, the actor is not restarted.
        period: The time for which a crash is counted, in seconds.
        backoff: The wait before the first restart and the maximum wait, in seconds. The wait doubles with each crash
            within `period`.
        ends: Types of errors that end the actor without a restart. They are neither reported nor counted as crashes.
    """

    intensity: int = 3
    period: float = 60.0
    backoff: tuple[float, float] = (0.05, 5.0)
    ends: tuple[type[Exception], ...] = ()


RESTART = Restart()


class Group(Struct, eq=False):
    """Actors that restart together, in the order in which they were started. Pass the group to `System.spawn`.

    `error` is the error of the crash from which the group is recovering, or None. During the recovery, further crashes
    are not counted. `end_error` is the error that ended the group, if the error is not a crash (see `Restart.ends`).
    """

    system: SystemState
    restart: Restart = RESTART
    members: "list[AnyCell]" = []
    crashes: tuple[float, ...] = ()
    is_backing_off: bool = False  # True during the wait before a restart
    error: BaseException | None = None
    end_error: BaseException | None = None

    def add_member(self, cell: "AnyCell") -> None:
        """Make `cell` a member. If the group is handling a crash, the cell goes down too."""
        cell.group = self
        self.members.append(cell)
        if self.error is not None:
            cell.go_down(self.error)

    def take_down(self, error: BaseException) -> None:
        """Take all members down at once, because a member raised `error`."""
        now = self.system.now()
        self.error = error
        if isinstance(error, self.restart.ends):
            self.end_error = error
        else:
            self.crashes = (*(when for when in self.crashes if when >= now - self.restart.period), now)
        for member in self.members:
            member.go_down(error)
        self.continue_when_down()

    def continue_when_down(self) -> None:
        """Restart or end the members if all of them are down and their children have ended. Otherwise, do nothing."""
        if (
            self.error is None
            or self.is_backing_off
            or any(cell.life and cell.life.children for cell in self.members)
        ):
            return
        if self.end_error is not None or len(self.crashes) > self.restart.intensity:
            self.error = None
            for member in tuple(reversed(self.members)):
                member.finish("faulted" if self.end_error is None else "stopped", self.end_error)
            return
        self.is_backing_off = True
        self.system.deadlines.call_at(
            self.system.now() + self.backoff_seconds(len(self.crashes)), self._restart_members
        )

    def backoff_seconds(self, crashes: int) -> float:
        """Return the seconds to wait before a restart, after this number of recent crashes."""
        first, maximum = self.restart.backoff
        doubled = min(maximum, first * 2.0 ** (crashes - 1))
        return doubled * self.system.random.uniform(0.5, 1.0)

    def _restart_members(self) -> None:
        self.is_backing_off = False
        self.error = None
        waiting = [cell for cell in self.members if cell.state == "restarting"]
        for cell in waiting:
            cell.state, cell.life = "running", None
            cell.restarts += 1
        for cell in waiting:
            cell.resume()


class Cell(Receiver[C], eq=False, kw_only=True):
    """An actor with its mailbox, its restart policy, and the context of its current object (`life`).

    Users of the actor refer to the cell by a `Ref`.
    """

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
        message: Any = command  # Any: `Ref` has checked that the actor accepts commands of this type
        began = system.clock()
        try:
            life.actor.receive(message)
        except BaseException as error:
            self._fail_message(command, "poison", self._caller_error(error))
            self._handle_error(error)
        else:
            self.handled += 1
            reply = command.reply
            if reply is not NO_REPLY and not (reply.ended if reply.waiter is None else reply.waiter.done()):
                life.defer(reply)
        took = system.clock() - began
        if took > system.slow:
            system.on_slow(self.name, type(command).__name__, took)
        dispatcher.acting = dispatcher.command = None
        if dispatcher.late:  # for example, a crash must be handled before the sender continues
            dispatcher.run_deferred()

    def handle_queued(self, limit: int) -> bool:
        if self.state != "running":
            return False
        life = self.life
        if life is None or life.fresh:
            life = self._start_object()
        while self.busy and not (life is None or life.holds or life.is_over):
            queue = self.control or self.mail  # control commands go first
            if not queue:
                self._become_inactive()
                return False
            if not limit:
                return True
            limit -= 1
            command = queue.popleft()
            if queue.waiting:
                queue.grant_place()
            reply = command.reply
            if reply is not NO_REPLY and reply.is_expired:  # most messages have no reply
                self.system.account.record_dead_letter(self.name, command, "expired")
            else:
                self.handle(command)
        return False

    def _start_object(self) -> Context[C] | None:
        """Call `on_start` of the actor's object, and return its context. Return None if the object cannot be created.

        If a crash has discarded the previous object, a new one is created first.
        """
        dispatcher = self.system.dispatcher
        dispatcher.acting = self
        try:
            life = self.life = self.life or Context(self, self.factory())
            life.fresh = False
            life.actor.on_start(life)
        except BaseException as error:
            self._handle_error(error)
        dispatcher.acting = None
        dispatcher.run_deferred()
        return self.life

    def _handle_error(self, error: BaseException) -> None:
        if self.system.is_crash(error):
            self.crash(error)
        else:
            self.system.fatal(error)

    def _become_inactive(self) -> None:
        """Count the actor as inactive, and drop its unused queues to save memory."""
        self.busy = False
        self.system.decrement_active()
        if self.mail is not None and self.mail.is_unused:
            self.mail = None
        if self.control is not None and self.control.is_unused:
            self.control = None

    @property
    def idle(self) -> bool:
        """True if the actor can be passivated: it has no message, running handler, child or unanswered query."""
        life = self.life
        if self.state != "running" or self.busy or life is None:
            return False
        if any(queue is not None and not queue.is_unused for queue in (self.mail, self.control)):
            return False
        is_acting = self.system.dispatcher.acting is self
        owes = any(not waiter.done() for waiter in life.deferred or ())  # a cancelled caller needs no answer
        return not (is_acting or life.children or owes) and life.actor.idle

    # Crash and end

    def crash(self, error: BaseException) -> None:
        self.system.dispatcher.run_after_handler(partial(self._take_down, error))

    def is_regular_end(self, error: BaseException) -> bool:
        return isinstance(error, (self.group or self).restart.ends)

    def _take_down(self, error: BaseException) -> None:
        if not self.is_regular_end(error):
            self.system.on_crash(self.name, error)
        if self.state == "running":
            group = self.group or Group(self.system, self.restart)
            if self.group is None:
                group.add_member(self)
            group.take_down(error)

    def go_down(self, error: BaseException) -> None:
        """Stop handling messages, because the group has crashed with `error`."""
        if self.state == "running":
            self.state = "restarting"
            self.mark_busy()
            if self.life is not None:
                self.life.end(self._caller_error(error))

    def on_childless(self) -> None:
        if self.state == "stopping":
            self.finish("stopped")
        elif self.state == "restarting" and self.group is not None:
            self.group.continue_when_down()

    def stop(self) -> None:
        """End the actor: handle no more messages, and cancel its children."""
        if self.state not in ("running", "restarting"):
            return
        self.state: State = "stopping"
        self.closed: bool = True
        self.mark_busy()
        life = self.life
        if life is None or not life.children:
            self.finish("stopped")
        elif not life.is_over:
            life.end()

    def finish(self, state: State, error: BaseException | None = None) -> None:
        """End the actor permanently: drop queued messages as dead letters, fail unanswered queries, and call the
        watchers.

        The queries fail with `error`, by default with `ActorStopped`.
        """
        if self.state in ("stopped", "faulted"):
            return
        self.state, self.closed = state, True
        system, life, self.life = self.system, self.life, None
        if life is not None:
            life.end(error or self.stopped_error())
            del life.actor  # breaks a reference cycle, which only the garbage collector would free
        del self.factory  # breaks another reference cycle: the factory may refer to an owner of this cell
        self._drop_queues("unhandled" if state == "faulted" else "stopped", error or self.stopped_error())
        if self.busy:
            system.decrement_active()
        self.busy: bool = True  # so that the cell is never scheduled again
        system.account.sent += self.sent
        system.account.handled += self.handled
        del system.cells[self.name]
        if self.group is not None:
            self.group.members.remove(self)
            self.group.continue_when_down()
        watchers, self.watchers = self.watchers, None
        for watcher in watchers or ():
            self.call_watcher(watcher)

    def watch(self, watcher: Callable[[], object]) -> None:
        """Call `watcher` when the actor has ended, or now if it has already ended."""
        if self.state in ("stopped", "faulted"):
            self.call_watcher(watcher)
        else:
            self.watchers = [*(self.watchers or ()), watcher]

    def call_watcher(self, watcher: Callable[[], object]) -> None:
        """Call `watcher`, and report its error instead of raising it, so that the other watchers still run."""
        try:
            watcher()
        except Exception as error:
            self.system.on_crash(self.name, error)

    def _fail_message(self, command: Command, reason: Reason, error: BaseException) -> None:
        """Record `command` as a dead letter, and fail its query with `error`."""
        self.system.account.record_dead_letter(self.name, command, reason)
        command.reply.fail(error)

    def _drop_queues(self, reason: Reason, error: BaseException) -> None:
        """Turn all queued messages into dead letters, and drop the queues."""
        for queue in (self.control, self.mail):
            if queue is not None:
                while queue:
                    self._fail_message(queue.popleft(), reason, error)
                queue.dismiss_senders()
        self.control: BoundedQueue[Command] | None = None
        self.mail: BoundedQueue[Command] | None = None

    def _caller_error(self, cause: BaseException) -> BaseException:
        """Return the error for callers whose queries fail: `ActorFailed`, or `cause` if `cause` is not a crash."""
        if self.is_regular_end(cause):
            return cause
        kind = type(cause).__name__
        error = ActorFailed(f"Actor {self.name!r} crashed with {kind}; the message is not retried.")
        error.__cause__ = cause
        return error
