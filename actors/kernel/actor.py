"""Define the interface for authors of actors: `Actor`, and the `Context` that an actor receives when it starts.

Each actor object has its own context, from the moment the factory creates the object until the object is stopped or
crashes. The context owns the object's child tasks and the queries that the object has not answered, and ends them.
After a crash, the new object gets a new context, so tasks and replies of the old object cannot affect the new one.
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
    """An object that handles one message at a time. Its methods are plain functions, so they cannot wait.

    `level` prevents circular asks: a child task of an actor may ask only actors with a greater pair (depth, level).
    `System.spawn` sets the depth.
    """

    __slots__ = ()
    level: ClassVar[int] = 0

    @property
    def idle(self) -> bool:
        """True if the actor may be passivated, as far as the actor itself knows.

        An actor overrides this if it can wait for events that the kernel does not know about. The kernel itself checks
        for queued messages, children and unanswered queries.
        """
        return True

    def on_start(self, context: "Context[C]") -> None:
        """Prepare the actor object before its first message. After a restart, this is called on the new object."""

    def receive(self, command: C) -> None:
        """Handle one message. No other handler of this actor runs at the same time.

        The handler often runs on the sender's stack, so it must be short. Longer work belongs in a child task, which
        reports its result by a message. If the handler raises, the actor crashes: the caller of a query gets
        `ActorFailed`, and the factory creates a new object.
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not implement `receive`, so it cannot handle {type(command).__name__}."
        )


class Context(Struct, Generic[C], eq=False):
    """The connection between one actor object and its system, passed to `Actor.on_start`.

    Args:
        fresh: True until `on_start` is called.
        is_over: True once the object was stopped or has crashed.
        holds: Number of calls of `hold_messages` without a matching `release_messages`. The actor handles messages only
            while this number is 0.
        deferred: Weak references to the replies of unanswered queries whose handlers have returned. Each key is the
            waiter of the query's caller.
        outbox: Commands that wait for space in another actor's mailbox, each with that actor's address.
    """

    receiver: Receiver[C]
    actor: Actor[C]
    fresh: bool = True
    is_over: bool = False
    holds: int = 0
    children: set[Child] | None = None
    deferred: "dict[Waiter, _DeferredReply] | None" = None
    outbox: deque[tuple[Ref[Any], Command]] | None = None  # Any: each receiver has its own commands

    @property
    def ref(self) -> Ref[C]:
        """A new address of the actor. Closing this address does not affect other addresses."""
        return Ref(self.receiver)

    @property
    def system(self) -> SystemState:
        """The system that the actor belongs to."""
        return self.receiver.system

    def start(
        self,
        function: Callable[[*Args], Coroutine[Any, Any, object]],  # Any: seen by the event loop only
        *args: *Args,
        name: str | None = None,
        holds: bool = False,
    ) -> Child:
        """Start a child task that runs `function(*args)`. Debuggers show the task as `name`.

        The child may ask actors with a greater (depth, level). Its queries inherit the deadline of the query that is
        being handled. If the child fails, the actor crashes. Before the actor stops or restarts, the child is cancelled
        and awaited. If `holds` is True, the actor handles no message until the child has ended.

        Raises:
            ActorStopped: The actor is stopping or restarting.
        """
        receiver, system = self.receiver, self.system
        if self.is_over:
            raise ActorStopped(
                f"Actor {receiver.name!r} is stopping or restarting and cannot start a child task; start it earlier."
            )
        if holds:
            self.hold_messages()
        child = _ContextChild(self, holds=holds)
        self.children = self.children or set()
        self.children.add(child)
        system.active += 1
        variables = system.variables.copy()
        variables.run(current.set, child)
        named = f"{receiver.name}/{name or getattr(function, '__qualname__', 'child')}"
        child.scope = system.tasks.start(partial(function, *args), child.on_end, named, variables)
        return child

    def send(self, ref: Ref[D], command: D) -> None:
        """Send a command from a handler, which cannot wait.

        If the receiver's mailbox is full, the command is sent when there is space. Until then, this actor handles no
        messages.

        Raises:
            MailboxFull: The mailbox is full, and the receiver's (depth, level) is not greater than this actor's.
            ActorStopped: The receiver has ended.
        """
        if ref.receiver.rank <= self.receiver.rank and ref.receiver.system is self.system:
            ref.send_nowait(command)
        elif self.outbox or not ref.offer(command):
            self.outbox = self.outbox or deque()
            self.outbox.append((ref.clone(), command))  # a clone, because the caller may close `ref` at once
            if len(self.outbox) == 1:
                self.start(self._send_outbox, self.outbox, name="outbox", holds=True)

    async def _send_outbox(self, outbox: deque[tuple[Ref[Any], Command]]) -> None:  # Any: as for `outbox`
        while outbox:
            ref, command = outbox[0]
            await ref.send(command)
            outbox.popleft()
        self.outbox = None

    def hold_messages(self) -> None:
        """Handle no messages after the current one, until `release_messages` is called. Calls may be nested."""
        self.holds += 1
        if not self.is_over:
            self.receiver.mark_busy()

    def release_messages(self) -> None:
        """Undo one call of `hold_messages`. When all calls are undone, the actor handles its queued messages again."""
        self.holds -= 1
        if not self.holds and not self.is_over:
            self.receiver.resume()

    def fail(self, error: BaseException) -> None:
        """Crash the actor with `error`. If a handler is running, the crash happens when the handler has returned."""
        if not self.is_over:
            self.receiver.crash(error)

    def defer(self, reply: Reply[Any]) -> None:  # Any: each query has its own answer type
        """Let the query of `reply` fail if the reply is garbage-collected before the query is answered.

        The kernel calls this when a handler has returned without answering its query.
        """
        waiter = reply.waiter = reply.waiter or self.receiver.system.loop.waiter()
        self.deferred = self.deferred or {}
        deferred = self.deferred[waiter] = _DeferredReply(reply, _DeferredReply.fail_query)
        deferred.context, deferred.waiter = self, waiter

    def fail_dropped_query(self, waiter: Waiter) -> None:
        """Fail a query whose reply was garbage-collected. Called by a finalizer, in any thread at any time."""
        if self.deferred is not None:
            self.deferred.pop(waiter, None)
        if waiter.done():
            return
        why = (
            f"Actor {self.receiver.name!r} dropped a query without answering it; "
            "answer the query, or keep a reference to its reply."
        )
        with suppress(RuntimeError):  # the loop has ended, so no caller waits for the answer
            self.system.loop.soon(partial(wake, waiter, ErrorReply(ActorFailed(why))))

    def end(self, error: BaseException | None = None) -> None:
        """End the actor object: cancel its children without waiting for them, and start no new children.

        Children that have not ended within the system's `child_timeout` seconds are abandoned. If `error` is given,
        the queries that the object has received and not answered fail with that error.
        """
        self.is_over = True
        if self.children:
            system = self.system
            system.deadlines.call_at(system.now() + system.child_timeout, self._abandon_children)
            for child in tuple(self.children):
                child.cancel()
        if error is not None:
            deferred, self.deferred = self.deferred, None
            for waiter in deferred or ():
                wake(waiter, ErrorReply(error))

    def _abandon_children(self) -> None:
        """Stop waiting for children that ignored their cancellation, so that the stop or restart continues."""
        if self.children:
            self.children = None
            self.receiver.on_childless()


class _DeferredReply(weakref.ref[Reply[Any]]):  # Any: each query has its own answer type
    """A weak reference to the reply of an unanswered query. Its attributes take less memory than a closure."""

    __slots__ = ("context", "waiter")

    context: Context[Any]  # Any: each actor has its own commands
    waiter: Waiter

    def fail_query(self) -> None:
        """Fail the query. Called when the reply was garbage-collected."""
        self.context.fail_dropped_query(self.waiter)


class _ContextChild(Child):
    """A child task that reports its end to the context that started it."""

    __slots__ = ("_context", "_holds")

    def __init__(self, context: Context[Any], *, holds: bool) -> None:  # Any: each actor has its own commands
        super().__init__(context.receiver)
        self._context, self._holds = context, holds

    def on_end(self, error: BaseException | None) -> None:
        context, owner, system = self._context, self.owner, self.owner.system
        self.is_over = True
        if error is not None and not system.is_crash(error):
            system.fatal(error)
        elif error is not None and not (self.is_cancelled and isinstance(error, ActorStopped | ActorFailed)):
            # a cancelled child may fail because it asks an actor that has ended; any other error is unexpected
            if not context.is_over:
                owner.crash(error)
            elif not owner.is_regular_end(error):
                system.on_crash(owner.name, error)
        if self._holds:
            context.release_messages()
        if context.children is not None:
            context.children.discard(self)
            if not context.children:
                context.children = None
                owner.on_childless()
        system.decrement_active()
