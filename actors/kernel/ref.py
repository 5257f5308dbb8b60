"""An actor's address: an anyio stream of its commands, with `ask` for queries.

Code without knowledge of actors can send to one: give it a clone, as with anyio's memory streams, and it closes the
clone when it is done. Sending is synchronous except for the wait for space; asking also waits for the answer.
"""

from math import inf
from typing import Any, Generic, Self

from anyio import ClosedResourceError
from anyio.abc import ObjectSendStream
from anyio.lowlevel import checkpoint

from actors.errors import AskOrderError
from actors.kernel.event_loop import Waiter, wake
from actors.kernel.mailbox import MailboxFull
from actors.kernel.message import NO_REPLY, ErrorReply, Query, R, Reply, sendable, with_reply
from actors.kernel.receiver import C, Receiver, current_child


class Ref(ObjectSendStream[C], Generic[C]):
    """An address for commands of type `C`. It stays valid while the actor restarts, and after it has ended.

    Closing it closes this clone only. The actor and all other addresses are unaffected.
    """

    __slots__ = ("_is_closed", "receiver")

    def __init__(self, receiver: Receiver[C]) -> None:
        self.receiver: Receiver[C] = receiver
        self._is_closed = False

    @property
    def name(self) -> str:
        """The actor's name."""
        return self.receiver.name

    @property
    def waiting(self) -> int:
        """Messages in the actor's mailbox, and senders that wait for space."""
        return self.receiver.waiting

    def __repr__(self) -> str:
        closed = ", closed" if self._is_closed else ""
        return f"<Ref {self.name!r} {self.receiver.state}{closed}>"

    async def send(self, item: C) -> None:
        """Send a command. An idle actor handles it before this returns; otherwise it is put into the mailbox.

        Yields to other tasks only while the mailbox is full. If the caller is cancelled during that wait, the command
        is not sent.

        Raises:
            ActorStopped: The actor has ended.
            ShuttingDown: The system is shutting down, and the caller is not one of its actors.
            anyio.ClosedResourceError: This clone is closed.
        """
        if self._is_closed:
            raise ClosedResourceError
        message = item if item.reply is NO_REPLY else sendable(item)
        if not self.receiver.take(message):
            await self.receiver.wait_for_space(message, inf)

    def send_nowait(self, item: C) -> None:
        """Send a command without waiting.

        Raises:
            MailboxFull: The mailbox is full.
            ActorStopped, ShuttingDown, anyio.ClosedResourceError: As in `send`.
        """
        if not self.offer(item):
            receiver = self.receiver
            receiver.system.account.refuse(receiver.name, item, "overflow")
            full = f"Mailbox of actor {receiver.name!r} is full ({receiver.capacity} messages)"
            raise MailboxFull(f"{full}; send later or slower.")

    def offer(self, item: C) -> bool:
        """Send a command without waiting, for a sender with an alternative; return False if the mailbox is full.

        Raises:
            ActorStopped, ShuttingDown, anyio.ClosedResourceError: As in `send`.
        """
        if self._is_closed:
            raise ClosedResourceError
        return self.receiver.offer(item)

    def clone(self) -> Self:
        """Return another address of the same actor, which is closed independently.

        Raises:
            anyio.ClosedResourceError: This clone is closed.
        """
        if self._is_closed:
            raise ClosedResourceError
        return type(self)(self.receiver)

    async def aclose(self) -> None:
        """Close this clone, never the actor. Sent commands, and those that wait for space, still arrive. Idempotent."""
        self._is_closed = True

    async def ask(self, query: Query[R], *, timeout: float | None = None) -> R:
        """Send `query`, even if it was asked before, and return its answer.

        A child inherits the deadline of the ask that it serves. The earlier of that deadline and `timeout` applies
        (seconds, including the wait for space). If the caller is cancelled, the question is still handled and its
        answer is dropped.

        Raises:
            AskTimeout: No answer in time. A question that is still in the mailbox is never handled.
            ActorFailed: Its handler raised (the cause is chained), or its reply was dropped without an answer.
            AskOrderError: The caller is a child of an actor that is not above this one.
            ActorStopped: The actor has ended, or ended while the question was in its mailbox.
            ShuttingDown, anyio.ClosedResourceError: As in `send`.
        """
        if self._is_closed:
            raise ClosedResourceError
        receiver, caller, deadline = self.receiver, current_child(), inf
        system = receiver.system
        if caller is not None:
            if receiver.rank <= caller.owner.rank and system is caller.owner.system:
                raise self._order_error(caller.owner)
            deadline = caller.deadline
        if timeout is not None:
            deadline = min(deadline, system.now() + timeout)
        if deadline < inf and deadline <= system.now():
            raise receiver.timeout_error()
        reply: Reply[R] = Reply()
        reply.deadline = deadline
        query = with_reply(query, reply)
        system.account.asked += 1
        try:
            if not receiver.take(query):
                await receiver.wait_for_space(query, deadline)
            if reply.ended:
                result = reply.answer
            else:
                waiter = reply.waiter = reply.waiter or system.loop.waiter()
                del query, reply  # or this frame would keep the reply alive
                result = await (waiter if deadline == inf else self._await_until(waiter, deadline))
            if caller is not None and caller.is_cancelled:
                await checkpoint()  # its actor went down: raise that before returning the answer
            if type(result) is ErrorReply:
                raise result.error
        except BaseException:
            system.account.unanswered += 1
            raise
        system.account.answered += 1
        answer: R = result
        return answer

    async def _await_until(self, waiter: Waiter, deadline: float) -> Any:  # Any: see Waiter
        deadlines = self.receiver.system.deadlines
        timer = deadlines.at(deadline, lambda: wake(waiter, ErrorReply(self.receiver.timeout_error())))
        try:
            return await waiter
        finally:
            deadlines.withdraw(timer)

    def _order_error(self, asker: Receiver[Any]) -> AskOrderError:
        return AskOrderError(
            f"Actor {asker.name!r} of (depth, level) {asker.rank} must not ask {self.name!r} of "
            f"{self.receiver.rank}: asks go downhill; send it a command, or answer by an event."
        )
