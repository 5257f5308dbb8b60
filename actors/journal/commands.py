"""The commands of the journal actor: appends, and the operations that are executed in order with them."""

from collections.abc import Callable, Sequence
from typing import ClassVar, TypeAlias, TypeVar

from actors.core.log.events import LogEvent
from actors.errors import JournalError, SessionLeased
from actors.journal.live_events import LiveEvents
from actors.journal.storage import PAGE, Claim, Entry, LogPage
from actors.journal.storage.clock import ObservedClock
from actors.journal.storage.deletion import RemainingData
from actors.journal.storage.directory import EVERY, Page, SessionFilter, StoredSession
from actors.kernel import Query

R = TypeVar("R")

OnDurable: TypeAlias = Callable[[int], None]
"""Called with the number of an event when the event is durable."""


class Append(Query[int], frozen=True):
    """Append events to a session's log; the answer is the number of the last one.

    Args:
        session: The session's id.
        fence: The number with which the writer claimed the session.
        events: The events, in order; at least one.
        on_durable: The callbacks of events, each with the index of its event.
        on_failure: Called if the events are not written, for a handler, which cannot ask.
        live: Publishes the events once they are durable.
    """

    session: str
    fence: int
    events: tuple[LogEvent, ...]
    on_durable: tuple[tuple[int, OnDurable], ...] = ()
    on_failure: Callable[[JournalError], None] | None = None
    live: LiveEvents | None = None

    @property
    def entry(self) -> Entry:
        """The events as an entry for the storage."""
        return Entry(self.session, self.fence, self.events)

    def finish(self, last: int) -> None:
        """Publish the events, then call the callbacks and answer. `last` is the number of the last event."""
        if self.live is not None and self.live.is_watched:
            self.live.publish(self.events, last)
        first = last - len(self.events) + 1
        for index, call in self.on_durable:
            call(first + index)
        self.reply.send(last)

    def fail(self, error: Exception) -> None:
        """Report to the writer that the events are not durable."""
        failure = error if isinstance(error, JournalError) else self._not_written(error)
        if self.on_failure is not None:
            self.on_failure(failure)
        self.reply.fail(failure)

    def _not_written(self, error: Exception) -> JournalError:
        kinds = ", ".join(type(event).__name__ for event in self.events)
        why = f"Session {self.session!r}: {kinds} could not be written: {type(error).__name__}: {error}"
        return JournalError(why[:500])


class LogQuery(Query[R], frozen=True):
    """A journal operation other than `Append`. It runs after all appends that were sent earlier.

    `participle`: for the error message "its log could not be ...".
    """

    participle: ClassVar[str]
    session: str

    def answer(self, answer: R) -> None:
        """Send the answer."""
        self.reply.send(answer)

    def fail(self, error: Exception) -> None:
        """Reply with an error."""
        if isinstance(error, JournalError | SessionLeased):
            self.reply.fail(error)
            return
        why = f"Session {self.session!r}: its log could not be {self.participle}: {type(error).__name__}: {error}"
        self.reply.fail(JournalError(why[:500]))


class ReadLog(LogQuery[LogPage], frozen=True):
    """Read a page of a session's log: at most `most` events after number `after`.

    `anew`: the writer of the log continues from its end. `urgent`: the read is accepted even if the queue is full.
    """

    participle = "read"
    after: int = 0
    anew: bool = False
    most: int = PAGE
    urgent: bool = False


class ClaimSession(LogQuery[Claim], frozen=True):
    """Make the asker the live writer of a session; with `existing`, only if the session has a log.

    `on_claim`: called with the claim, even if the asker no longer waits.
    """

    participle = "claimed"
    existing: bool = False
    on_claim: Callable[[Claim], None] | None = None

    def answer(self, answer: Claim) -> None:
        """Pass the claim to `on_claim`, and send the answer."""
        if self.on_claim is not None:
            self.on_claim(answer)
        super().answer(answer)


class ReleaseSession(LogQuery[None], frozen=True):
    """Release a session that was claimed with `fence`, so that others can claim it."""

    participle = "released"
    fence: int


class ListSessions(LogQuery[list[StoredSession]], frozen=True):
    """Return the sessions that have a log, as `Storage.sessions` does."""

    participle = "listed"
    which: SessionFilter = EVERY
    limit: int = 100
    page: Page | None = None


class FindSession(LogQuery[StoredSession | None], frozen=True):
    """Return the directory's entry of a session; None if it has no log."""

    participle = "found"


class DeleteLog(LogQuery[None], frozen=True):
    """Delete a session's log and those of `others`, all of them or none."""

    participle = "deleted"
    others: tuple[str, ...] = ()


class Vacuum(LogQuery[Sequence[RemainingData]], frozen=True):
    """Remove every byte of deleted logs from the storage's own files. The answer lists remaining data."""

    participle = "vacuumed"
    session: str = ""
    most: int | None = None


class ObserveClock(LogQuery[ObservedClock], frozen=True):
    """Record the wall clock. The answer says how far the clock is trusted, as in `Storage.look_at_clock`."""

    participle = "looked at"
    session: str = ""
    now: int = 0
    elapsed: int = 0


class RenewLease(LogQuery[None], frozen=True):
    """Renew the lease of this host."""

    participle = "kept"
    session: str = ""


Read: TypeAlias = ReadLog | ListSessions | FindSession
Ask: TypeAlias = Read | ClaimSession | ReleaseSession | DeleteLog | Vacuum | ObserveClock | RenewLease
JournalCommand: TypeAlias = Append | Ask
