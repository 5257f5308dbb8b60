"""Going on with a session that another runtime had, or this one before: claimed, and folded from its log.

Whoever claims it is its only writer from then on. What its log leaves open is closed by its actors
(`actors.session.recovery`).
"""

from contextvars import copy_context
from typing import Any

from actors.core.log.events import Event, Opened
from actors.core.session.closing import breaks_off
from actors.core.session.state import SessionState
from actors.core.values.content import Message
from actors.core.values.packed import pack
from actors.errors import ConfigError, JournalDamaged, SessionClosed, SessionUnknown
from actors.journal.journal_actor import JournalCommand
from actors.journal.log import Replay, read_replay
from actors.journal.pages import read_log
from actors.kernel import Ref
from actors.provider.backend import Resolver
from actors.runtime.activation import Activation
from actors.runtime.session_host import SessionHost
from actors.session.output import Output, output_of
from actors.session.pending import PendingAsks, Submit
from actors.session.streams import AnswerSink


async def read(journal: Ref[JournalCommand], session: str) -> list[Event]:
    """Return the events of a session's log.

    Raises:
        SessionUnknown: There is none.
        JournalError: It cannot be read.
    """
    events = await read_log(journal, session)
    if not events:
        raise unknown(session)
    return events


def unknown(session: str) -> SessionUnknown:
    """Return what is said of a session that has no log."""
    return SessionUnknown(
        f"No session {session[:80]!r} has a log in this journal; open it, or name another journal"
    )


async def resumable_replay(host: SessionHost, session: str) -> tuple[Opened, Replay]:
    """Return the first event and the replay of a claimed session's log.

    Raises:
        SessionUnknown: It has no log.
        JournalDamaged: The log does not begin as a session's log does.
        SessionClosed: The session was closed for good.
        JournalError: The log cannot be read.
    """
    replay = await read_replay(host.journal, session, host.rules)
    if not replay.seq:
        raise unknown(session)
    if replay.opened is None:
        raise JournalDamaged(
            f"Session {session!r}: its log does not begin with 'opened'", session=session, number=1
        )
    if replay.state.closed:
        raise SessionClosed(f"Session {session!r} was closed for good; fork it, or open another")
    return replay.opened, replay


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
    activation: Activation, replay: Replay, resolver: Resolver, form: Output[Any] | None
) -> None:  # Any: its values
    """Let a session go on from its log; return when nothing is open but a turn that waits, or goes on.

    What its process was doing ends like the ask in flight of a session whose actors crashed. The answer that is waited
    for has this form.

    Raises:
        SessionClosed: It could not be brought so far, and has ended.
        JournalError: What closes it cannot be written.
    """
    activation.recall(replay, resolver)
    if not breaks_off(replay.state):
        activation.pending = None if form is None else PendingAsks(activation.host.most_waiting, form=form)
        return
    sink = AnswerSink(lambda: SessionClosed(f"Session {activation.name!r} could not be resumed: it crashed"))
    lost = Submit(pack(Message("human")), sink, copy_context())
    activation.pending = PendingAsks(activation.host.most_waiting, current=lost, form=form)
    activation.activate()
    if replay.state.pause is None:
        await sink.outcome()
