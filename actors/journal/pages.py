"""Read a log page by page: forwards, or backwards for the events of one ask.

Code that resumes, forks, exports or deletes a session reads its log forwards. The next page is requested only after the
previous page was processed. So the readers of the journal take turns, and a long log does not block the event loop.

`actors.session.repeats` reads the events of one ask, so that the ask can be continued or its result repeated. An ask is
one user message, with the turns that answer it. The log is read backwards from its end, so reading a recent ask is
cheap however long the log is.

Clients that read or export long logs are delayed while writes to the journal are pending. The journal actor counts the
writes that it has not answered yet. A client that processes a long log calls `pause` after each slice of its work, and
requests shorter pages while a write is pending. Alternating reads and writes would not be enough, because all threads
share one interpreter lock. SQLite releases the lock at each call, so a commit must acquire it about 20 times. Each
time, a client may hold the lock for a slice of work on the event loop, or for most of a page in the reading thread. A
commit would usually have to wait for the lock, so clients stop until no write is pending. `MAX_PAUSE` limits each
pause, so that a journal with constant writes can still be read.
"""

from collections.abc import Sequence
from typing import Self

from msgspec import Struct

from actors.core.log.events import AskStarted, LogEvent, TurnEnded, TurnStarted
from actors.core.session.publishing import AskResultBuilder, Publisher
from actors.core.stream_events.ask_events import CompleteEvent, ErrorEvent, TerminalEvent
from actors.core.stream_events.events import SessionEvent
from actors.errors import JournalError
from actors.journal.commands import JournalCommand, ReadLog
from actors.journal.storage import PAGE, LogPage
from actors.kernel import Ref
from actors.kernel.event_loop import Changes, event_loop
from actors.kernel.turnstile import turnstile

SLICE = 16
"""Number of events that a client processes between two pauses. An export takes about 0.3 ms for them."""
SLICE_BYTES = 16 * 1024
"""Number of bytes that an export writes between two pauses. A longer line is written at once."""
MAX_PAUSE = 0.002
"""Maximum length of a pause in seconds: three to four times as long as a commit on a fast disk."""


class ReadThrottle:
    """Counts pending writes, and delays the clients of one journal while there are any."""

    __slots__ = ("_answered", "_changes", "pending")

    def __init__(self) -> None:
        self._changes: Changes | None = None
        self._answered = 0
        self.pending: int = 0
        """Number of writes that the journal actor has received and not answered."""

    def begin_write(self) -> None:
        """Count one more pending write."""
        self.pending += 1

    def end_writes(self, count: int) -> None:
        """Subtract `count` answered writes. If no write is pending any more, resume the paused clients."""
        self.pending -= count
        self._answered += count
        if not self.pending and self._changes is not None:
            self._changes.notify()

    def page_size(self, limit: int) -> int:
        """Return how many events a client should read at once: `limit`, or fewer while writes are pending.

        The more writes are pending, the longer the page. A commit of many writes takes long in any case, so a longer
        page adds little delay.
        """
        return min(limit, SLICE + self.pending) if self.pending else limit

    async def pause(self) -> None:
        """Let other tasks run, then wait until no write is pending, for at most `MAX_PAUSE` seconds."""
        answered = self._answered
        await turnstile().yield_turn()
        if self._is_idle_since(answered):
            return
        here = event_loop()
        changes = self._changes = self._changes or Changes(here)
        with here.scope(deadline=here.now() + MAX_PAUSE):
            while not self._is_idle_since(answered):
                await changes.wait_until(lambda: not self.pending)
                answered = self._answered
                await turnstile().yield_turn()

    def _is_idle_since(self, answered: int) -> bool:
        """Return True if no write is pending and the count of answered writes is still `answered`.

        If the count has increased, the writer may be about to send its next write, so the client should wait once more.
        """
        return not self.pending and self._answered == answered


class LogPages:
    """An async iterator over the pages of a log, up to the event that was the last one when the first page was read.

    Args:
        journal: The address of the journal actor.
        session: The id of the session.
        after: The number of the event before the first page.
        as_writer: Whether the reader will append to the log; see `ReadLog`. This implies `urgent`.
        urgent: Whether a session is waiting for the pages. They are then read even if the read queue is full.
        throttle: Delays and shortens the reads after the first page while writes are pending. None means no delay.
    """

    def __init__(
        self,
        journal: Ref[JournalCommand],
        session: str,
        *,
        after: int = 0,
        as_writer: bool = False,
        urgent: bool = False,
        throttle: ReadThrottle | None = None,
    ) -> None:
        self._journal, self._session, self._is_writer = journal, session, as_writer
        self._throttle = throttle
        self._urgent = as_writer or urgent
        self._end = after
        self.last: int | None = None
        """The number of the last event of the log; None until the first page was read."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> LogPage:
        """Return the next page, which contains at least one event.

        Raises:
            JournalError: The page cannot be read, or the log was deleted in the meantime.
        """
        is_first = self.last is None
        if self.last is not None and self._end >= self.last:
            raise StopAsyncIteration
        as_writer = self._is_writer and is_first
        if self._throttle is not None and not is_first:
            await self._throttle.pause()
        limit = PAGE if self._throttle is None else self._throttle.page_size(PAGE)
        page = await self._journal.ask(
            ReadLog(self._session, self._end, as_writer=as_writer, limit=limit, urgent=self._urgent)
        )
        self.last = page.last if self.last is None else self.last
        page = page.up_to(self.last)
        if self._end >= self.last:
            raise StopAsyncIteration
        if not page.events:
            raise JournalError(
                f"Event {self._end + 1} of {self.last} of session {self._session!r} was deleted while the log was "
                "read; read the log again"
            )
        self._end = page.end
        return page


async def read_log(
    journal: Ref[JournalCommand],
    session: str,
    *,
    as_writer: bool = False,
    throttle: ReadThrottle | None = None,
) -> list[LogEvent]:
    """Return all events of a session's log. The list is empty if the session has no log.

    `LogPages` describes the arguments.

    Raises:
        JournalError: The log cannot be read.
    """
    events = list[LogEvent]()
    async for page in LogPages(journal, session, as_writer=as_writer, throttle=throttle):
        events += page.events
    return events


class AskLog(Struct, frozen=True):
    """The stream events of one ask that can be derived from the log.

    Args:
        events: The durable events except terminal events, oldest first.
        terminal: The latest terminal event of the ask; None while the first turn of the ask runs.
        totals: The totals over the turns of the ask.
    """

    events: Sequence[SessionEvent]
    terminal: TerminalEvent | None
    totals: AskResultBuilder


def make_ask_log(log: Sequence[LogEvent], earlier_events: int) -> AskLog:
    """Convert the log events of one ask to stream events.

    Args:
        log: The log events from `AskStarted` of this ask up to `AskStarted` of the next ask.
        earlier_events: Number of events in the session's log before `log`.
    """
    turn = next((event.turn - 1 for event in log if isinstance(event, TurnStarted)), 0)
    publisher, events, terminal = Publisher(earlier_events, turn), list[SessionEvent](), None
    for event in log:
        is_aside = publisher.is_aside
        for published in publisher.publish(event):
            if not isinstance(published, CompleteEvent | ErrorEvent):
                events.append(published)
            elif not is_aside:
                terminal = published
        if isinstance(event, TurnEnded) and event.ends_ask and not is_aside:
            break  # the later events, such as a compaction, do not belong to the ask
    return AskLog(events, terminal, publisher.totals)


async def read_ask(journal: Ref[JournalCommand], session: str, ask: int) -> AskLog:
    """Return the stream events of the ask with the number `ask`.

    Raises:
        JournalBehind: The journal has lost the ask.
        JournalError: The log cannot be read, or does not contain the ask.
    """
    end: int = (await journal.ask(ReadLog(session, limit=1, urgent=True))).last
    log = list[LogEvent]()
    while end:
        before = max(0, end - PAGE)
        log[:0] = await _read_between(journal, session, before, end)
        for at in range(end - before - 1, -1, -1):
            if isinstance(event := log[at], AskStarted):
                if event.ask == ask:
                    return make_ask_log(log[at:], before + at)
                del log[at:]  # these events belong to a later ask
        end = before
    raise await missing_ask_error(journal, session, ask)


async def missing_ask_error(journal: Ref[JournalCommand], session: str, ask: int) -> JournalError:
    """Return the error for an ask whose events are missing from the log, in part or entirely.

    Raises:
        JournalBehind: The journal has lost the ask.
    """
    await journal.ask(ReadLog(session, limit=1, as_writer=True))
    return JournalError(f"Session {session!r} has no result of ask {ask} in its log")


async def _read_between(
    journal: Ref[JournalCommand], session: str, after: int, last_seq: int
) -> list[LogEvent]:
    """Return the events with numbers from `after + 1` to `last_seq`."""
    found = list[LogEvent]()
    while (seq := after + len(found)) < last_seq:
        page = await journal.ask(ReadLog(session, seq, limit=last_seq - seq, urgent=True))
        if not page.events:
            raise JournalError(f"Event {seq + 1} of session {session!r} was deleted while the log was read")
        found += page.events
    return found
