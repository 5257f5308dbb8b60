"""The ledger actor: the one owner of what is known about a session's tool calls.

What may change, and how, is `actors.core.ledger`. This module adds the one thing that file cannot have: an
order. An asker sees the effect of every command received before the question, and every event is in the log
in the order in which it was taken. Each change has a number: who decides something on what it was told says on which
version, and decides again if there is a newer one.
"""

from typing import ClassVar, TypeAlias, assert_never

from msgspec import Struct

from actors.core.ledger import Ledger
from actors.core.log.events import CallEvent, RequestSent
from actors.errors import ActorStopped
from actors.journal.journal_actor import Append, JournalCommand
from actors.journal.log import Generation, Replay
from actors.journal.prelude import Prelude
from actors.kernel import Actor, Context, Query, Ref


class Known(Struct, frozen=True):
    """The ledger at one moment. Immutable, so keeping it is safe.

    Args:
        ledger: The truth about every call.
        version: Goes up by one with each change.
    """

    ledger: Ledger
    version: int = 0


class Record(Query[int], frozen=True):
    """Apply the lifecycle events of a batch; answered when they are durable, with the number of the last one.

    Recording twice changes nothing in the ledger. `prelude` is written ahead of them.
    """

    events: tuple[CallEvent, ...]
    prelude: Prelude | None = None


class Snapshot(Query[Known], frozen=True):
    """Ask for the ledger as it stands."""


class DurableLedger(Query[Ledger], frozen=True):
    """Query the ledger that the log holds: without events that are still being written.

    Everything that a program or a tool sees comes from it, because an event is durable before it is shown
    (PROMISE 6). `Snapshot` also has the events that are being written, for decisions whose own events follow them in
    the log.
    """


class SealResults(Query[int | None], frozen=True):
    """Write that a request is sent, with the synthetic results it carries.

    Args:
        event: What is written.
        version: Of the ledger that the request was rendered from.
        prelude: What is written ahead of it.

    Answered with its number when it is durable; with None, and nothing is written, if the ledger has changed since
    that version: a result came in the meantime, and the request must be rendered with it.
    """

    event: RequestSent
    version: int
    prelude: Prelude | None = None


class Shut(Query[None], frozen=True):
    """Record nothing more: the session's end is written next. Answered when all before it are on their way."""


LedgerCommand: TypeAlias = Record | Snapshot | DurableLedger | SealResults | Shut


class LedgerActor(Actor[LedgerCommand]):
    """Owns one session's ledger. A crash loses nothing: the log rebuilds it.

    What could not be written is a crash, for the ledger is ahead of its log then.
    """

    level: ClassVar[int] = 4

    def __init__(
        self, session: str, ledger: Ledger, journal: Ref[JournalCommand], generation: Generation
    ) -> None:
        self._session = session
        self.known = Known(ledger)
        """The ledger as it stands. Others read it only when the actor has been passivated."""
        self._durable = ledger
        self._journal = journal
        self._generation = generation
        self._is_shut = False
        self._context: Context[LedgerCommand] | None = None
        self._count()

    def started(self, context: Context[LedgerCommand]) -> None:
        """After a crash, go on from the log."""
        self._context = context
        self._generation.begin(context, self._go_on)

    def _go_on(self, replay: Replay) -> None:
        self.known = Known(replay.state.ledger)
        self._durable = replay.state.ledger
        self._is_shut = replay.state.closed
        self._count()

    def _count(self) -> None:
        self._generation.holding.count("calls", self.known.ledger.size)

    def receive(self, command: LedgerCommand) -> None:
        match command:
            case Record() | SealResults() if self._is_shut:
                command.reply.fail(ActorStopped(f"Session {self._session!r} has ended; nothing is recorded."))
            case Record(events=events):
                self._write(command, *events)
            case Snapshot(reply=snapshot):
                snapshot.send(self.known)
            case DurableLedger(reply=durable):
                durable.send(self._durable)
            case SealResults(version=version) if version != self.known.version:
                command.reply.send(None)
            case SealResults(event=event):
                self._write(command, event)
            case Shut():
                self._is_shut = True
                command.reply.send(None)
            case _:
                assert_never(command)

    def _write(self, command: Record | SealResults, *events: CallEvent | RequestSent) -> None:
        assert self._context is not None
        reply = command.reply
        known = self.known
        self.known = Known(known.ledger.apply(*events), known.version + 1)
        ledger = self.known.ledger
        self._count()

        def written(seq: int) -> None:
            self._durable = ledger  # appends become durable in the order in which they were sent
            reply.send(seq)

        def failed(error: Exception) -> None:
            reply.fail(error)
            if self._context is not None:
                self._context.fail(error)

        generation = self._generation
        append = Append(
            self._session, generation.fence, events, command.prelude, written, failed, generation.live
        )
        self._context.tell(self._journal, append)
