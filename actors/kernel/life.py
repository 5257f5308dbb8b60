"""A life: one object of an actor, from its factory to its end or its crash, and all that ends with it.

Its children, the questions it has yet to answer, what it waits for. After a crash the actor has another life, and
what is left of the old one can do nothing to it.
"""

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from typing import Any

from actors.errors import ActorFailed, ActorStopped
from actors.kernel.actor import Actor, Args, Child, Context
from actors.kernel.message import Command, Guard, Reply, fail_waiter
from actors.kernel.parking import Scope, Waiter
from actors.kernel.ref import C, D, Ref
from actors.kernel.shared import Shared
from actors.kernel.tasks import Work


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
        """Go on with what waited for the last child's end."""


class Life(Context[C]):
    """What ends when the object does.

    `fresh`: the object has not begun, or was lost; its hooks are not to be called. `is_over`: it was stopped or lost.
    `holds`: why it handles nothing for now, counted.
    """

    __slots__ = ("_body", "_outbox", "actor", "children", "deferred", "fresh", "holds", "is_over")

    def __init__(self, body: Body[C], actor: Actor[C]) -> None:
        self._body = body
        self.actor = actor
        self.fresh = type(actor).started is not Actor.started
        self.is_over = False
        self.children: set[Task] | None = None
        self.deferred: set[Waiter] | None = None  # questions whose handler returned before the answer
        self.holds = 0
        self._outbox: deque[tuple[Body[Any], Command]] | None = (
            None  # Any: each receiver has its own commands
        )

    @property
    def ref(self) -> Ref[C]:
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
    ) -> Child:
        if self.is_over:
            raise ActorStopped(
                f"Actor {self._body.name!r} is ending and starts no child; send it less, or earlier."
            )
        if self.children is None:
            self.children = set()
        if holds:
            self.hold()
        named = f"{self._body.name}/{name or getattr(function, '__qualname__', 'child')}"
        child = Task(self, self._body, holds=holds)
        self.children.add(child)
        child.launch(partial(function, *args), named)
        return child

    def tell(self, ref: Ref[D], command: D) -> None:
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
        self.holds += 1
        if not self.is_over:
            self._body.occupy()

    def release(self) -> None:
        self.holds -= 1
        if not self.holds and not self.is_over:
            self._body.resume()

    def fail(self, error: BaseException) -> None:
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

    def child_ended(self, child: "Task", error: BaseException | None) -> None:
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
        shared.rest()


class Task(Child):
    """A child's task. `deadline`: that of the ask it works for. `disowned`: nobody waits for its end any more."""

    __slots__ = ("_scope", "cell", "deadline", "disowned", "holds", "life")

    _scope: Scope

    def __init__(
        self, life: Life[Any], cell: Body[Any], *, holds: bool
    ) -> None:  # Any: actors of every protocol
        self.life = life
        self.cell = cell
        self.deadline = _inherited(cell.shared)
        self.holds = holds
        self.disowned = False

    def cancel(self) -> None:
        self._scope.cancel()

    def launch(self, work: Work, name: str) -> None:
        """Start `work` as this child's task, in context variables of the system, not of whoever sent the message."""
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


current: ContextVar[Task | None] = ContextVar("current", default=None)
"""The child that the running task is; None outside of children."""
