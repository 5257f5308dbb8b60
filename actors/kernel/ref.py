"""Address an actor: a `Ref` is an anyio stream of the actor's commands, with `ask` for queries.

Code that knows nothing about actors can use a clone of a ref like the send end of an anyio memory stream: it sends
items and finally closes the clone. Sending waits only if the mailbox is full; asking also waits for the answer.
"""

from math import inf
from typing import Any, Generic, Self

from anyio import ClosedResourceError
from anyio.abc import ObjectSendStream
from anyio.lowlevel import checkpoint

from actors.errors import AskOrderError
from actors.kernel.event_loop import Waiter, wake
from actors.kernel.message import (
    NO_REPLY,
    ErrorReply,
    MailboxFull,
    Query,
    R,
    Reply,
    attach_reply,
    prepare_to_send,
)
from actors.kernel.receiver import C, Receiver, current_child


class Ref(ObjectSendStream[C], Generic[C]):
    """An address for commands of type `C`. It remains valid while the actor restarts and after the actor has ended.

    Closing a ref closes only this clone. The actor and all other refs are unaffected.
    """

    __slots__ = ("_is_closed", "receiver")

    def __init__(self, receiver: Receiver[C]) -> None:
        self.receiver: Receiver[C] = receiver
        self._is_closed = False

    @property
    def name(self) -> str:
        """The actor's name, which is unique among the actors that have not ended."""
        return self.receiver.name

    @property
    def waiting(self) -> int:
        """Number of messages in the actor's mailbox, plus the senders that wait for space."""
        return self.receiver.waiting

    def __repr__(self) -> str:
        closed = ", closed" if self._is_closed else ""
        return f"<Ref {self.name!r} {self.receiver.state}{closed}>"

    async def send(self, item: C) -> None:
        """Send a command. An idle actor handles the command before this returns; otherwise the command is queued.

        Yields to other tasks only while the mailbox is full. If the caller is cancelled during that wait, the command
        is not sent.

        Raises:
            ActorStopped: The actor has ended.
            ShuttingDown: The system is shutting down, and the caller is not one of its actors.
            anyio.ClosedResourceError: This clone is closed.
        """
        if self._is_closed:
            raise ClosedResourceError
        message = item if item.reply is NO_REPLY else prepare_to_send(item)
        if not self.receiver.accept(message):
            await self.receiver.wait_and_send(message, inf)

    def send_nowait(self, item: C) -> None:
        """Send a command without waiting.

        Raises:
            MailboxFull: The mailbox is full.
            ActorStopped, ShuttingDown, anyio.ClosedResourceError: As in `send`.
        """
        if not self.offer(item):
            receiver = self.receiver
            receiver.system.account.record_rejection(receiver.name, item, "overflow")
            full = f"The mailbox of actor {receiver.name!r} is full ({receiver.capacity} messages)"
            raise MailboxFull(f"{full}; send later or less often.")

    def offer(self, item: C) -> bool:
        """Send a command without waiting, and return False if the mailbox is full.

        Unlike a failed `send_nowait`, this does not record a dead letter.

        Raises:
            ActorStopped, ShuttingDown, anyio.ClosedResourceError: As in `send`.
        """
        if self._is_closed:
            raise ClosedResourceError
        return self.receiver.offer(item)

    def clone(self) -> Self:
        """Return another address of the same actor, which can be closed independently.

        Raises:
            anyio.ClosedResourceError: This clone is closed.
        """
        if self._is_closed:
            raise ClosedResourceError
        return type(self)(self.receiver)

    async def aclose(self) -> None:
        """Close this clone, never the actor. Repeated calls have no effect.

        Commands that were already sent, or that wait for space, still arrive.
        """
        self._is_closed = True

    async def ask(self, query: Query[R], *, timeout: float | None = None) -> R:
        """Send `query` and return its answer. The same query may be asked repeatedly.

        A child inherits the deadline of the query for which it works. The earlier of that deadline and `timeout`
        applies; `timeout` is in seconds and includes the wait for space. If the caller is cancelled, the query is still
        handled, and its answer is dropped.

        Raises:
            AskTimeout: No answer arrived in time. A query that is still in the mailbox is never handled.
            ActorFailed: The handler raised (its exception is chained), or dropped the reply without an answer.
            AskOrderError: The caller is a child of an actor whose (depth, level) is not smaller than this actor's.
            ActorStopped: The actor has ended, before the call or while the query was in its mailbox.
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
        query = attach_reply(query, reply)
        system.account.asked += 1
        try:
            if not receiver.accept(query):
                await receiver.wait_and_send(query, deadline)
            if reply.ended:  # answered before a waiter was needed
                result = reply.answer
            else:
                waiter = reply.waiter = reply.waiter or system.loop.waiter()
                del query, reply  # so that this frame does not keep a reply alive that the actor has dropped
                result = await (waiter if deadline == inf else self._await_until(waiter, deadline))
            if caller is not None and caller.is_cancelled:
                # the caller's actor has crashed or stopped: raise the cancellation instead of returning
                await checkpoint()
            if type(result) is ErrorReply:
                raise result.error
        except BaseException:
            system.account.unanswered += 1
            raise
        system.account.answered += 1
        answer: R = result
        return answer

    async def _await_until(self, waiter: Waiter, deadline: float) -> Any:  # Any: answer types differ
        deadlines = self.receiver.system.deadlines
        timer = deadlines.call_at(deadline, lambda: wake(waiter, ErrorReply(self.receiver.timeout_error())))
        try:
            return await waiter
        finally:
            deadlines.cancel(timer)

    def _order_error(self, asker: Receiver[Any]) -> AskOrderError:
        return AskOrderError(
            f"Actor {asker.name!r} with (depth, level) {asker.rank} cannot ask actor {self.name!r} with "
            f"{self.receiver.rank}, because a child may ask only actors with a greater (depth, level); "
            "send a command instead of a query."
        )
