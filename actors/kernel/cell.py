"""A cell: the passive body of an actor. A name, bounded queues, counters; no task of its own.

Everything here is synchronous but for the two waits a sender may have: for room, and for an answer. When handlers run
is in `dispatch`; what happens at a crash is in `supervisor`. One cell can stand idle by the hundred
thousand, so what it may need later (queues, watchers, waits) is made late and thrown away early.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, TypeAlias

from anyio.lowlevel import checkpoint

from actors.errors import ActorFailed, ActorStopped, AskTimeout, AskUphill, Draining, KernelError, MailboxFull
from actors.kernel.account import Reason, State
from actors.kernel.actor import Actor, Context, current
from actors.kernel.dispatch import STRETCH
from actors.kernel.mailbox import BoundedQueue
from actors.kernel.message import TOLD, Command, ErrorReply, Query, R, Reply, asked, told
from actors.kernel.parking import Waiter, wake
from actors.kernel.ref import C, Ref
from actors.kernel.supervisor import Group, Restart

if TYPE_CHECKING:
    from actors.kernel.system import System

AnyCell: TypeAlias = "Cell[Any]"  # Any: the kernel serves cells of every protocol; refs carry the type


@dataclass(slots=True, eq=False, repr=False)
class Cell(Ref[C]):
    """One actor's queues, counters and flags. Users hold it as a `Ref`.

    `rank`: its depth, then its level. `closed`: a sender must find out whether any message is taken. `busy`: it is to
    be visited, or held, or on its way down or up, so that a sender need not have it visited.
    """

    system: "System"
    factory: Callable[[], Actor[C]]
    name: str
    capacity: int
    restart: Restart
    rank: tuple[int, int]
    life: Context[C] | None = None
    group: Group | None = None
    state: State = "running"
    closed: bool = False
    busy: bool = False
    mail: BoundedQueue[Command] | None = None
    control: BoundedQueue[Command] | None = None
    sent: int = 0
    handled: int = 0
    restarts: int = 0
    watchers: list[Callable[[], object]] | None = None

    def __repr__(self) -> str:
        return f"<Ref {self.name!r} {self.state}>"

    # Sending

    async def tell(self, command: C) -> None:
        message = command if command.reply is TOLD else told(command)
        if not self._take(message):
            await self._wait_for_room(message, inf)

    def tell_nowait(self, command: C) -> None:
        if not self.offer(command):
            self.system.account.refuse(self.name, command, "overflow")
            raise MailboxFull(
                f"Mailbox of actor {self.name!r} is full ({self.capacity} messages); send later or slower."
            )

    def offer(self, command: Command) -> bool:
        """Send without waiting; False if there is no room."""
        return self._take(command if command.reply is TOLD else told(command))

    async def ask(self, query: Query[R], *, timeout: float | None = None) -> R:
        system, caller, deadline = self.system, current.get(), inf
        if caller is not None:
            if self.rank <= caller.life.ref.rank and system is caller.life.ref.system:
                raise self._uphill(caller.life.ref)
            deadline = caller.deadline
        if timeout is not None:
            deadline = min(deadline, system.now() + timeout)
        if deadline < inf and deadline <= system.now():
            raise self._late()
        reply: Reply[R] = Reply()
        reply.deadline = deadline
        query = asked(query, reply)
        system.account.asked += 1
        try:
            if not self._take(query):
                await self._wait_for_room(query, deadline)
            if reply.ended:
                result = reply.answer
            else:
                waiter = reply.waiter = reply.waiter or system.parking.waiter()
                del query, reply  # or this frame would keep the reply alive after everyone else forgot it
                result = await (waiter if deadline == inf else self._until(waiter, deadline))
            if caller is not None and caller.life.is_over:
                await checkpoint()  # its actor went down meanwhile: it hears of that before the answer
            if type(result) is ErrorReply:
                raise result.error
        except BaseException:
            system.account.unanswered += 1
            raise
        system.account.answered += 1
        answer: R = result
        return answer

    def _take(self, command: Command) -> bool:
        """Handle `command` now if the actor is idle, else queue it; False if there is no room."""
        if self.closed:
            self._check_open(command)
        dispatcher = self.system.dispatcher
        if (
            self.mail is None  # senders that wait for room have their place in a queue, and go first
            and self.control is None
            and not self.busy
            and not dispatcher.busy
            and dispatcher.stretch < STRETCH
        ):
            self.sent += 1
            dispatcher.busy = True
            try:
                dispatcher.run(self.handle, command)
            finally:
                dispatcher.busy = False
            if dispatcher.ready:
                dispatcher.serve()
            return True
        mail = self.mail
        queue = self._queue(command) if mail is None or command.control else mail
        if len(queue) >= queue.limit:
            return False
        queue.append(command)
        self.sent += 1
        if not self.busy:
            self.occupy()
            dispatcher.add(self)
        return True

    def _check_open(self, command: Command) -> None:
        if self.state not in ("running", "restarting"):
            self.system.account.refuse(self.name, command, "stopped")
            raise self._gone()
        if self.system.is_outside():
            self.system.account.refuse(self.name, command, "draining")
            raise Draining(f"Actor {self.name!r} takes no new work: its system is shutting down.")

    def _queue(self, command: Command) -> BoundedQueue[Command]:
        if command.control:
            if self.control is None:
                self.control = BoundedQueue(self.capacity)
            return self.control
        if self.mail is None:
            self.mail = BoundedQueue(self.capacity)
        return self.mail

    async def _wait_for_room(self, command: Command, deadline: float) -> None:
        """Send `command` as soon as there is room."""
        deadlines, parking = self.system.deadlines, self.system.parking
        while not self._take(command):
            if deadline <= parking.now():
                raise self._late()
            waiter = parking.waiter()
            timer = deadlines.at(deadline, partial(wake, waiter, value=False))
            try:
                await self._queue(command).wait_for_place(waiter)
            finally:
                deadlines.withdraw(timer)

    async def _until(self, waiter: Waiter, deadline: float) -> Any:  # Any: see Waiter
        deadlines = self.system.deadlines
        timer = deadlines.at(deadline, lambda: wake(waiter, ErrorReply(self._late())))
        try:
            return await waiter
        finally:
            deadlines.withdraw(timer)

    def _uphill(self, asker: AnyCell) -> AskUphill:
        return AskUphill(
            f"Actor {asker.name!r} of (depth, level) {asker.rank} must not ask {self.name!r} of {self.rank}: asks go "
            "downhill; tell it, or answer by an event."
        )

    def _gone(self) -> ActorStopped:
        return ActorStopped(f"Actor {self.name!r} is {self.state}; it takes no messages.")

    def _late(self) -> AskTimeout:
        return AskTimeout(
            f"Actor {self.name!r} did not answer before the deadline; give it longer, or ask again."
        )

    # Handling

    def handle(self, command: Command) -> None:
        """Have the actor handle one message. Raises nothing."""
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
        """Handle up to `most` messages that are queued; return whether there are more. Raises nothing."""
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
        """Deal with what came out of the actor's own code."""
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

    def occupy(self) -> None:
        """Note that there is something to do, or to wait for."""
        if not self.busy:
            self.busy = True
            self.system.active += 1

    def resume(self) -> None:
        """Handle what is queued."""
        if self.state == "running":
            self.system.dispatcher.add(self)

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
        """Go down with `error`, at once or behind the handler that runs."""
        self.system.dispatcher.afterwards(partial(self._crashed, error))

    def _crashed(self, error: BaseException) -> None:
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
        """Go on with what waited for the last child to end."""
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

    def finish(self, state: State) -> None:
        """End for good: bury the mail, fail the questions, tell those who watch."""
        if self.state in ("stopped", "faulted"):
            return
        self.state, self.closed = state, True
        system, life, self.life = self.system, self.life, None
        if life is not None:
            life.end(self._gone())
            del life.actor  # they hold each other, and would be left to the garbage collector
        self._bury_all("unhandled" if state == "faulted" else "stopped")
        if self.busy:
            system.rest()
        self.busy = True  # so that nobody has it visited any more
        system.account.sent += self.sent
        system.account.handled += self.handled
        del system.cells[self.name]
        if self.group is not None:
            self.group.leave(self)
        watchers, self.watchers = self.watchers, None
        for watcher in watchers or ():
            self.notify(watcher)

    def notify(self, watcher: Callable[[], object]) -> None:
        """Call `watcher`; what it raises is reported, so that it disturbs nobody else."""
        try:
            watcher()
        except Exception as error:
            self.system.crashed(self.name, error)

    def _bury(self, command: Command, reason: Reason, error: KernelError) -> None:
        """Make `command`, which was taken and not handled, a dead letter; its asker gets `error`."""
        self.system.account.bury(self.name, command, reason)
        command.reply.fail(error)

    def _bury_all(self, reason: Reason) -> None:
        for queue in (self.control, self.mail):
            if queue is not None:
                while queue:
                    self._bury(queue.popleft(), reason, self._gone())
                queue.dismiss()
        self.control = self.mail = None

    def _failure(self, cause: BaseException) -> ActorFailed:
        """Return what askers get after a crash with `cause`."""
        kind = type(cause).__name__
        error = ActorFailed(f"Actor {self.name!r} crashed with {kind}; the message is not tried again.")
        error.__cause__ = cause
        return error
