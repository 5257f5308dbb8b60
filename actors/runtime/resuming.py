"""Going on with a session that another runtime had, or this one before: claimed, and folded from its log.

Whoever claims it is its only writer from then on. What its log leaves open is closed by its actors
(`actors.session.recovery`).
"""

from contextvars import copy_context
from typing import Any

from msgspec import Struct

from actors.core.log.events import Event, Opened
from actors.core.session.closing import breaks_off
from actors.core.session.state import Lanes, SessionState
from actors.core.values.content import Message
from actors.core.values.packed import pack
from actors.errors import ConfigError, JournalDamaged, SessionClosed, SessionUnknown
from actors.journal.journal_actor import JournalCommand
from actors.journal.log import folded
from actors.journal.pages import read_log
from actors.kernel import Ref
from actors.runtime.activation import Activation
from actors.runtime.session_host import SessionHost
from actors.session.output import Output, output_of
from actors.session.pending import PendingAsks, Submit
from actors.session.streams import AnswerSink


class Recalled(Struct, frozen=True):
    """What the log of a session says: its first event, what it folds to."""

    opened: Opened
    state: SessionState
    lanes: Lanes


async def read(journal: Ref[JournalCommand], session: str, *, anew: bool = False) -> list[Event]:
    """Return the events of a session's log.

    Args:
        journal: Who reads it.
        session: Whose log.
        anew: The caller is its writer, and goes on from there.

    Raises:
        SessionUnknown: There is none.
        JournalError: It cannot be read.
    """
    events = await read_log(journal, session, anew=anew)
    if not events:
        raise unknown(session)
    return events


def unknown(session: str) -> SessionUnknown:
    """Return what is said of a session that has no log."""
    return SessionUnknown(
        f"No session {session[:80]!r} has a log in this journal; open it, or name another journal"
    )


async def recalled(host: SessionHost, session: str) -> Recalled:
    """Return what the log of a claimed session says.

    Raises:
        JournalDamaged: It does not begin as a session's log does.
        SessionClosed: Its last event is its end.
    """
    events = await read(host.journal, session, anew=True)
    if not isinstance(opened := events[0], Opened):
        raise JournalDamaged(
            f"Session {session!r}: its log does not begin with 'opened'", session=session, number=1
        )
    state, lanes = await folded(events, host.rules)
    if state.closed:
        raise SessionClosed(f"Session {session!r} was closed for good; fork it, or open another")
    return Recalled(opened, state, lanes)


def form_of(state: SessionState, output: Any) -> Output[Any] | None:  # Any: a type or JSON; its values
    """Return the form of the answer that a turn waits for, as its caller gives it again; None if none waits.

    Raises:
        ConfigError: It is another than the ask had.
    """
    if output is None or state.pause is None:
        return None
    form = output_of(output)
    if state.asked is None or state.asked.output != form.schema:
        raise ConfigError("output= is not the form that the ask which waits was made with; leave it out")
    return form


async def taken_up(
    activation: Activation, log: Recalled, form: Output[Any] | None
) -> None:  # Any: its values
    """Let a session go on from its log; return when nothing is open but a turn that waits, or goes on.

    What its process was doing ends like the ask in flight of a session whose actors crashed. The answer that is waited
    for has this form.

    Raises:
        SessionClosed: It could not be brought so far, and has ended.
        JournalError: What closes it cannot be written.
    """
    if not breaks_off(log.state):
        activation.recall(log.state, log.lanes)
        activation.pending = None if form is None else PendingAsks(activation.host.most_waiting, form=form)
        return
    sink = AnswerSink(lambda: SessionClosed(f"Session {activation.name!r} could not be resumed: it crashed"))
    lost = Submit(pack(Message("human")), sink, copy_context())
    activation.pending = PendingAsks(activation.host.most_waiting, current=lost, form=form)
    activation.activate()
    if log.state.pause is None:
        await sink.outcome()
