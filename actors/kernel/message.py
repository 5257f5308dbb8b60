"""Define the messages of actors, and the bounded mailbox that queues them.

A message is a command, or a query with a `Reply` that receives the answer. An answer does not pass through a mailbox,
so a full mailbox cannot delay it. An answer that arrives too late is dropped, so it cannot be mistaken for the answer
to a later query.

A mailbox grants free places to waiting senders in order of arrival. A place is free, taken by a message, or granted to
a sender that was woken and has not run yet. A wake-up carries no message: the message stays with its sender until the
sender runs, so cancellation loses no message.
"""

from collections import deque
from copy import copy
from math import inf
from typing import Any, ClassVar, Generic, TypeVar

from anyio import WouldBlock
from msgspec import Struct
from msgspec.structs import force_setattr

from actors.errors import KernelError
from actors.kernel.event_loop import Waiter, wake

M = TypeVar("M", bound="Command")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)  # covariant: the caller of a query only receives the answer
T = TypeVar("T")


class ErrorReply(Struct, eq=False):
    """An error in place of an answer. A bare exception would be ambiguous, because an answer may be an exception."""

    error: BaseException


class Reply(Generic[R]):
    """The destination of the answer to one query. The first answer wins; later answers are dropped.

    A handler may store the reply and answer later, from any task of the same event loop. If the reply is
    garbage-collected, the caller gets `ActorFailed`.

    Most queries are answered before their caller has to wait, so the reply stores the answer until a waiter exists.
    Every query needs a reply, so the default values are class attributes: creating a reply assigns nothing.
    """

    deadline: float = inf
    waiter: Waiter | None = None
    ended: bool = False  # used only while there is no waiter; a waiter has its own state
    answer: Any = None  # Any: an answer or an `ErrorReply`; `send` and `ask` are typed

    @property
    def is_done(self) -> bool:
        """True if the query has ended: it was answered, failed or expired, or its caller was cancelled."""
        return self.ended if self.waiter is None else self.waiter.done()

    @property
    def is_expired(self) -> bool:
        """True if the caller no longer waits, although it was not cancelled.

        For a query that is still queued, this means that the deadline has passed.
        """
        waiter = self.waiter
        return waiter is not None and waiter.done() and not waiter.cancelled()

    def send(self, value: R) -> None:
        """Answer the query with `value`. This has no effect if the query has ended."""
        waiter = self.waiter
        if waiter is not None:
            if not waiter.done():  # `wake` is inlined, because every answer runs this code
                waiter.set_result(value)
        elif not self.ended:
            self.ended = True
            self.answer = value

    def fail(self, error: BaseException) -> None:
        """Fail the query: `ask` raises `error` in the caller."""
        failure: Any = ErrorReply(error)  # Any: `send` accepts only answers; `ask` recognises errors
        self.send(failure)


UNSENT: Reply[Any] = Reply()  # Any: a placeholder for queries of every type; it never receives an answer
"""The reply of a query before it is sent. A test for a missing attribute would be slower."""

NO_REPLY: Reply[Any] = Reply()  # Any: a placeholder for messages of every type
"""The reply of a message that was sent without `ask`. It discards answers."""

UNSENT.ended = NO_REPLY.ended = True


class Command(Struct, frozen=True, kw_only=True):
    """Base class of all messages. Messages are frozen structs, since they are created often and matched by type.

    With `control = True`, a command goes through the control queue, which is served before the mail queue.
    """

    control: ClassVar[bool] = False
    reply: Reply[Any] = NO_REPLY  # Any: each query has its own answer type


class Query(Command, Generic[R_co], frozen=True, kw_only=True):
    """A command with an answer of type `R_co`. `Ref.ask` attaches the reply."""

    reply: Reply[R_co] = UNSENT


def attach_reply(message: M, reply: Reply[Any]) -> M:  # Any: each query has its own answer type
    """Return `message` with `reply` attached.

    If the message was sent before, return a copy, because the original may still be queued.
    """
    if message.reply is not UNSENT:
        message = copy(message)
    force_setattr(message, "reply", reply)  # messages are frozen
    return message


def prepare_to_send(message: M) -> M:
    """Return `message` ready to be sent without `ask`. A query gets the reply `NO_REPLY`, which discards the answer."""
    return attach_reply(message, NO_REPLY) if message.reply.is_done else message


class MailboxFull(KernelError, WouldBlock):
    """The receiver's mailbox is full, and the sender does not wait."""


class BoundedQueue(deque[T]):
    """A queue with a maximum length, and the senders that wait for a place in it.

    `limit` is the capacity minus the places granted to senders that were woken and have not run yet. An item may be
    appended if `len(queue) < limit`.
    """

    __slots__ = ("capacity", "limit", "waiting")

    capacity: int
    limit: int

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.capacity = self.limit = capacity
        self.waiting: deque[Waiter] = deque()

    @property
    def is_unused(self) -> bool:
        """True if the queue has no items and no waiting senders, so that it can be dropped."""
        return not self and not self.waiting and self.limit == self.capacity

    def grant_place(self) -> None:
        """Grant a free place to the sender that has waited longest. Called after an item was removed from the queue."""
        while self.waiting and len(self) < self.limit:
            waiter = self.waiting.popleft()
            if not waiter.done():
                waiter.set_result(True)
                self.limit -= 1
                break

    async def wait_for_place(self, waiter: Waiter) -> None:
        """Wait until a place is granted. The caller must then append its item before it yields again.

        If `waiter` is woken with False, the wait ends without a place. If the caller is cancelled, its place goes to
        the next sender.
        """
        self.waiting.append(waiter)
        try:
            await waiter
        except BaseException:
            self._return_place(waiter)
            self.grant_place()
            raise
        self._return_place(waiter)

    def _return_place(self, waiter: Waiter) -> None:
        """Free the place that was granted to `waiter`.

        If no place was granted, remove `waiter` from the waiting senders.
        """
        if waiter in self.waiting:
            self.waiting.remove(waiter)
        elif not waiter.cancelled() and waiter.result():  # woken because a place was granted
            self.limit += 1

    def dismiss_senders(self) -> None:
        """Wake all waiting senders without granting them a place, because the queue is dropped."""
        for waiter in self.waiting:
            wake(waiter, value=False)
        self.waiting.clear()
