"""Read and check the logs of sessions that are resumed, and find the asks that a log leaves unfinished.

The caller has claimed the session, so it is the log's only writer. The actors of the session close the open turn and
its calls (`actors.session.recovery`).
"""

from contextvars import copy_context
from typing import Any

from actors.core.log.events import LogEvent, Opened
from actors.core.session.recovery import needs_recovery
from actors.core.session.state import SessionState
from actors.core.values.content import Message
from actors.core.values.packed import pack
from actors.errors import ConfigError, JournalDamaged, SessionClosed, SessionUnknown
from actors.journal.commands import JournalCommand
from actors.journal.log import Replay, read_replay
from actors.journal.pages import read_log
from actors.journal.read_throttle import ReadThrottle
from actors.kernel import Ref
from actors.runtime.session_host import SessionHost
from actors.session.output import Output, output_of
from actors.session.pending import PendingAsks, Submit
from actors.session.streams import AnswerSink


def unknown(session: str) -> SessionUnknown:
    """Return the error for a session that has no log."""
    return SessionUnknown(
        f"No session {session[:80]!r} has a log in this journal; open it, or name another journal"
    )


async def read_events(journal: Ref[JournalCommand], session: str, throttle: ReadThrottle) -> list[LogEvent]:
    """Return the events of a session's log, read with pauses while writes are pending.

    Raises:
        SessionUnknown: The session has no log.
        JournalError: The log cannot be read.
    """
    events = await read_log(journal, session, throttle=throttle)
    if not events:
        raise unknown(session)
    return events


async def resumable_replay(host: SessionHost, session: str) -> tuple[Opened, Replay]:
    """Return the first event and the replay of a claimed session's log.

    Raises:
        SessionUnknown: The session has no log.
        JournalDamaged: The log does not begin as a session's log does.
        SessionClosed: The session was closed for good.
        JournalError: The log cannot be read.
    """
    replay = await read_replay(host.journal, session, host.backends.rules)
    if not replay.seq:
        raise unknown(session)
    if replay.opened is None:
        raise JournalDamaged(
            f"Session {session!r}: its log does not begin with 'opened'", session=session, number=1
        )
    if replay.state.closed:
        raise SessionClosed(f"Session {session!r} was closed for good; fork it, or open another")
    return replay.opened, replay


def awaited_form(state: SessionState, output: Any) -> Output[Any] | None:  # Any: a type or JSON; its values
    """Return the output type of the ask that waits, from the caller's `output=`; None if no turn waits.

    Raises:
        ConfigError: The ask that waits has a different schema.
    """
    if output is None or state.pause is None:
        return None
    form = output_of(output)
    if state.asked is None or state.asked.output != form.schema:
        raise ConfigError("output= differs from the output type of the waiting ask; omit it")
    return form


def unfinished_asks(
    replay: Replay, form: Output[Any] | None, most_waiting: int
) -> tuple[PendingAsks | None, AnswerSink | None]:  # Any: its values
    """Return the pending asks of a resumed session, and the sink of an ask that the log leaves unfinished.

    That ask ends like the ask in flight of a session whose actors crashed.
    """
    if not needs_recovery(replay.state):
        return None if form is None else PendingAsks(most_waiting, form=form), None
    name = replay.state.session
    sink = AnswerSink(lambda: SessionClosed(f"Session {name!r} could not be resumed: it crashed"))
    lost = Submit(pack(Message("user")), sink, copy_context())
    return PendingAsks(most_waiting, current=lost, form=form), sink
