"""Own a session's ledger. The ledger actor is its only writer.

`actors.core.ledger` defines the legal changes. The actor puts changes in order: a query sees the effect of each earlier
command, and events enter the log in the order in which they changed the ledger. Each change gets a number, the version,
and every answer contains the ledger with its version. A command that was based on an older version is rejected. The
reply then contains the newer ledger, so that the sender can decide again.
"""

from typing import ClassVar, TypeAlias, assert_never

from msgspec import Struct

from actors.core.ledger import Ledger
from actors.core.log.call_events import CallEvent
from actors.core.log.events import RequestSent
from actors.errors import ActorStopped
from actors.journal.commands import JournalCommand
from actors.journal.log import Generation, Replay
from actors.kernel import Actor, Context, Query, Ref


class LedgerSnapshot(Struct, frozen=True):
    """The ledger at one moment. It is immutable, so callers may keep it.

    Args:
        ledger: The records of all calls.
        version: The number of changes since the session's actors were started.
    """

    ledger: Ledger
    version: int = 0


class Recorded(Struct, frozen=True):
    """The answer to a command whose events are now durable.

    Args:
        seq: Log position of the last of these events (its sequence number).
        snapshot: The ledger right after these events.
    """

    seq: int
    snapshot: LedgerSnapshot


class Record(Query[Recorded], frozen=True):
    """Record events of tool calls. The answer is sent when the events are durable.

    Recording an event twice does not change the ledger.
    """

    events: tuple[CallEvent, ...]


class Snapshot(Query[LedgerSnapshot], frozen=True):
    """Query the ledger, including events that are still being written."""


class DurableLedger(Query[Ledger], frozen=True):
    """Query the ledger of the durable events, without events that are still being written.

    Everything that a program or a tool sees comes from this ledger, because an event is durable before it is shown
    (PROMISE 6). Use `Snapshot` for a decision that is logged after the events that are still being written.
    """


class SealResults(Query[Recorded | LedgerSnapshot], frozen=True):
    """Record that a request is about to be sent, and seal its synthetic results, so that nothing replaces them later.

    Args:
        event: The event to write to the log.
        version: The version of the ledger from which the request was rendered.

    The answer is `Recorded`, once the event is durable. If the ledger has changed since `version`, nothing is written,
    and the answer is the newer snapshot, from which the request must be rendered again.
    """

    event: RequestSent
    version: int


class StopRecording(Query[None], frozen=True):
    """Record no further events, because the end of the session is written next.

    When the reply arrives, all earlier events have been sent to the journal.
    """


LedgerCommand: TypeAlias = Record | Snapshot | DurableLedger | SealResults | StopRecording


class LedgerActor(Actor[LedgerCommand]):
    """The owner of one session's ledger. A crash loses nothing: the ledger is rebuilt from the log.

    If an event cannot be written, the actor crashes, because its ledger then contains an event that the log lacks.
    """

    level: ClassVar[int] = 4

    def __init__(
        self, session: str, ledger: Ledger, journal: Ref[JournalCommand], generation: Generation
    ) -> None:
        self._session = session
        self.current: LedgerSnapshot = LedgerSnapshot(ledger)
        """The current ledger, including events that are still being written. Other code reads this only after the actor
        was passivated."""
        self._durable = ledger
        self._journal = journal
        self._generation = generation
        self._is_stopped = False
        self._context: Context[LedgerCommand] | None = None
        self._record_size()

    def on_start(self, context: Context[LedgerCommand]) -> None:
        """After a crash, restore the ledger from the log."""
        self._context = context
        self._generation.start_actor(context, self._restore)

    def _restore(self, replay: Replay) -> None:
        self.current = LedgerSnapshot(replay.state.ledger)
        self._durable = replay.state.ledger
        self._is_stopped = replay.state.closed
        self._record_size()

    def _record_size(self) -> None:
        self._generation.memory_use.record_size("calls", self.current.ledger.size)

    def receive(self, command: LedgerCommand) -> None:
        match command:
            case Record() | SealResults() if self._is_stopped:
                command.reply.fail(
                    ActorStopped(f"Session {self._session!r} has ended, so no more events are recorded.")
                )
            case Record(events=events):
                self._write_and_reply(command, *events)
            case Snapshot(reply=snapshot):
                snapshot.send(self.current)
            case DurableLedger(reply=durable):
                durable.send(self._durable)
            case SealResults(version=version) if version != self.current.version:
                command.reply.send(self.current)
            case SealResults(event=event):
                self._write_and_reply(command, event)
            case StopRecording():
                self._is_stopped = True
                command.reply.send(None)
            case _:
                assert_never(command)

    def _write_and_reply(self, command: Record | SealResults, *events: CallEvent | RequestSent) -> None:
        assert self._context is not None
        reply, before = command.reply, self.current
        snapshot = self.current = LedgerSnapshot(before.ledger.apply(*events), before.version + 1)
        self._record_size()

        def on_durable(seq: int) -> None:
            # appends become durable in order, so this ledger is never older than the previous one
            self._durable = snapshot.ledger
            reply.send(Recorded(seq, snapshot))

        def on_failure(error: Exception) -> None:
            reply.fail(error)
            if self._context is not None:
                self._context.fail(error)

        append = self._generation.outbox.append(*events, on_durable=on_durable, on_failure=on_failure)
        self._context.send(self._journal, append)
