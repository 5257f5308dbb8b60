"""What an actor's author writes against: `Actor`, and the `Context` it is given when it starts.

A context is the life of one object of an actor, from its factory to its end or its crash, and all that ends with it:
its children, the questions it has yet to answer, what it waits for. After a crash the actor has another, and what is
left of the old one can do nothing to it.
"""

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Generic, TypeVarTuple

from actors.errors import ActorFailed, ActorStopped
from actors.kernel.message import Command, Guard, Reply, fail_waiter
from actors.kernel.parking import Scope, Waiter
from actors.kernel.ref import C, D, Ref
from actors.kernel.shared import Shared
from actors.kernel.tasks import Work

Args = TypeVarTuple("Args")


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


@dataclass(frozen=True, slots=True)
class Terminated:
    """An actor ended. What those are told who watch it.

    Args:
        name: Its name.
        error: The last crash if it was given up after too many, or what its `stopped` hook raised.
        faulted: Whether it was given up.
    """

    name: str
    error: BaseException | None = None
    faulted: bool = False


class Actor(Generic[C]):
    """State that changes by one message at a time. Its methods are plain functions: none of them can wait.

    `level` orders asks: an actor's children ask only actors of greater (depth, level); `System.spawn` gives the depth.
    """

    __slots__ = ()
    level: ClassVar[int] = 0

    @property
    def idle(self) -> bool:
        """Whether the actor may be passivated when it has no mail, no child and owes no answer.

        False if it still waits for something that the kernel cannot know of. See `System.passivate`.
        """
        return True

    def started(self, context: "Context[C]") -> None:
        """Prepare, before the first message; also after a restart, on the new object."""

    def receive(self, command: C) -> None:
        """Handle one message. No other handler of this actor runs meanwhile.

        It often runs on the sender's stack, so it must be short; for what takes time, start a
        child and hear of its end by a message. An exception is a crash: the asker gets `ActorFailed` and the actor
        is rebuilt by its factory.
        """
        raise NotImplementedError(f"{type(self).__name__} has no receive for {type(command).__name__}.")

    def stopped(self) -> None:
        """Give back what `started` took, when the actor is stopped in order, after its children have ended.

        It is not called after a crash: the object's state is in doubt then.
        """


class Body(Ref[C]):
    """What a life needs of the cell it is in. `rank`: its depth, then its level."""

    __slots__ = ()
    shared: Shared
    rank: tuple[int, int]

    @abstractmethod
    def offer(self, command: Command) -> bool:
        """Send without waiting; False if there is no room."""

    @abstractmethod
    def occupy(self) -> None:
        """Note that there is something to do, or to wait for."""

    @abstractmethod
    def resume(self) -> None:
        """Handle what is queued."""

    @abstractmethod
    def crash(self, error: BaseException) -> None:
        """Go down with `error`, at once or behind the handler that runs."""

    @abstractmethod
    def childless(self) -> None:
        """Continue what waited for the last child to end."""


class Context(Generic[C]):
    """An actor's hold on the system around it, for the life of one object. Given to `started`; keep it.

    After a crash of the actor it holds nothing: what the lost object still does through it has no effect.

    `fresh`: the object has not begun, or was lost; its hooks are not to be called. `is_over`: it was stopped or lost.
    `holds`: why it handles nothing for now, counted.
    """

    __slots__ = ("_body", "_outbox", "actor", "children", "deferred", "fresh", "holds", "is_over")

    def __init__(self, body: Body[C], actor: Actor[C]) -> None:
        self._body = body
        self.actor = actor
        self.fresh = type(actor).started is not Actor.started
        self.is_over = False
        self.children: set[Child] | None = None
        self.deferred: set[Waiter] | None = None  # questions whose handler returned before the answer
        self.holds = 0
        self._outbox: deque[tuple[Body[Any], Command]] | None = (
            None  # Any: each receiver has its own commands
        )

    @property
    def ref(self) -> Ref[C]:
        """The actor's own address."""
        return self._body

    @property
    def owes(self) -> bool:
        """Whether somebody waits for an answer. An asker that went away is owed nothing."""
        return any(not waiter.done() for waiter in self.deferred or ())

    def start(
        self,
        function: Callable[[*Args], Coroutine[Any, Any, object]],  # Any: the traps of the event loop
        *args: *Args,
        name: str | None = None,
        holds: bool = False,
    ) -> "Child":
        """Start a child task: `function(*args)`.

        The child may ask, downhill; its asks inherit the deadline of the ask being handled now. Its failure
        is the actor's crash. It is cancelled, and waited for, before the actor stops or restarts.

        Args:
            function: What to do.
            args: Its arguments.
            name: Shown by debuggers.
            holds: Whether the actor handles nothing until the child has ended.

        Raises:
            ActorStopped: The actor is stopping or restarting.
        """
        if self.is_over:
            raise ActorStopped(
                f"Actor {self._body.name!r} is ending and starts no child; send it less, or earlier."
            )
        if self.children is None:
            self.children = set()
        if holds:
            self.hold()
        named = f"{self._body.name}/{name or getattr(function, '__qualname__', 'child')}"
        child = Child(self, self._body, holds=holds)
        self.children.add(child)
        child.launch(partial(function, *args), named)
        return child

    def tell(self, ref: Ref[D], command: D) -> None:
        """Send from a handler, which never waits. If there is no room, the actor handles nothing until there is.

        Raises:
            MailboxFull: There is no room, and the receiver does not stand below this actor.
            ActorStopped: The receiver has ended.
        """
        assert isinstance(ref, Body)
        body = self._body
        if ref.rank <= body.rank and ref.shared is body.shared:
            ref.tell_nowait(command)
        elif self._outbox or not ref.offer(command):
            if self._outbox is None:
                self._outbox = deque()
            self._outbox.append((ref, command))
            if len(self._outbox) == 1:
                self.start(self._send, self._outbox, name="outbox", holds=True)

    async def _send(self, outbox: deque[tuple[Body[Any], Command]]) -> None:  # Any: as above
        while outbox:
            ref, command = outbox[0]
            await ref.tell(command)
            outbox.popleft()

    def hold(self) -> None:
        """Handle nothing, after the message in hand, until `release`."""
        self.holds += 1
        if not self.is_over:
            self._body.occupy()

    def release(self) -> None:
        """Handle messages again."""
        self.holds -= 1
        if not self.holds and not self.is_over:
            self._body.resume()

    def fail(self, error: BaseException) -> None:
        """Crash with `error`: at once, or behind the handler that runs now."""
        if not self.is_over:
            self._body.crash(error)

    def defer(self, reply: Reply[Any]) -> None:  # Any: replies of every type
        """Remember a question whose handler returned before it was answered."""
        waiter = reply.waiter = reply.waiter or self._body.shared.parking.waiter()
        reply.guard = Guard(waiter, self._forgotten)
        if self.deferred is None:
            self.deferred = set()
        self.deferred.add(waiter)

    def _forgotten(self, waiter: Waiter) -> None:
        """Fail a question whose reply is gone. A finalizer calls it, in any thread and at any moment."""
        if self.deferred is not None:
            self.deferred.discard(waiter)
        if waiter.done():
            return
        name = self._body.name
        error = ActorFailed(
            f"Actor {name!r} dropped a question without an answer; keep its reply, or answer it."
        )
        with suppress(RuntimeError):  # the loop has ended, and the asker with it
            self._body.shared.parking.soon(partial(fail_waiter, waiter, error))

    def end(self, error: BaseException | None = None) -> None:
        """Start no more children, and cancel those there are. With `error` the object is lost: its questions fail."""
        self.is_over = True
        for child in tuple(self.children or ()):
            child.cancel()
        if error is not None:
            self.fresh = True
            deferred, self.deferred = self.deferred, None
            for waiter in deferred or ():
                fail_waiter(waiter, error)

    def disown(self) -> None:
        """Wait no longer for children that do not end."""
        children, self.children = self.children, None
        for child in children or ():
            child.disowned = True
        self._body.childless()

    def child_ended(self, child: "Child", error: BaseException | None) -> None:
        """Take note of a child's end, and of what it raised."""
        shared = self._body.shared
        if error is not None and not shared.is_crash(error):
            shared.fatal(error)
        elif error is not None and not child.was_to_end(error):
            if child.disowned or self.is_over:
                shared.crashed(self._body.name, error)
            else:
                self._body.crash(error)
        if child.holds:
            self.release()
        if self.children is not None:
            self.children.discard(child)
            if not self.children:
                self.children = None
                self._body.childless()
        shared.active -= 1
        if not shared.active:
            shared.became_idle()


class Child:
    """A task that works for an actor.

    `deadline`: that of the ask it works for. `disowned`: nobody waits for its end any more.
    """

    __slots__ = ("_scope", "cell", "deadline", "disowned", "holds", "life")

    _scope: Scope

    def __init__(
        self, life: Context[Any], cell: Body[Any], *, holds: bool
    ) -> None:  # Any: actors of every protocol
        self.life = life
        self.cell = cell
        self.deadline = _inherited(cell.shared)
        self.holds = holds
        self.disowned = False

    def cancel(self) -> None:
        """Cancel the task. Its end by this is not a failure; nothing happens if it has ended."""
        self._scope.cancel()

    def launch(self, work: Work, name: str) -> None:
        """Start `work` as this child's task, in context variables of the system, not the sender's."""
        shared = self.cell.shared
        shared.active += 1
        variables = shared.variables.copy()
        variables.run(current.set, self)
        self._scope = shared.tasks.start(work, partial(self.life.child_ended, self), name, variables)

    def was_to_end(self, error: BaseException) -> bool:
        """Tell whether the child was cancelled, and only met the end of those it works with."""
        return self._scope.cancel_called and isinstance(error, ActorStopped | ActorFailed)


def _inherited(shared: Shared) -> float | None:
    """Return the deadline (loop time) of the ask that is being worked for, if there is one."""
    command = shared.dispatcher.command
    if command is not None:
        return command.reply.deadline
    child = current.get()
    return None if child is None else child.deadline


current: ContextVar[Child | None] = ContextVar("current", default=None)
"""The child that the running task is; None outside of children."""
