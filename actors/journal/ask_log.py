"""Read the events of one ask from a session's log, so that the ask can be continued or its result repeated.

An ask is one user message, with the turns that answer it. `actors.session.repeats` uses this module. The log is read
backwards from its end, so reading a recent ask is cheap however long the log is.
"""

from collections.abc import Sequence

from msgspec import Struct

from actors.core.log.events import AskStarted, LogEvent, TurnEnded, TurnStarted
from actors.core.session.publishing import AskFold, Publisher
from actors.core.stream_events.ask_events import CompleteEvent, ErrorEvent, TerminalEvent
from actors.core.stream_events.events import SessionEvent
from actors.errors import JournalError
from actors.journal.commands import JournalCommand, ReadLog
from actors.journal.storage import PAGE
from actors.kernel import Ref


class AskLog(Struct, frozen=True):
    """The stream events of one ask that can be derived from the log.

    Args:
        events: The durable events except terminal events, oldest first.
        terminal: The latest terminal event of the ask; None while the first turn of the ask runs.
        totals: The totals over the turns of the ask.
    """

    events: Sequence[SessionEvent]
    terminal: TerminalEvent | None
    totals: AskFold


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
    end: int = (await journal.ask(ReadLog(session, most=1, urgent=True))).last
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
    await journal.ask(ReadLog(session, most=1, as_writer=True))
    return JournalError(f"Session {session!r} has no result of ask {ask} in its log")


async def _read_between(
    journal: Ref[JournalCommand], session: str, after: int, last_seq: int
) -> list[LogEvent]:
    """Return the events with numbers from `after + 1` to `last_seq`."""
    found = list[LogEvent]()
    while (seq := after + len(found)) < last_seq:
        page = await journal.ask(ReadLog(session, seq, most=last_seq - seq, urgent=True))
        if not page.events:
            raise JournalError(f"Event {seq + 1} of session {session!r} was deleted while the log was read")
        found += page.events
    return found
