"""Read the part of a log that belongs to one ask, to repeat its events and its result to another caller."""

from collections.abc import Sequence

from msgspec import Struct

from actors.core.log import events
from actors.core.log.events import AskStarted, LogEvent, RequestSent, TurnStarted
from actors.core.session.publishing import Publisher
from actors.core.stream_events.events import CompleteEvent, ErrorEvent, SessionEvent, TerminalEvent
from actors.core.stream_events.results import AskResult
from actors.errors import JournalError
from actors.journal.journal_actor import JournalCommand, ReadLog
from actors.journal.storage import PAGE
from actors.kernel import Ref


class AskLog(Struct):
    """The stream events of one ask, as the log has them now.

    Args:
        before: The number of the log event before the ask.
        events: Its durable stream events without those that end a stream, oldest first.
        terminal: The event with its result; None while its first turn runs.
    """

    before: int
    events: list[SessionEvent] = []
    terminal: TerminalEvent | None = None

    def publish(self, number: int, log: Sequence[LogEvent]) -> None:
        """Publish the log from the ask's first event on."""
        turn = next((event.turn - 1 for event in log if isinstance(event, TurnStarted)), 0)
        publisher, is_compaction = Publisher(self.before, turn), False
        for event in log:
            if isinstance(event, AskStarted) and event.ask != number:
                break
            is_compaction = _is_compaction(event, is_compaction)
            for published in publisher.publish(event):
                if not isinstance(published, CompleteEvent | ErrorEvent):
                    self.events.append(published)
                elif not (is_compaction or self._is_final):
                    self.terminal = published

    @property
    def _is_final(self) -> bool:
        """True if the ask has a result that no later turn replaces."""
        return self.terminal is not None and not may_continue(self.terminal.result)


def may_continue(result: AskResult) -> bool:
    """Return True if further turns of the ask may follow this result."""
    if result.status in ("awaiting", "interrupted"):
        return True
    cause = result.attempts[-1].cause if result.attempts else None
    return cause is not None and cause.kind == "leaving"


def _is_compaction(event: LogEvent, before: bool) -> bool:
    """Return True if the turn in flight only compacts the history, so that its end is no result of the ask."""
    match event:
        case TurnStarted() | events.TurnResumed():
            return False
        case RequestSent(aside=aside):
            return aside
        case events.Compacted() | events.ResultsTrimmed():
            return True
        case _:
            return before


async def read_ask(journal: Ref[JournalCommand], session: str, number: int) -> AskLog:
    """Return the stream events of an ask. The cost depends on the events since then, not on the length of the log.

    Raises:
        JournalError: The log cannot be read, or does not contain the ask.
    """
    first: int = (await journal.ask(ReadLog(session, most=1, urgent=True))).last
    log: list[LogEvent] = []
    while first:
        before = max(0, first - PAGE)
        log[:0] = await _between(journal, session, before, first)
        for at in range(first - before - 1, -1, -1):
            event = log[at]
            if isinstance(event, AskStarted) and event.ask == number:
                found = AskLog(before + at)
                found.publish(number, log[at:])
                return found
        first = before
    raise JournalError(f"Session {session!r} has no ask {number} in its log")


async def _between(journal: Ref[JournalCommand], session: str, after: int, end: int) -> list[LogEvent]:
    """Return the events after number `after`, up to number `end`."""
    found = list[LogEvent]()
    while (seq := after + len(found)) < end:
        page = await journal.ask(ReadLog(session, seq, most=end - seq, urgent=True))
        if not page.events:
            raise JournalError(f"Session {session!r}: event {seq + 1} was erased while its log was read")
        found += page.events
    return found
