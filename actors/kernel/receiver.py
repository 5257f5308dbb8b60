"""Receive an actor's messages, and pass them to the actor at once or through a bounded mailbox.

An actor may be idle along with a hundred thousand others. So the parts that only a busy actor needs (queues,
watchers, waits) are created on demand and dropped soon after. `dispatch` decides when a handler runs.
"""

from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from math import inf
from typing import Any, Generic, TypeVar

from msgspec import Struct

from actors.errors import ActorStopped, AskTimeout, ShuttingDown
from actors.kernel.account import State
from actors.kernel.dispatch import STRETCH
from actors.kernel.event_loop import Scope, wake
from actors.kernel.mailbox import BoundedQueue
from actors.kernel.message import NO_REPLY, Command, sendable
from actors.kernel.shared import SystemState

C = TypeVar("C", bound=Command, contravariant=True)


class Child:
    """A task that works for an actor, its `owner`.

    `deadline` is the deadline of the ask that it serves. `is_over`: the task has ended. Tasks that it started may
    outlive it, and then ask like any unrelated task.
    """

    __slots__ = ("deadline", "is_cancelled", "is_over", "owner", "scope")

    scope: Scope
    is_cancelled: bool
    is_over: bool
    deadline: float

    def __init__(self, owner: "Receiver[Any]") -> None:  # Any: actors of every protocol
        command, outer = owner.system.dispatcher.command, current_child()
        self.owner: Receiver[Any] = owner
        self.is_cancelled = self.is_over = False
        if command is not None:
            self.deadline = command.reply.deadline
        else:
            self.deadline = inf if outer is None else outer.deadline

    def cancel(self) -> None:
        """Cancel the task. Ending by this is not a failure. No effect if it has ended."""
        self.is_cancelled = True
        self.scope.cancel()


class Delegate(Child):
    """Code of a child that runs in another task. It asks as that child, until the delegate is over."""

    __slots__ = ()

    owner: "Receiver[Any]"
    deadline: float
    is_cancelled: bool
    is_over: bool

    def __init__(self, child: Child) -> None:
        self.owner, self.deadline = child.owner, child.deadline
        self.is_cancelled = self.is_over = False


current: ContextVar[Child | None] = ContextVar("current", default=None)
"""The child that the running task is, or that started it; None outside of children. See `current_child`."""


def current_child() -> Child | None:
    """Return the child that the running task is or works for; None if there is none, or it has ended."""
    child = current.get()
    return None if child is None or child.is_over else child


def is_outside(system: SystemState) -> bool:
    """Return True if the caller is not an actor of the system."""
    return system.dispatcher.acting is None and current_child() is None


class Receiver(Struct, Generic[C], eq=False):
    """The part of an actor that its addresses refer to. It survives restarts, and knows when the actor has ended.

    `rank` is the actor's depth, then its level. `closed`: senders must check whether messages are accepted. `busy`:
    the actor is already scheduled, on hold, or going down or up, so a sender need not schedule it.
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

    def __repr__(self) -> str:
        return f"<Actor {self.name!r} {self.state}>"

    @property
    def waiting(self) -> int:
        """Messages in the mailbox, and senders that wait for space."""
        return sum(
            len(queue) + len(queue.waiting) for queue in (self.mail, self.control) if queue is not None
        )

    def offer(self, command: Command) -> bool:
        """Send without waiting; return False if there is no space."""
        return self.take(command if command.reply is NO_REPLY else sendable(command))

    def take(self, command: Command) -> bool:
        """Handle `command` now if the actor is idle, otherwise queue it; return False if there is no space."""
        if self.closed:
            self._check_open(command)
        dispatcher = self.system.dispatcher
        if (
            self.mail is None  # senders that wait for space have a place in a queue, and go first
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
            raise self.stopped_error()
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

    async def wait_for_space(self, command: Command, deadline: float) -> None:
        """Send `command` as soon as there is space."""
        deadlines, loop = self.system.deadlines, self.system.loop
        while not self.take(command):
            if deadline <= loop.now():
                raise self.timeout_error()
            waiter = loop.waiter()
            timer = deadlines.at(deadline, partial(wake, waiter, value=False))
            try:
                await self._queue(command).wait_for_place(waiter)
            finally:
                deadlines.withdraw(timer)

    def stopped_error(self) -> ActorStopped:
        """Return the error for a message to an actor that has ended."""
        return ActorStopped(f"Actor {self.name!r} is {self.state}; it takes no messages.")

    def timeout_error(self) -> AskTimeout:
        """Return the error for a question whose deadline has passed."""
        return AskTimeout(
            f"Actor {self.name!r} did not answer before the deadline; give it longer, or ask again."
        )

    def occupy(self) -> None:
        """Mark the actor as busy, and count it as active."""
        if not self.busy:
            self.busy = True
            self.system.active += 1

    def resume(self) -> None:
        """Handle the queued messages."""
        if self.state == "running":
            self.system.dispatcher.add(self.visit)

    # Implemented by `Cell`

    def handle(self, command: Command) -> None:
        """Let the actor handle one message. Never raises."""

    def visit(self, most: int) -> bool:
        """Handle up to `most` queued messages; return True if more remain. Never raises."""
        raise NotImplementedError

    def crash(self, error: BaseException) -> None:
        """Go down with `error`, at once or after the running handler."""

    def is_end(self, error: BaseException) -> bool:
        """Return True if an error ends the actor without being a crash."""
        raise NotImplementedError

    def childless(self) -> None:
        """Continue after the last child has ended."""
