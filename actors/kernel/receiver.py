"""Receive an actor's messages: handle each message immediately, or queue it in a bounded mailbox.

A process may have a hundred thousand idle actors. So the objects that only a busy actor needs (queues, watchers,
waiters) are created on demand and dropped soon after. The `Dispatcher` decides when a handler runs.

Handlers and children of actors run in the system's own context variables, so that the variables of one caller do not
reach another caller. Host code that an actor calls runs with the variables of the API call that led to it, such as
`Session.ask` (see `call_with_variables`).
"""

from collections.abc import Callable
from contextvars import Context, ContextVar
from functools import partial
from math import inf
from typing import Any, Generic, TypeVar

from msgspec import Struct

from actors.errors import ActorStopped, AskTimeout, ShuttingDown
from actors.kernel.event_loop import Scope, wake
from actors.kernel.message import NO_REPLY, BoundedQueue, Command, prepare_to_send
from actors.kernel.shared import STRETCH, State, SystemState

C = TypeVar("C", bound=Command, contravariant=True)
R = TypeVar("R")


class Child:
    """A task that works for an actor, its `owner`.

    `deadline` is the deadline of the query for which the task works, in loop time. `is_over` is True once the task has
    ended. A task that the child starts counts as the child until the child has ended, and after that as an unrelated
    task.
    """

    __slots__ = ("deadline", "is_cancelled", "is_over", "owner", "scope")

    scope: Scope
    is_cancelled: bool
    is_over: bool
    deadline: float

    def __init__(self, owner: "Receiver[Any]") -> None:  # Any: each actor has its own commands
        command, outer = owner.system.dispatcher.command, current_child()
        self.owner: Receiver[Any] = owner
        self.is_cancelled = self.is_over = False
        if command is not None:
            self.deadline = command.reply.deadline
        else:
            self.deadline = inf if outer is None else outer.deadline

    def cancel(self) -> None:
        """Cancel the task. This does not count as a failure of the task, and has no effect if the task has ended."""
        self.is_cancelled = True
        self.scope.cancel()


class Delegate(Child):
    """A stand-in for a child, which foreign code gets as its `current` child.

    Until the delegate has ended, queries of that code count as queries of the child.
    """

    __slots__ = ()

    owner: "Receiver[Any]"
    deadline: float
    is_cancelled: bool
    is_over: bool

    def __init__(self, child: Child) -> None:
        self.owner, self.deadline = child.owner, child.deadline
        self.is_cancelled = self.is_over = False


current: ContextVar[Child | None] = ContextVar("current", default=None)
"""The child whose task is running or started the running task; None outside of children. See `current_child`."""


def current_child() -> Child | None:
    """Return the child for which the running task works; None if there is no child, or the child has ended."""
    child = current.get()
    return None if child is None or child.is_over else child


def is_outside(system: SystemState) -> bool:
    """Return True if the caller is neither a handler nor a child of an actor."""
    return system.dispatcher.acting is None and current_child() is None


class Receiver(Struct, Generic[C], eq=False):
    """The part of an actor to which its refs point. It survives restarts, and rejects messages once the actor has
    ended.

    `rank` is the actor's (depth, level). While `closed` is True, each sender must check whether the actor accepts its
    message. `busy` means that the actor is scheduled, on hold, stopping or restarting, so a sender need not schedule
    it.
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
        """Number of messages in the mailbox, plus the senders that wait for space."""
        return sum(
            len(queue) + len(queue.waiting) for queue in (self.mail, self.control) if queue is not None
        )

    def offer(self, command: Command) -> bool:
        """Send a command without waiting; return False if the mailbox is full."""
        return self.accept(command if command.reply is NO_REPLY else prepare_to_send(command))

    def accept(self, command: Command) -> bool:
        """Handle `command` now if the actor is idle, otherwise queue it. Return False if the mailbox is full."""
        if self.closed:
            self._check_open(command)
        dispatcher, queue = self.system.dispatcher, self.mail
        if (
            queue is None  # if a queue exists, its messages and waiting senders go first
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
                dispatcher.run_ready()
            return True
        if queue is None or command.control:
            queue = self._queue_for(command)
        if len(queue) >= queue.limit:
            return False
        queue.append(command)
        self.sent += 1
        if not self.busy:
            self.mark_busy()
            dispatcher.schedule(self.handle_queued)
        return True

    def _check_open(self, command: Command) -> None:
        """Raise an error if the actor has ended, or if its system is shutting down and the caller is outside of it."""
        if self.state not in ("running", "restarting"):
            self.system.account.record_rejection(self.name, command, "stopped")
            raise self.stopped_error()
        if is_outside(self.system):
            self.system.account.record_rejection(self.name, command, "draining")
            raise ShuttingDown(
                f"Actor {self.name!r} accepts no new work, because its system is shutting down."
            )

    def _queue_for(self, command: Command) -> BoundedQueue[Command]:
        if command.control:
            if self.control is None:
                self.control = BoundedQueue(self.capacity)
            return self.control
        if self.mail is None:
            self.mail = BoundedQueue(self.capacity)
        return self.mail

    async def wait_and_send(self, command: Command, deadline: float) -> None:
        """Send `command` once the mailbox has space. Raise `AskTimeout` at `deadline`, in seconds of loop time."""
        deadlines, loop = self.system.deadlines, self.system.loop
        while not self.accept(command):
            waiter, timer = loop.waiter(), None
            if deadline < inf:
                if deadline <= loop.now():
                    raise self.timeout_error()
                timer = deadlines.call_at(deadline, partial(wake, waiter, value=False))
            try:
                await self._queue_for(command).wait_for_place(waiter)
            finally:
                if timer is not None:
                    deadlines.cancel(timer)

    def stopped_error(self) -> ActorStopped:
        """Return the error for a message to an actor that has ended."""
        return ActorStopped(f"Actor {self.name!r} is {self.state} and accepts no messages.")

    def timeout_error(self) -> AskTimeout:
        """Return the error for a query whose deadline has passed."""
        return AskTimeout(
            f"Actor {self.name!r} did not answer before the deadline; use a longer timeout, or ask again."
        )

    def mark_busy(self) -> None:
        """Mark the actor as busy, and count it as active."""
        if not self.busy:
            self.busy = True
            self.system.active += 1

    def resume(self) -> None:
        """Schedule the handling of queued messages, unless the actor is stopping or restarting."""
        if self.state == "running":
            self.system.dispatcher.schedule(self.handle_queued)

    # Implemented by `Cell`

    def handle(self, command: Command) -> None:
        """Let the actor handle one message. Never raises."""

    def handle_queued(self, limit: int) -> bool:
        """Handle up to `limit` queued messages; return True if messages remain. Never raises."""
        raise NotImplementedError

    def crash(self, error: BaseException) -> None:
        """Crash the actor with `error`: now, or after the running handler."""

    def is_regular_end(self, error: BaseException) -> bool:
        """Return True if `error` ends the actor without counting as a crash."""
        raise NotImplementedError

    def on_childless(self) -> None:
        """Continue a stop or restart, because the last child has ended."""


def call_with_variables(variables: Context, work: Callable[[], R]) -> R:
    """Return the result of `work()`, run with a copy of these variables. Variables that `work` sets are discarded.

    If a child task of an actor calls this, queries in `work` still count as queries of that child.
    """
    context = variables.copy()
    context.run(current.set, current.get())
    return context.run(work)
