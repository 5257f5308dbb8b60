"""The interface for authors of actors: `Actor`, and the `Context` that it receives when it starts.

A context lasts for the life of one object of an actor, from its factory to its end or crash. It owns the object's
children, unanswered questions and holds, which end with it. After a crash, the actor gets a new context, and
leftovers of the old one cannot affect it.
"""

import weakref
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar, TypeVarTuple

from msgspec import Struct

from actors.errors import ActorFailed, ActorStopped
from actors.kernel.event_loop import Waiter, wake
from actors.kernel.message import Command, ErrorReply, Reply
from actors.kernel.receiver import C, Child, Receiver, current
from actors.kernel.ref import Ref
from actors.kernel.shared import SystemState

Args = TypeVarTuple("Args")
D = TypeVar("D", bound=Command)


class Actor(Generic[C]):
    """State that changes by one message at a time. Its methods are plain functions, so they cannot wait.

    `level` orders asks: an actor's children ask only actors of greater (depth, level). `System.spawn` sets the depth.
    """

    __slots__ = ()
    level: ClassVar[int] = 0

    @property
    def idle(self) -> bool:
        """True if the actor may be passivated while it has no mail, no child and no unanswered question.

        False if it waits for something unknown to the kernel. See `System.passivate`.
        """
        return True

    def on_start(self, context: "Context[C]") -> None:
        """Prepare the actor before its first message. After a restart, this runs on the new object."""

    def receive(self, command: C) -> None:
        """Handle one message. No other handler of this actor runs at the same time.

        It often runs on the sender's stack, so it must be short. For longer work, start a child that reports its end
        by a message. An exception is a crash: the asker gets `ActorFailed`, and the factory rebuilds the actor.
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not implement `receive`, so it cannot handle {type(command).__name__}."
        )


class Context(Struct, Generic[C], eq=False):
    """The link of an actor to its system, for the life of one object. Passed to `on_start`, which stores it.

    `fresh`: `on_start` has not been called. `is_over`: the object was stopped or lost. `holds`: number of reasons to
    handle nothing for now. `deferred`: questions whose handlers returned without an answer.
    """

    receiver: Receiver[C]
    actor: Actor[C]
    fresh: bool = True
    is_over: bool = False
    holds: int = 0
    children: set[Child] | None = None
    deferred: dict[Waiter, weakref.ref[Reply[Any]]] | None = None  # Any: replies of every type
    outbox: deque[tuple[Ref[Any], Command]] | None = None  # Any: each receiver has its own commands

    @property
    def ref(self) -> Ref[C]:
        """A new address of the actor. Each access returns another clone, so that closing one does not affect the
        others."""
        return Ref(self.receiver)

    @property
    def system(self) -> SystemState:
        """The system that the actor belongs to."""
        return self.receiver.system

    def start(
        self,
        function: Callable[[*Args], Coroutine[Any, Any, object]],  # Any: the traps of the event loop
        *args: *Args,
        name: str | None = None,
        holds: bool = False,
    ) -> Child:
        """Start a child task that runs `function(*args)`; debuggers show it as `name`.

        The child may ask actors downhill; its asks inherit the deadline of the ask that is being handled. Its failure
        crashes the actor. It is cancelled, and awaited, before the actor stops or restarts. If it `holds` the actor,
        no message is handled until the child has ended.

        Raises:
            ActorStopped: The actor is stopping or restarting.
        """
        receiver, system = self.receiver, self.system
        if self.is_over:
            raise ActorStopped(
                f"Actor {receiver.name!r} is ending and starts no child; send it less, or earlier."
            )
        if holds:
            self.hold()
        child = _ChildOf(self, holds=holds)
        self.children = self.children or set()
        self.children.add(child)
        system.active += 1
        variables = system.variables.copy()
        variables.run(current.set, child)
        named = f"{receiver.name}/{name or getattr(function, '__qualname__', 'child')}"
        child.scope = system.tasks.start(partial(function, *args), child.on_end, named, variables)
        return child

    def send(self, ref: Ref[D], command: D) -> None:
        """Send from a handler, which cannot wait. If there is no room, the actor handles nothing until there is.

        Raises:
            MailboxFull: There is no room, and the receiver is not below this actor.
            ActorStopped: The receiver has ended.
        """
        if ref.receiver.rank <= self.receiver.rank and ref.receiver.system is self.system:
            ref.send_nowait(command)
        elif self.outbox or not ref.offer(command):
            self.outbox = self.outbox or deque()
            self.outbox.append((ref.clone(), command))  # the owner may close its clone in the meantime
            if len(self.outbox) == 1:
                self.start(self._send, self.outbox, name="outbox", holds=True)

    async def _send(self, outbox: deque[tuple[Ref[Any], Command]]) -> None:  # Any: as above
        while outbox:
            ref, command = outbox[0]
            await ref.send(command)
            outbox.popleft()
        self.outbox = None

    def hold(self) -> None:
        """Handle nothing after the current message, until `release`."""
        self.holds += 1
        if not self.is_over:
            self.receiver.occupy()

    def release(self) -> None:
        self.holds -= 1
        if not self.holds and not self.is_over:
            self.receiver.resume()

    def fail(self, error: BaseException) -> None:
        """Crash with `error`: at once, or after the running handler."""
        if not self.is_over:
            self.receiver.crash(error)

    def defer(self, reply: Reply[Any]) -> None:  # Any: replies of every type
        """Register a question that its handler left unanswered, to fail it if its reply is garbage-collected."""
        waiter = reply.waiter = reply.waiter or self.system.loop.waiter()
        self.deferred = self.deferred or {}
        self.deferred[waiter] = weakref.ref(reply, partial(self._fail_forgotten, waiter))

    def _fail_forgotten(self, waiter: Waiter, _reply: object) -> None:
        """Fail a question whose reply was garbage-collected. Called by a finalizer, in any thread at any time."""
        if self.deferred is not None:
            self.deferred.pop(waiter, None)
        if waiter.done():
            return
        why = f"Actor {self.receiver.name!r} dropped a question without an answer; keep its reply, or answer it."
        with suppress(RuntimeError):  # the loop has ended, and with it the asker
            self.system.loop.soon(partial(wake, waiter, ErrorReply(ActorFailed(why))))

    def end(self, error: BaseException | None = None) -> None:
        """Cancel the children and start no more. Wait for them at most for the system's `patience`.

        With `error`, the object is lost, and its unanswered questions fail.
        """
        self.is_over = True
        if self.children:
            system = self.system
            system.deadlines.at(system.now() + system.patience, self._disown)
            for child in tuple(self.children):
                child.cancel()
        if error is not None:
            deferred, self.deferred = self.deferred, None
            for waiter in deferred or ():
                wake(waiter, ErrorReply(error))

    def _disown(self) -> None:
        """Stop waiting for children that do not end."""
        if self.children:
            self.children = None
            self.receiver.childless()


class _ChildOf(Child):
    """A child of one context, which reacts to its end."""

    __slots__ = ("_context", "_holds")

    def __init__(self, context: Context[Any], *, holds: bool) -> None:  # Any: actors of every protocol
        super().__init__(context.receiver)
        self._context, self._holds = context, holds

    def on_end(self, error: BaseException | None) -> None:
        context, owner, system = self._context, self.owner, self.owner.system
        self.is_over = True
        if error is not None and not system.is_crash(error):
            system.fatal(error)
        elif error is not None and not (self.is_cancelled and isinstance(error, ActorStopped | ActorFailed)):
            # a cancelled child may see the actors it works with stop; any other error is unexpected
            if not context.is_over:
                owner.crash(error)
            elif not owner.is_end(error):
                system.crashed(owner.name, error)
        if self._holds:
            context.release()
        if context.children is not None:
            context.children.discard(self)
            if not context.children:
                context.children = None
                owner.childless()
        system.rest()
