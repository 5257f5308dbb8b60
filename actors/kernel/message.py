"""The messages of actors: commands, and queries with a one-shot place for the answer.

A reply never travels through a mailbox, so a full mailbox cannot delay it, and a late reply is dropped instead of
reaching a later question.
"""

from copy import copy
from math import inf
from typing import Any, ClassVar, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import force_setattr

from actors.kernel.event_loop import Waiter

M = TypeVar("M", bound="Command")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)  # covariant: to its asker, a query is a promise of its answer


class ErrorReply(Struct, eq=False):
    """An error as a reply. A bare exception would be ambiguous, since an answer may be an exception."""

    error: BaseException


class Reply(Generic[R]):
    """The destination of the answer to one query. The first answer wins; later ones are dropped.

    It may be stored and used after the handler returned, from any task of the same loop. If it is garbage-collected,
    the asker gets `ActorFailed`.

    Most questions are answered before their asker has to wait, so the answer is stored here until a waiter exists.
    Each question creates a reply, so the initial values are class attributes.
    """

    deadline: float = inf
    waiter: Waiter | None = None
    ended: bool = False  # without a waiter; a waiter holds this state itself
    answer: Any = None  # Any: an answer or an `ErrorReply`; `send` is the typed way in, `ask` the way out

    @property
    def is_done(self) -> bool:
        """True if the question has ended: answered, failed, expired or abandoned by its asker."""
        return self.ended if self.waiter is None else self.waiter.done()

    @property
    def is_expired(self) -> bool:
        """True if the question has ended for another reason than the cancellation of its asker."""
        waiter = self.waiter
        return waiter is not None and waiter.done() and not waiter.cancelled()

    def send(self, value: R) -> None:
        waiter = self.waiter
        if waiter is not None:
            if not waiter.done():  # inlined `wake`: every answer passes here
                waiter.set_result(value)
        elif not self.ended:
            self.ended = True
            self.answer = value

    def fail(self, error: BaseException) -> None:
        """Fail the question: the asker's `ask` raises `error`."""
        failure: Any = ErrorReply(error)  # Any: what an asker is sent beside answers
        self.send(failure)


UNSENT: Reply[Any] = Reply()  # Any: a placeholder for queries of every type; it never receives an answer
"""The reply of a query before it is sent. Looking up a missing attribute would be slow."""

NO_REPLY: Reply[Any] = Reply()  # Any: as above
"""The reply of a message that was sent without `ask`. It discards answers."""

UNSENT.ended = NO_REPLY.ended = True


class Command(Struct, frozen=True, kw_only=True):
    """Base class of all messages: frozen structs, since they are created often and matched by type.

    `control = True` sends a command through the control queue, which is served before the mail.
    """

    control: ClassVar[bool] = False
    reply: Reply[Any] = NO_REPLY  # Any: replies of every type


class Query(Command, Generic[R_co], frozen=True, kw_only=True):
    """A command with an answer of type `R_co`. `Ref.ask` attaches the reply."""

    reply: Reply[R_co] = UNSENT


def with_reply(message: M, reply: Reply[Any]) -> M:  # Any: as above
    """Return `message` with a reply; a copy if it was sent before, since that one may still be queued."""
    if message.reply is not UNSENT:
        message = copy(message)
    force_setattr(message, "reply", reply)  # though it is frozen
    return message


def sendable(message: M) -> M:
    """Return `message` ready to send. A query sent without `ask` gets `NO_REPLY`, which discards the answer."""
    return with_reply(message, NO_REPLY) if message.reply.is_done else message
