"""Read and check the logs of sessions that are being resumed, and find their unfinished asks.

The caller has claimed the session, so no other host writes to its log. The session's actors close an interrupted turn
and its calls (`actors.session.recovery`).
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
from actors.journal.pages import ReadThrottle, read_log
from actors.kernel import Ref
from actors.runtime.session_host import SessionHost
from actors.session.output import Output, output_of
from actors.session.pending import PendingAsks, Submit
from actors.session.streams import AnswerSink


def unknown_session_error(session: str) -> SessionUnknown:
    """Return the error for a session that has no log."""
    return SessionUnknown(
        f"No session {session[:80]!r} has a log in this journal; open it, or name another journal"
    )


async def read_events(journal: Ref[JournalCommand], session: str, throttle: ReadThrottle) -> list[LogEvent]:
    """Return all events of a session's log, in order. Reading pauses while writes are pending.

    Raises:
        SessionUnknown: The session has no log.
        JournalError: The log cannot be read.
    """
    events = await read_log(journal, session, throttle=throttle)
    if not events:
        raise unknown_session_error(session)
    return events


async def resumable_replay(host: SessionHost, session: str) -> tuple[Opened, Replay]:
    """Return the first event and the replay of a claimed session's log.

    Raises:
        SessionUnknown: The session has no log.
        JournalDamaged: The first event of the log is not `opened`.
        SessionClosed: The session was closed for good.
        JournalError: The log cannot be read.
    """
    replay = await read_replay(host.journal, session, host.backends.rules)
    if not replay.seq:
        raise unknown_session_error(session)
    if replay.opened is None:
        raise JournalDamaged(
            f"The log of session {session!r} does not begin with an 'opened' event", session=session, number=1
        )
    if replay.state.closed:
        raise SessionClosed(f"Session {session!r} was closed for good; fork it, or open another")
    return replay.opened, replay


def awaited_output(state: SessionState, output: Any) -> Output[Any] | None:  # Any: any type, or a JSON Schema
    """Return the output type of an ask that waits for its caller, from the argument `output=`.

    Without `output=`, or if no ask waits, return None.

    Raises:
        ConfigError: The waiting ask has a different schema.
    """
    if output is None or state.pause is None:
        return None
    form = output_of(output)
    if state.asked is None or state.asked.output != form.schema:
        raise ConfigError(
            "output= differs from the output type of the waiting ask; pass the same type or omit output="
        )
    return form


def unfinished_asks(
    replay: Replay, output: Output[Any] | None, most_waiting: int
) -> tuple[PendingAsks | None, AnswerSink | None]:  # Any: any answer type
    """Return the pending asks of a resumed session, and the sink that receives the result of its interrupted ask.

    The interrupted ask ends as if the session's actors had crashed while it was in flight. The sink is None if no ask
    was interrupted. If, in addition, no `output` is given, the pending asks are None.

    Args:
        replay: The state, ledger and lanes rebuilt from the log.
        output: The output type of the waiting or interrupted ask.
        most_waiting: Maximum number of queued asks.
    """
    if not needs_recovery(replay.state):
        return None if output is None else PendingAsks(most_waiting, output_type=output), None
    name = replay.state.session
    sink = AnswerSink(lambda: SessionClosed(f"Session {name!r} could not be resumed: it crashed"))
    lost = Submit(pack(Message("user")), sink, copy_context())
    return PendingAsks(most_waiting, current=lost, output_type=output), sink
