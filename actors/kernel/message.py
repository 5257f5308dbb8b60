"""What actors send each other: commands, and queries with a one-shot place for the answer.

A reply never travels through a mailbox, so a full mailbox cannot hold one up, and a late one falls into
nothing instead of reaching a later question.
"""

from copy import copy
from math import inf
from typing import Any, ClassVar, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import force_setattr

from actors.kernel.parking import Waiter

M = TypeVar("M", bound="Command")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)  # to its asker a query is a promise of its answer


class ErrorReply(Struct, eq=False):
    """How a reply carries an error. A bare exception could not be told from an answer that is one."""

    error: BaseException


class Reply(Generic[R]):
    """Where the answer to one query goes. The first answer wins; later ones fall into nothing.

    It may be kept and used after the handler returned, from any task of the same loop. If it is forgotten,
    the asker gets `ActorFailed` when the last reference goes.

    Most questions are answered before their asker has to wait, so the answer is kept here until there is a waiter.
    One is made for each question, so its first values are in the class.
    """

    deadline: float = inf
    waiter: Waiter | None = None
    ended = False  # without a waiter; with one, that knows
    answer: Any = None  # Any: an answer or an `ErrorReply`; `send` is the typed way in, `ask` the way out

    @property
    def done(self) -> bool:
        """Whether the question has ended: answered, failed, expired or abandoned by its asker."""
        return self.ended if self.waiter is None else self.waiter.done()

    @property
    def expired(self) -> bool:
        """Whether the question has ended, and not because its asker went away."""
        waiter = self.waiter
        return waiter is not None and waiter.done() and not waiter.cancelled()

    def send(self, value: R) -> None:
        waiter = self.waiter
        if waiter is not None:
            if not waiter.done():  # as `wake` does, a call less: each answer comes by here
                waiter.set_result(value)
        elif not self.ended:
            self.ended = True
            self.answer = value

    def fail(self, error: BaseException) -> None:
        """Answer with `error`, which the asker's `ask` raises."""
        failure: Any = ErrorReply(error)  # Any: what an asker is sent beside answers
        self.send(failure)


UNSENT: Reply[Any] = Reply()  # Any: it is answered by nobody
"""The reply of a query that was neither asked nor told. Looking up a missing attribute would be slow."""

TOLD: Reply[Any] = Reply()  # Any: as above
"""The reply of what is told: nobody waits for it."""

UNSENT.ended = TOLD.ended = True


class Command(Struct, frozen=True, kw_only=True):
    """Base of all messages, which are made often and looked at by their type: frozen structs, as light as can be.

    `control = True` sends a command by the control queue, which is served before mail.
    """

    control: ClassVar[bool] = False
    reply: Reply[Any] = TOLD  # Any: replies of every type


class Query(Command, Generic[R_co], frozen=True, kw_only=True):
    """A command that wants an answer of type `R_co`. `Ref.ask` attaches the reply."""

    reply: Reply[R_co] = UNSENT


def asked(message: M, reply: Reply[Any]) -> M:  # Any: as above
    """Return `message` with a reply; a copy if it was sent before, and may still be under way."""
    if message.reply is not UNSENT:
        message = copy(message)
    force_setattr(message, "reply", reply)  # though it is frozen
    return message


def told(message: M) -> M:
    """Return `message` as it is told: a query that nobody asks has a reply nobody waits for."""
    return asked(message, TOLD) if message.reply.done else message
