"""Tie subagents (sessions that a tool opens) to the tool call that opened them.

A subagent is a normal session with its own log, ledger and lanes. A subagent ends at the latest when the call ends,
whatever the tool does, and the call does not end before all its subagents have ended. The events of a subagent's asks
also go to the reader of the parent's ask, with the path of tool calls that led to the subagent.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from types import TracebackType
from typing import Any, Protocol, TypeAlias

import anyio
from msgspec import Struct

from actors.core.log.events import SubagentUsage
from actors.core.session.state import subagent_id
from actors.core.settings.spending import SessionUsage
from actors.core.stream_events.events import SessionEvent, Sink, SubagentEvent
from actors.core.values.identity import CallId
from actors.errors import JournalError, SessionClosed, ShuttingDown
from actors.kernel.tasks import Work
from actors.tools.context import Subagent, SubagentOptions


class ParentCall(Struct, frozen=True):
    """The tool call for which a subagent session is opened.

    Args:
        session: Id of the parent session.
        call_id: Id of the call.
        number: Number of the subagent among the subagents of the call, from 1.
        show: Sends an event to the reader of the parent's ask; None if the ask has no reader.
    """

    session: str
    call_id: CallId
    number: int
    show: Callable[[SessionEvent], None] | None = None

    def session_id(self, subagent_number: int) -> str:
        """Return the id of a subagent session, which contains the ids of the parent session and the call.

        If `subagent_number` is greater than 1, the id also contains this number.
        """
        return subagent_id(self.session, self.call_id, subagent_number)

    def sink_for(self, session: str, sink: Sink) -> Sink:
        """Return a sink for an ask of the subagent `session`. It passes events to `sink` and to the parent's reader."""
        if self.show is None:
            return sink
        return _SubagentSink(sink, partial(self._show_subagent_event, session, self.show))

    def _show_subagent_event(
        self, session: str, show: Callable[[SessionEvent], None], event: SessionEvent
    ) -> None:
        """Send an event of a subagent to the reader of the parent's ask, with this call added to its path."""
        if isinstance(event, SubagentEvent):
            show(SubagentEvent((self.call_id, *event.path), event.session, event.event))
        else:
            show(SubagentEvent((self.call_id,), session, event))


class _SubagentSink:
    """A sink that passes events to the reader of the subagent's ask and to the reader of the parent's ask."""

    __slots__ = ("_own", "_show")

    is_watched = True

    def __init__(self, ask_sink: Sink, show: Callable[[SessionEvent], None]) -> None:
        self._own, self._show = ask_sink, show

    def put(self, event: SessionEvent) -> None:
        self._show(event)
        self._own.put(event)

    def close(self, error: Exception | None = None) -> None:
        self._own.close(error)


class OwnedSession(Protocol):
    """The interface through which a tool call closes a subagent session that it opened."""

    @property
    def name(self) -> str:
        """The id of the session."""
        ...

    @property
    def used(self) -> SessionUsage | None:
        """The usage of the session after it has ended; None if no budget counts its usage."""

    async def close(self, *, in_order: bool = True) -> None:
        """Close the session, and wait until it has ended. Closing a session again has no effect.

        If the caller is cancelled, the session closes anyway. If `in_order` is False, the end of the session is not
        logged.

        Raises:
            JournalError: `in_order` is True, and the end of the session cannot be logged.
        """


OpenSubagent: TypeAlias = Callable[[ParentCall, SubagentOptions], Awaitable[tuple[Subagent, OwnedSession]]]
"""Opens a subagent session for a call."""


class Subagents:
    """The open subagent sessions of one tool call.

    Args:
        parent_call: The call.
        open_subagent: Opens a subagent session for the call.
        start_separate_task: Runs work in a task that the tool can neither damage nor cancel.
    """

    def __init__(
        self,
        parent_call: ParentCall,
        open_subagent: OpenSubagent,
        start_separate_task: Callable[[Work, str], None],
    ) -> None:
        self._parent_call = parent_call
        self._open_subagent, self._start_separate_task = open_subagent, start_separate_task
        self._count = 0
        self._open: set[OwnedSession] = set()
        self._on_closed: list[Callable[[], None]] = []
        self._is_ending = False
        self.delegated: list[SubagentUsage] = []
        """The usage of the sessions that have ended, if a budget counts their usage."""

    def open(self, options: SubagentOptions) -> "SubagentBlock":
        """Return a context manager that opens a subagent session on entry and closes it on exit."""
        return SubagentBlock(self, options)

    async def open_owned(self, options: SubagentOptions) -> tuple[Subagent, OwnedSession]:
        """Open a subagent session. Return the session and the object that closes it.

        Raises:
            SessionClosed: The call is ending or has ended.
        """
        self._check_not_ending()
        self._count += 1
        parent_call = self._parent_call
        subagent, owned = await self._open_subagent(
            ParentCall(parent_call.session, parent_call.call_id, self._count, parent_call.show), options
        )
        self._open.add(owned)
        try:  # the call may have ended while the session was being opened
            self._check_not_ending()
        except SessionClosed:
            await self.close(owned)
            raise
        return subagent, owned

    def close_all(self) -> None:
        """Start to close all sessions, and reject new sessions. The tool cannot prevent this."""
        if self._is_ending:
            return
        self._is_ending = True
        for owned in tuple(self._open):
            self._start_separate_task(partial(self.close, owned), f"{self._parent_call.session}/subagents")

    def end_and_notify(self, on_closed: Callable[[], None]) -> None:
        """Start to close all sessions, and call `on_closed` when no session is open any more."""
        self.close_all()
        if self._open:
            self._on_closed.append(on_closed)
        else:
            on_closed()

    async def close(self, owned: OwnedSession) -> None:
        """Close one session, and wait until it has ended.

        If this method is interrupted, the session is closed at the end of the tool call.
        """
        try:
            await owned.close()
        except (JournalError, ShuttingDown):  # close the session even without a log event
            await owned.close(in_order=False)
        if owned not in self._open:
            return
        self._open.discard(owned)
        if owned.used is not None:
            self.delegated.append(SubagentUsage(self._parent_call.call_id, owned.name, owned.used))
        if self._open:
            return
        waiting, self._on_closed = self._on_closed, []
        for on_closed in waiting:
            on_closed()

    def _check_not_ending(self) -> None:
        """Raise `SessionClosed` if the call is ending and cannot open a subagent."""
        if self._is_ending:
            raise SessionClosed(
                f"Call {self._parent_call.call_id} of session {self._parent_call.session!r} is ending, "
                "so it cannot open a subagent"
            )


class SubagentBlock:
    """An `async with` block that opens a subagent session, and closes the session even after a cancellation."""

    def __init__(self, subagents: Subagents, options: SubagentOptions) -> None:
        self._subagents, self._options = subagents, options
        self._owned: OwnedSession | None = None

    async def __aenter__(self) -> Subagent:
        subagent, self._owned = await self._subagents.open_owned(self._options)
        return subagent

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._owned is not None
        if isinstance(error, GeneratorExit):  # a generator must not await while it is closed
            self._subagents.close_all()
            return
        with anyio.CancelScope(shield=True):
            await self._subagents.close(self._owned)


async def _refuse_subagents(parent_call: ParentCall, options: SubagentOptions) -> Any:  # Any: never returns
    raise SessionClosed(
        f"Session {parent_call.session!r} cannot open subagents, because it runs without a runtime"
    )


NO_SUBAGENTS: OpenSubagent = _refuse_subagents
"""Rejects all subagents. Sessions that run without a runtime use this, for example in tests."""
