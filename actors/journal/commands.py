"""Define the messages that the journal actor accepts: appends, and queries that run in order with the appends.

Once an append is durable, its events are passed to the session's `LiveEvents`, which publishes them to the reader of
the current ask. `LiveEvents` and `session.events()` convert events with the same class, `Publisher`, so their readers
receive equal events.
"""

from collections.abc import Callable, Sequence
from typing import ClassVar, TypeAlias, TypeVar

from actors.core.log.events import LogEvent
from actors.core.session.publishing import Publisher
from actors.core.stream_events.ask_events import CompleteEvent, ErrorEvent
from actors.core.stream_events.events import Sink
from actors.errors import HostUnavailable, JournalError, SessionLeased
from actors.journal.storage import PAGE, Claim, Entry, LogPage
from actors.journal.storage.clock import ObservedClock
from actors.journal.storage.directory import (
    EVERY,
    ClaimedSession,
    Host,
    HostStatus,
    Page,
    RemainingData,
    SessionFilter,
    StoredSession,
)
from actors.kernel import Query

R = TypeVar("R")
OnDurable: TypeAlias = Callable[[int], None]
"""A callback that is called with an event's number once the event is durable."""


class LiveEvents:
    """Passes a session's durable events to the reader of the session's current ask.

    If the session's actors crash, this object is lost, and the next generation of actors creates a new one.
    """

    __slots__ = ("_publisher", "_sink", "is_idle")

    def __init__(self) -> None:
        self.is_idle: bool = True
        self._sink: Sink | None = None
        self._publisher = Publisher()

    @property
    def is_watched(self) -> bool:
        """True if the current ask has a reader that receives events."""
        return self._sink is not None

    def begin(self, sink: Sink, publisher: Publisher) -> None:
        """Start publishing an ask: events that become durable from now on go to `sink`."""
        self._publisher = publisher
        self.redirect(sink)

    def redirect(self, sink: Sink) -> None:
        """Send the remaining events of the ask to another reader."""
        self.is_idle = False
        self._sink = sink if sink.is_watched else None

    def end(self) -> None:
        """Stop publishing until the next ask begins."""
        self.is_idle, self._sink = True, None

    def publish(self, events: Sequence[LogEvent], last_seq: int) -> None:
        """Publish events that have become durable. `last_seq` is the number of the last event in the log.

        The ask's terminal event is skipped. The session publishes it instead, because the log lacks some of its data.
        """
        if self._sink is None:
            return
        self._publisher.seq = last_seq - len(events)
        for event in events:
            for published in self._publisher.publish(event):
                if not isinstance(published, CompleteEvent | ErrorEvent):
                    self._sink.put(published)


class Append(Query[int], frozen=True):
    """Append events to a session's log. The answer is the number of the last appended event.

    Args:
        session: The session's id.
        fence: The fencing number of the writer's claim.
        events: The events in log order; at least one.
        on_durable: Pairs of an index in `events` and a callback, which is called once the event at the index is
            durable.
        on_failure: Called with the error if the events are not written. Message handlers use it, since they cannot wait
            for an answer.
        live: Publishes the events once they are durable. None means that they are not published.
    """

    session: str
    fence: int
    events: tuple[LogEvent, ...]
    on_durable: tuple[tuple[int, OnDurable], ...] = ()
    on_failure: Callable[[JournalError], None] | None = None
    live: LiveEvents | None = None

    @property
    def entry(self) -> Entry:
        """The events as an entry for `Storage.append`."""
        return Entry(self.session, self.fence, self.events)

    def finish(self, last_seq: int) -> None:
        """Report that the events are durable: publish them, call the callbacks and send the answer.

        Args:
            last_seq: The number of the last event in the log.
        """
        if self.live is not None and self.live.is_watched:
            self.live.publish(self.events, last_seq)
        first = last_seq - len(self.events) + 1
        for index, call in self.on_durable:
            call(first + index)
        self.reply.send(last_seq)

    def fail(self, error: Exception) -> None:
        """Report to the writer that the events were not written, and why."""
        failure = error if isinstance(error, JournalError) else self._journal_error(error)
        if self.on_failure is not None:
            self.on_failure(failure)
        self.reply.fail(failure)

    def _journal_error(self, error: Exception) -> JournalError:
        """Return a `JournalError` for an exception of another type. The message names the events."""
        kinds = ", ".join(type(event).__name__ for event in self.events)
        why = (
            f"Could not write {kinds} to the log of session {self.session!r}: {type(error).__name__}: {error}"
        )
        return JournalError(why[:500])


class JournalOperation(Query[R], frozen=True):
    """A journal operation other than `Append`. It runs after all appends that were sent earlier.

    `session` is the id of the session that the operation concerns; it is empty if the operation concerns the whole
    journal. `failure` is the beginning of the error message if the operation fails. It may contain the placeholder
    `{session}`.
    """

    failure: ClassVar[str]
    session: str

    def answer(self, answer: R) -> None:
        """Send the result of the operation to the caller."""
        self.reply.send(answer)

    def fail(self, error: Exception) -> None:
        """Send an error to the caller. An error of an unexpected type becomes a `JournalError`."""
        if isinstance(error, JournalError | SessionLeased | HostUnavailable):
            self.reply.fail(error)
            return
        why = f"{self.failure.format(session=self.session)}: {type(error).__name__}: {error}"
        self.reply.fail(JournalError(why[:500]))


class ReadLog(JournalOperation[LogPage], frozen=True):
    """Read one page of a session's log.

    Args:
        after: The number of the event before the page.
        as_writer: Whether the reader will append to the log. After a rejected append, the session can append again only
            after a read with `as_writer`.
        limit: The maximum number of events in the page.
        urgent: Whether a session waits for the page. The read is then accepted even if the queue is full.
    """

    failure = "The log of session {session!r} could not be read"
    after: int = 0
    as_writer: bool = False
    limit: int = PAGE
    urgent: bool = False


class ClaimSession(JournalOperation[Claim], frozen=True):
    """Make the caller the live writer of a session.

    Args:
        existing: Claim the session only if it has a log.
        on_claim: Called with the claim even if the caller was cancelled in the meantime, so that the claim can be
            released.
    """

    failure = "Session {session!r} could not be claimed"
    existing: bool = False
    on_claim: Callable[[Claim], None] | None = None

    def answer(self, answer: Claim) -> None:
        """Pass the claim to `on_claim` and send it to the caller."""
        if self.on_claim is not None:
            self.on_claim(answer)
        super().answer(answer)


class ReleaseSession(JournalOperation[None], frozen=True):
    """Release a session that was claimed with the fencing number `fence`, so that other hosts can claim it."""

    failure = "Session {session!r} could not be released"
    fence: int


class ListSessions(JournalOperation[list[StoredSession]], frozen=True):
    """List the sessions that have a log; see `Storage.sessions`."""

    failure = "The sessions of the journal could not be listed"
    conditions: SessionFilter = EVERY
    limit: int = 100
    page: Page | None = None


class FindSession(JournalOperation[StoredSession | None], frozen=True):
    """Query the stored data about one session. The answer is None if the session has no log."""

    failure = "Session {session!r} could not be looked up in the journal"


class CheckOwner(JournalOperation[None], frozen=True):
    """Check that no other live host owns the session. Otherwise, the query raises `SessionLeased`."""

    failure = "The owner of session {session!r} could not be looked up in the journal"


class DeleteLog(JournalOperation[None], frozen=True):
    """Delete the logs of a session and of the sessions in `others`. Either all logs are deleted or none."""

    failure = "The log of session {session!r} could not be deleted"
    others: tuple[str, ...] = ()


class Vacuum(JournalOperation[Sequence[RemainingData]], frozen=True):
    """Remove every byte of deleted logs from the storage's files. The answer lists data that could not be removed.

    `max_bytes` is the size in bytes of the largest file to rewrite. None means no limit.
    """

    failure = "Deleted data could not be removed from the journal"
    session: str = ""
    max_bytes: int | None = None


class ObserveClock(JournalOperation[ObservedClock], frozen=True):
    """Record the wall-clock time in the storage; see `Storage.record_clock` for the arguments and the answer."""

    failure = "The wall clock could not be recorded in the journal"
    session: str = ""
    now: int = 0
    elapsed: int = 0


class RenewLease(JournalOperation[None], frozen=True):
    """Renew this host's lease of the storage, so that other hosts do not take over its sessions.

    `status` is the new address, state and lag of the host. None keeps the previous status.
    """

    failure = "The lease of this host could not be renewed"
    session: str = ""
    status: HostStatus | None = None


class AssignSession(JournalOperation[None], frozen=True):
    """Make the host named `host` the owner of the session, which this host claimed with the fencing number `fence`."""

    failure = "Session {session!r} could not be handed over"
    fence: int
    host: str


class ReleaseAll(JournalOperation[None], frozen=True):
    """Release all sessions of this host, and mark the host as draining."""

    failure = "The sessions of this host could not be released"
    session: str = ""


class ListHosts(JournalOperation[Sequence[Host]], frozen=True):
    """Return the live hosts of the journal, with the number of their sessions if `count_sessions` is True."""

    failure = "The hosts of the journal could not be listed"
    session: str = ""
    count_sessions: bool = True


class ListOwned(JournalOperation[Sequence[ClaimedSession]], frozen=True):
    """List the sessions that this host owns, one page at a time, beginning after the id `after`."""

    failure = "The sessions of this host could not be listed"
    session: str = ""
    after: str = ""


Read: TypeAlias = ReadLog | ListSessions | FindSession | CheckOwner | ListHosts | ListOwned
Operation: TypeAlias = (
    Read
    | ClaimSession
    | ReleaseSession
    | AssignSession
    | ReleaseAll
    | DeleteLog
    | Vacuum
    | ObserveClock
    | RenewLease
)
JournalCommand: TypeAlias = Append | Operation
