"""Read the part of a log that belongs to one ask: to repeat its result to another caller, or to continue it.

Used by `actors.session.repeats`. The log is read backwards from its end, so the cost depends on the age of the ask, and
not on the length of the log.
"""

from collections.abc import Sequence

from msgspec import Struct

from actors.core.log.events import AskStarted, LogEvent, TurnStarted
from actors.core.session.publishing import AskFold, Publisher
from actors.core.stream_events.events import CompleteEvent, ErrorEvent, SessionEvent, TerminalEvent
from actors.errors import JournalError
from actors.journal.commands import JournalCommand, ReadLog
from actors.journal.storage import PAGE
from actors.kernel import Ref


class AskLog(Struct, frozen=True):
    """The stream events of one ask, as far as the log has them.

    Args:
        events: The durable events without the terminal ones, oldest first.
        terminal: The latest event with a result of the ask; None while its first turn runs.
        totals: The totals over the turns of the ask.
    """

    events: Sequence[SessionEvent]
    terminal: TerminalEvent | None
    totals: AskFold


def publish_ask(log: Sequence[LogEvent], before: int) -> AskLog:
    """Return the stream events of an ask.

    Args:
        log: The log from the `AskStarted` event of the ask on, up to the next one.
        before: The number of events before them.
    """
    turn = next((event.turn - 1 for event in log if isinstance(event, TurnStarted)), 0)
    publisher, events, terminal = Publisher(before, turn), list[SessionEvent](), None
    for event in log:
        is_aside = publisher.is_aside
        for published in publisher.publish(event):
            if not isinstance(published, CompleteEvent | ErrorEvent):
                events.append(published)
            elif not is_aside:
                terminal = published
    return AskLog(events, terminal, publisher.totals)


async def read_ask(journal: Ref[JournalCommand], session: str, ask: int) -> AskLog:
    """Return the stream events of the ask with this number.

    Raises:
        JournalError: The log cannot be read, or does not contain the ask.
    """
    end: int = (await journal.ask(ReadLog(session, most=1, urgent=True))).last
    log = list[LogEvent]()
    while end:
        before = max(0, end - PAGE)
        log[:0] = await _read_between(journal, session, before, end)
        for at in range(end - before - 1, -1, -1):
            if isinstance(event := log[at], AskStarted):
                if event.ask == ask:
                    return publish_ask(log[at:], before + at)
                del log[at:]  # it belongs to a later ask
        end = before
    raise JournalError(f"Session {session!r} has no ask {ask} in its log")


async def _read_between(journal: Ref[JournalCommand], session: str, after: int, last: int) -> list[LogEvent]:
    """Return the events after number `after`, up to number `last`."""
    found = list[LogEvent]()
    while (seq := after + len(found)) < last:
        page = await journal.ask(ReadLog(session, seq, most=last - seq, urgent=True))
        if not page.events:
            raise JournalError(f"Session {session!r}: event {seq + 1} was deleted while its log was read")
        found += page.events
    return found
