"""The ledger actor: the only task that changes what is known about a tool call.

What may change, and how, is `actors.core.ledger`. This module adds the one thing that file cannot have: an
order. Whoever asks sees every command that was received before the question, and every event is in the log
in the order in which it was taken.
"""

from dataclasses import dataclass
from typing import ClassVar, TypeAlias, assert_never

from actors.core.events import CallEvent, RequestSent
from actors.core.ledger import Ledger
from actors.errors import ActorStopped, JournalError
from actors.journal import Append, Incarnation, JournalCommand, crash
from actors.kernel import Actor, Context, Query, Ref, Reply


@dataclass(frozen=True)
class Record(Query[tuple[int, Ledger]]):
    """Apply the events of a batch; answered when they are durable, with the number of the last one and the ledger then.

    Recording twice changes nothing in the ledger.
    """

    events: tuple[CallEvent, ...]


@dataclass(frozen=True)
class Snapshot(Query[Ledger]):
    """Ask for the ledger as it stands. The answer is immutable, so keeping it is safe."""


@dataclass(frozen=True)
class Seal(Query[tuple[int | None, Ledger]]):
    """Write that a request is sent, with the synthetic results it carries.

    Args:
        event: What is written.
        seen: The ledger the request was rendered from.

    Answered with its number when it is durable, and None, with nothing written, if the ledger has moved on since
    `seen`: a result came in the meantime, and the request must be rendered with it. Beside it stands the ledger as
    it is then.
    """

    event: RequestSent
    seen: Ledger


@dataclass(frozen=True)
class Shut(Query[None]):
    """Take no more events: the session's end is written next. Answered when all before it are on their way."""


LedgerCommand: TypeAlias = Record | Snapshot | Seal | Shut


class LedgerActor(Actor[LedgerCommand]):
    """Owns one session's ledger. A crash loses nothing: the log rebuilds it.

    What could not be written is a crash, for the ledger is ahead of its log then.
    """

    level: ClassVar[int] = 4

    def __init__(
        self, session: str, ledger: Ledger, journal: Ref[JournalCommand], incarnation: Incarnation
    ) -> None:
        self._session = session
        self.ledger = ledger
        """The ledger as it stands. Others read it only when the actor has been put away."""
        self._journal = journal
        self._incarnation = incarnation
        self._is_shut = False
        self._context: Context[LedgerCommand] | None = None

    async def started(self, context: Context[LedgerCommand]) -> None:
        """Keep the context: a failed write is a child's failure. After a crash, go on from the log."""
        self._context = context
        if (past := await self._incarnation.past()) is not None:
            self.ledger = past.state.ledger

    async def receive(self, command: LedgerCommand) -> None:
        match command:
            case Record() | Seal() if self._is_shut:
                command.reply.fail(ActorStopped(f"Session {self._session!r} has ended; nothing is recorded."))
            case Record(events=events):
                await self._write(events, command.reply)
            case Snapshot(reply=snapshot):
                snapshot.send(self.ledger)
            case Seal(event=event, seen=seen):
                if seen is not self.ledger:
                    command.reply.send((None, self.ledger))
                    return
                await self._write((event,), command.reply)
            case Shut():
                self._is_shut = True
                command.reply.send(None)
            case _:
                assert_never(command)

    async def _write(
        self,
        events: tuple[CallEvent | RequestSent, ...],
        reply: Reply[tuple[int, Ledger]] | Reply[tuple[int | None, Ledger]],
    ) -> None:
        ledger = self.ledger = self.ledger.apply(*events)

        def written(seq: int) -> None:
            reply.send((seq, ledger))

        def failed(error: JournalError) -> None:
            reply.fail(error)
            assert self._context is not None
            if not self._incarnation.over:
                crash(self._context, error)

        await self._journal.tell(Append(self._session, events, written, failed))
