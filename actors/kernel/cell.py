"""A cell: the passive body of an actor. A name, bounded queues, counters; no task of its own.

Everything here is synchronous but for the two waits a sender may have: for room, and for an answer. When handlers run
is in `dispatch`; what happens at a crash and at a stop is in `supervisor`. One cell can stand idle by the hundred
thousand, so what it may need later (queues, watchers, waits) is made late and thrown away early.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from math import inf
from typing import Any, Protocol, TypeAlias

from anyio.lowlevel import checkpoint

from actors.errors import ActorFailed, ActorStopped, AskTimeout, AskUphill, Draining, KernelError, MailboxFull
from actors.kernel.account import ActorState, Reason
from actors.kernel.actor import Actor, Body, Context, Restart, Terminated, current
from actors.kernel.dispatch import STRETCH
from actors.kernel.mailbox import BoundedQueue, Mailbox
from actors.kernel.message import TOLD, Command, ErrorReply, Query, R, Reply, asked, fail_waiter, told
from actors.kernel.parking import Waiter, wake
from actors.kernel.ref import C
from actors.kernel.shared import Shared

SPARES = 64  # empty queues kept for the next cell that gets mail
AnyCell: TypeAlias = "Cell[Any]"  # Any: the kernel serves cells of every protocol; refs carry the type


class Supervision(Protocol):
    """What a cell needs of its supervisor."""

    def failed(self, cell: AnyCell, error: BaseException) -> None:
        """Take an actor down that crashed. No handler runs."""

    def childless(self, cell: AnyCell) -> None:
        """Go on with an actor on its way down, whose last child has ended."""


class Cell(Body[C]):
    """One actor's queues, counters and flags. Users hold it as a `Ref`.

    `closed`: a sender must find out whether any message is taken. `busy`: it is to be visited, or held, or on its way
    down or up, so that a sender need not have it visited.
    """

    __slots__ = (
        "busy",
        "closed",
        "control",
        "endings",
        "factory",
        "handled",
        "life",
        "mail",
        "name",
        "rank",
        "restart",
        "restarts",
        "sent",
        "settings",
        "shared",
        "state",
        "supervision",
        "watchers",
    )

    def __init__(
        self,
        shared: Shared,
        supervision: Supervision,
        factory: Callable[[], Actor[C]],
        name: str,
        settings: Mailbox,
        restart: Restart,
        depth: int,
    ) -> None:
        self.shared = shared
        self.supervision = supervision
        self.factory = factory
        self.name = name
        self.settings = settings
        self.restart = restart
        self.state = ActorState.RUNNING
        self.closed = self.busy = False
        self.mail: BoundedQueue[Command] | None = None
        self.control: BoundedQueue[Command] | None = None
        self.sent = self.handled = self.restarts = 0
        self.watchers: list[Callable[[Terminated], object]] | None = None
        self.endings: list[Waiter] | None = None
        actor = factory()
        self.life: Context[C] | None = Context(self, actor)
        self.rank = _rank(depth, type(actor).level)

    def __repr__(self) -> str:
        return f"<Ref {self.name!r} {self.state.value}>"

    # Sending

    async def tell(self, command: C) -> None:
        sent = command if command.reply is TOLD else told(command)
        if not self._take(sent):
            await self._wait_for_room(sent, None)

    def tell_nowait(self, command: C) -> None:
        if not self.offer(command):
            self.shared.tally.refuse(self.name, command, "overflow")
            raise MailboxFull(
                f"Mailbox of actor {self.name!r} is full ({self.settings.capacity} messages); "
                "send later or slower."
            )

    def offer(self, command: Command) -> bool:
        return self._take(command if command.reply is TOLD else told(command))

    async def ask(self, query: Query[R], *, timeout: float | None = None) -> R:
        shared, caller, inherited = self.shared, current.get(), None
        if caller is not None:
            if self.rank <= caller.cell.rank and shared is caller.cell.shared:
                raise self._uphill(caller.cell)
            inherited = caller.deadline
        deadline = None if inherited is timeout is None else self._deadline(inherited, timeout)
        reply: Reply[R] = Reply()
        if deadline is not None:
            reply.deadline = deadline
        query = asked(query, reply)
        shared.tally.asked += 1
        try:
            if not self._take(query):
                await self._wait_for_room(query, deadline)
            if reply.ended:
                result = reply.answer
            else:
                waiter = reply.waiter = reply.waiter or shared.parking.waiter()
                del query, reply  # or this frame would keep the reply alive after everyone else forgot it
                result = await (waiter if deadline is None else self._until(waiter, deadline))
            if caller is not None and caller.life.is_over:
                await checkpoint()  # its actor went down meanwhile: it hears of that before the answer
        except BaseException as error:
            self._count_end(error)
            raise
        if type(result) is ErrorReply:
            self._count_end(result.error)
            raise result.error
        shared.tally.answered += 1
        answer: R = result
        return answer

    def _take(self, command: Command) -> bool:
        """Handle `command` now if the actor is idle, else queue it; False if there is no room."""
        if self.closed:
            self._check_open(command)
        dispatcher = self.shared.dispatcher
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
        if self.state not in (ActorState.RUNNING, ActorState.RESTARTING):
            self.shared.tally.refuse(self.name, command, "stopped")
            raise self.gone()
        if self.shared.dispatcher.acting is None and current.get() is None:
            self.shared.tally.refuse(self.name, command, "draining")
            raise Draining(f"Actor {self.name!r} takes no new work: its system is shutting down.")

    def _queue(self, command: Command) -> BoundedQueue[Command]:
        if command.control:
            if self.control is None:
                self.control = BoundedQueue(self.settings.control)
            return self.control
        if self.mail is None:
            spares, capacity = self.shared.spares, self.settings.capacity
            self.mail = queue = spares.pop() if spares else BoundedQueue(capacity)
            queue.capacity = queue.limit = capacity
        return self.mail

    async def _wait_for_room(self, command: Command, deadline: float | None) -> None:
        """Send `command` as soon as there is room."""
        deadlines, parking = self.shared.deadlines, self.shared.parking
        while not self._take(command):
            queue, waiter = self._queue(command), parking.waiter()
            if deadline is None:
                await queue.wait_for_place(waiter)
                continue
            timer = deadlines.at(deadline, partial(wake, waiter, False))
            try:
                await queue.wait_for_place(waiter)
            finally:
                deadlines.withdraw(timer)
            if timer.action is None and parking.now() >= deadline:
                queue.grant()
                raise self._late()

    def gone(self) -> ActorStopped:
        """Return the error for a message that comes too late."""
        return ActorStopped(f"Actor {self.name!r} is {self.state.value}; it takes no messages.")

    # Asking

    def _uphill(self, asker: Body[Any]) -> AskUphill:  # Any: as in `AnyCell`
        return AskUphill(
            f"Actor {asker.name!r} of (depth, level) {asker.rank} must not ask {self.name!r} of {self.rank}: asks go "
            "downhill; tell it, or answer by an event."
        )

    def _deadline(self, inherited: float | None, timeout: float | None) -> float:
        """Return the earlier one of both deadlines."""
        now = self.shared.now()
        deadline = min(inf if timeout is None else now + timeout, inf if inherited is None else inherited)
        if deadline <= now:
            raise self._late()
        return deadline

    async def _until(self, waiter: Waiter, deadline: float) -> Any:  # Any: see Waiter
        deadlines = self.shared.deadlines
        timer = deadlines.at(deadline, lambda: fail_waiter(waiter, self._late()))
        try:
            return await waiter
        finally:
            deadlines.withdraw(timer)

    def _late(self) -> AskTimeout:
        return AskTimeout(
            f"Actor {self.name!r} did not answer before the deadline; give it longer, or ask again."
        )

    def _count_end(self, error: BaseException) -> None:
        """Note how a question ended that was not answered."""
        tally = self.shared.tally
        if isinstance(error, AskTimeout):
            tally.timed_out += 1
        elif isinstance(error, KernelError):
            tally.failed += 1
        else:
            tally.abandoned += 1

    # Handling

    def handle(self, command: Command) -> None:
        shared, life = self.shared, self.life
        assert life is not None
        dispatcher = shared.dispatcher
        dispatcher.acting, dispatcher.command = self, command
        dispatcher.stretch += 1
        message: Any = command  # Any: refs have checked that it is one of this actor's
        began = shared.clock()
        try:
            life.actor.receive(message)
        except BaseException as error:
            self.bury(command, "poison", failed(self.name, error))
            self._raised(error)
        else:
            self.handled += 1
            reply = command.reply
            if reply is not TOLD and not (reply.ended if reply.waiter is None else reply.waiter.done()):
                life.defer(reply)
        took = shared.clock() - began
        if took > shared.slow:
            shared.lagged(self.name, command, took)
        dispatcher.acting = dispatcher.command = None
        if dispatcher.late:
            dispatcher.catch_up()

    def visit(self, most: int) -> bool:
        if not self.busy or self.state is not ActorState.RUNNING:
            return False
        life = self.life
        if life is None or life.fresh:
            life = self.begin()
        while not (life is None or life.holds or life.is_over):
            queue = self.control or self.mail
            if not queue:
                self._gone_idle()
                return False
            if not most:
                return True
            most -= 1
            command = queue.popleft()
            if queue.waiting is not None:
                queue.grant()
            if command.reply.expired:
                self.shared.tally.bury(self.name, command, "expired")
            else:
                self.handle(command)
        return False

    def begin(self) -> Context[C] | None:
        """Make the actor's object if a crash has cost it, and run its `started` hook; None if that crashed it."""
        dispatcher = self.shared.dispatcher
        dispatcher.acting = self
        try:
            life = self.life
            if life is None:
                life = self.life = Context(self, self.factory())
            life.fresh = False
            life.actor.started(life)
        except BaseException as error:
            self._raised(error)
        dispatcher.acting = None
        dispatcher.catch_up()
        return self.life

    def _raised(self, error: BaseException) -> None:
        """Deal with what came out of the actor's own code."""
        if self.shared.is_crash(error):
            self.crash(error)
        else:
            self.shared.fatal(error)

    def _gone_idle(self) -> None:
        """Note that there is nothing to do, and give back the queues, unless somebody waits at one."""
        self.busy = False
        shared, mail = self.shared, self.mail
        shared.active -= 1
        if not shared.active:
            shared.became_idle()
        if mail is not None and mail.unused:
            self.mail = None
            if len(shared.spares) < SPARES:
                shared.spares.append(mail)
        if self.control is not None and self.control.unused:
            self.control = None

    # What the kernel tells it

    def occupy(self) -> None:
        if not self.busy:
            self.busy = True
            self.shared.active += 1

    def resume(self) -> None:
        if self.state is ActorState.RUNNING:
            self.shared.dispatcher.add(self)

    def crash(self, error: BaseException) -> None:
        self.shared.dispatcher.afterwards(partial(self.supervision.failed, self, error))

    def childless(self) -> None:
        if self.state is not ActorState.RUNNING:
            self.supervision.childless(self)

    def bury(self, command: Command, reason: Reason, error: KernelError) -> None:
        """Make `command`, which was taken and not handled, a dead letter; its asker gets `error`."""
        self.shared.tally.bury(self.name, command, reason)
        command.reply.fail(error)

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do, nothing on its way, and nothing that the actor waits for."""
        life = self.life
        if self.state is not ActorState.RUNNING or self.busy or life is None:
            return False
        if any(queue is not None and not queue.unused for queue in (self.mail, self.control)):
            return False
        is_acting = self.shared.dispatcher.acting is self
        return not (is_acting or life.children or life.owes) and life.actor.idle


def failed(name: str, cause: BaseException | None) -> ActorFailed:
    """Return what askers of an actor get that crashed with `cause`."""
    kind = "an error" if cause is None else type(cause).__name__
    error = ActorFailed(f"Actor {name!r} crashed with {kind}; the message is not tried again.")
    error.__cause__ = cause
    return error


@lru_cache(maxsize=256)
def _rank(depth: int, level: int) -> tuple[int, int]:
    """Return what orders asks: the same object for all actors that stand alike."""
    return depth, level
