"""The address of an actor, all that others hold of it: how it is sent to, and asked.

Everything here is synchronous but for the two waits a sender may have: for room, and for an answer. When handlers run
is in `dispatch`. Actors can stand idle by the hundred thousand, so what one may need later (queues, watchers, waits)
is made late and thrown away early.
"""

from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from math import inf
from typing import Any, Generic, TypeVar

from anyio.lowlevel import checkpoint
from msgspec import Struct

from actors.errors import ActorStopped, AskOrderError, AskTimeout, MailboxFull, ShuttingDown
from actors.kernel.account import State
from actors.kernel.dispatch import STRETCH
from actors.kernel.mailbox import BoundedQueue
from actors.kernel.message import TOLD, Command, ErrorReply, Query, R, Reply, asked, told
from actors.kernel.parking import Scope, Waiter, wake
from actors.kernel.shared import SystemState

C = TypeVar("C", bound=Command, contravariant=True)
D = TypeVar("D", bound=Command)


class Child:
    """A task that works for an actor. `deadline`: that of the ask it works for. `is_over`: it has ended.

    What it starts may outlive it, and asks as anybody then.
    """

    __slots__ = ("deadline", "is_cancelled", "is_over", "ref", "scope")

    scope: Scope

    def __init__(self, ref: "Ref[Any]") -> None:  # Any: actors of every protocol
        command, outer = ref.system.dispatcher.command, current_child()
        self.ref = ref
        self.is_cancelled = self.is_over = False
        if command is not None:
            self.deadline = command.reply.deadline
        else:
            self.deadline = inf if outer is None else outer.deadline

    def cancel(self) -> None:
        """Cancel the task. Its end by this is not a failure; nothing happens if it has ended."""
        self.is_cancelled = True
        self.scope.cancel()


class Delegate(Child):
    """Code that a child runs in another task. It asks as that child, until it is over."""

    __slots__ = ()

    def __init__(self, child: Child) -> None:
        self.ref, self.deadline = child.ref, child.deadline
        self.is_cancelled = self.is_over = False


current: ContextVar[Child | None] = ContextVar("current", default=None)
"""The child that the running task is, or was started by; None outside of children. See `current_child`."""


def current_child() -> Child | None:
    """Return the child that the running task is, or works for; None if there is none, or it has ended."""
    child = current.get()
    return None if child is None or child.is_over else child


def is_outside(system: SystemState) -> bool:
    """Tell whether the caller is none of the system's actors."""
    return system.dispatcher.acting is None and current_child() is None


class Ref(Struct, Generic[C], eq=False):
    """Where to send commands of type `C`. It stays valid while the actor restarts, and after it ended.

    `rank`: the actor's depth, then its level. `closed`: a sender must find out whether any message is taken. `busy`:
    the actor is to be visited, or held, or on its way down or up, so that a sender need not have it visited.
    """

    system: SystemState
    name: str
    capacity: int
    rank: tuple[int, int]
    state: State = "running"
    closed: bool = False
    busy: bool = False
    mail: BoundedQueue[Command] | None = None
    control: BoundedQueue[Command] | None = None
    sent: int = 0
    watchers: list[Callable[[], object]] | None = None

    @property
    def waiting(self) -> int:
        """How many messages are in the mailbox, and how many senders wait for room."""
        return sum(
            len(queue) + len(queue.waiting) for queue in (self.mail, self.control) if queue is not None
        )

    def __repr__(self) -> str:
        return f"<Ref {self.name!r} {self.state}>"

    async def tell(self, command: C) -> None:
        """Send `command`. An idle actor handles it at once; else it is put into the mailbox.

        Gives way only when the mailbox is full. A caller cancelled while it waits for room has sent nothing.

        Raises:
            ActorStopped: The actor has ended.
            ShuttingDown: The system is shutting down, and the caller is not one of its actors.
        """
        message = command if command.reply is TOLD else told(command)
        if not self._take(message):
            await self._wait_for_room(message, inf)

    def tell_nowait(self, command: C) -> None:
        """Send `command` without waiting.

        Raises:
            MailboxFull: The mailbox is full.
            ActorStopped, Draining: As with `tell`.
        """
        if not self.offer(command):
            self.system.account.refuse(self.name, command, "overflow")
            full = f"Mailbox of actor {self.name!r} is full ({self.capacity} messages)"
            raise MailboxFull(f"{full}; send later or slower.")

    def offer(self, command: Command) -> bool:
        """Send without waiting; False if there is no room."""
        return self._take(command if command.reply is TOLD else told(command))

    async def ask(self, query: Query[R], *, timeout: float | None = None) -> R:
        """Send `query`, which may have been asked before, and return its answer.

        A child inherits the deadline of the ask it works for; that or `timeout` (seconds, waiting for room included)
        holds, whichever is earlier. A cancelled caller abandons the question: it is handled all the same, and the
        answer goes nowhere.

        Raises:
            AskTimeout: No answer in time. If the actor has not come to the question yet, it never will.
            ActorFailed: Its handler raised (the cause is chained), or the question was dropped unanswered.
            AskOrderError: The caller is an actor's child, and the receiver does not stand below that actor.
            ActorStopped, Draining: As with `tell`, or while the question was queued.
        """
        system, caller, deadline = self.system, current_child(), inf
        if caller is not None:
            if self.rank <= caller.ref.rank and system is caller.ref.system:
                raise self._uphill(caller.ref)
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
            if caller is not None and caller.is_cancelled:
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
            dispatcher.add(self.visit)
        return True

    def _check_open(self, command: Command) -> None:
        if self.state not in ("running", "restarting"):
            self.system.account.refuse(self.name, command, "stopped")
            raise self.gone()
        if is_outside(self.system):
            self.system.account.refuse(self.name, command, "draining")
            raise ShuttingDown(f"Actor {self.name!r} takes no new work: its system is shutting down.")

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

    def _uphill(self, asker: "Ref[Any]") -> AskOrderError:
        return AskOrderError(
            f"Actor {asker.name!r} of (depth, level) {asker.rank} must not ask {self.name!r} of {self.rank}: asks go "
            "downhill; tell it, or answer by an event."
        )

    def gone(self) -> ActorStopped:
        """Return the error for a message that comes too late."""
        return ActorStopped(f"Actor {self.name!r} is {self.state}; it takes no messages.")

    def _late(self) -> AskTimeout:
        return AskTimeout(
            f"Actor {self.name!r} did not answer before the deadline; give it longer, or ask again."
        )

    def occupy(self) -> None:
        """Note that there is something to do, or to wait for."""
        if not self.busy:
            self.busy = True
            self.system.active += 1

    def resume(self) -> None:
        """Handle what is queued."""
        if self.state == "running":
            self.system.dispatcher.add(self.visit)

    # What the actor does, see `Cell`

    def handle(self, command: Command) -> None:
        """Have the actor handle one message. Raises nothing."""

    def visit(self, most: int) -> bool:
        """Handle up to `most` messages that are queued; return whether there are more. Raises nothing."""
        raise NotImplementedError

    def crash(self, error: BaseException) -> None:
        """Go down with `error`, at once or behind the handler that runs."""

    def is_end(self, error: BaseException) -> bool:
        """Tell whether an error ends the actor without being a crash."""
        raise NotImplementedError

    def childless(self) -> None:
        """Go on with what waited for the last child to end."""
