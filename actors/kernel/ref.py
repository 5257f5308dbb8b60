"""The address of an actor: all that others hold of it."""

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from actors.kernel.message import Command, Query, R

C = TypeVar("C", bound=Command, contravariant=True)
D = TypeVar("D", bound=Command)


class Ref(ABC, Generic[C]):
    """Where to send commands of type `C`. It stays valid while the actor restarts, and after it ended."""

    __slots__ = ()
    name: str

    @abstractmethod
    async def tell(self, command: C) -> None:
        """Send `command`. An idle actor handles it at once; else it is put into the mailbox.

        Gives way only when the mailbox is full. A caller cancelled while it waits for room has sent nothing.

        Raises:
            ActorStopped: The actor has ended.
            Draining: The system is shutting down, and the caller is not one of its actors.
        """

    @abstractmethod
    def tell_nowait(self, command: C) -> None:
        """Send `command` without waiting.

        Raises:
            MailboxFull: The mailbox is full.
            ActorStopped, Draining: As with `tell`.
        """

    @abstractmethod
    async def ask(self, query: Query[R], *, timeout: float | None = None) -> R:
        """Send `query`, which may have been asked before, and return its answer.

        A child inherits the deadline of the ask it works for; that or `timeout` (seconds, waiting for room included)
        holds, whichever is earlier. A cancelled caller abandons the question: it is handled all the same, and the
        answer goes nowhere.

        Raises:
            AskTimeout: No answer in time. If the actor has not come to the question yet, it never will.
            ActorFailed: Its handler raised (the cause is chained), or the question was dropped unanswered.
            AskUphill: The caller is an actor's child, and the receiver does not stand below that actor.
            ActorStopped, Draining: As with `tell`, or while the question was queued.
        """
