"""Tie subagents, the sessions that tools open, to the calls that opened them.

A subagent is a normal session, with its own log, ledger and lanes. It ends with the call at the latest, whatever the
tool does, and the call does not end before its subagents. The events of a subagent's asks also go to the reader of the
parent's ask, with the path of calls that leads to the subagent.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from types import TracebackType
from typing import Any, Protocol, TypeAlias

import anyio
from msgspec import Struct

from actors.core.log.events import SubagentUsage
from actors.core.session.subagent_ids import subagent_id
from actors.core.settings.spending import Used
from actors.core.stream_events.events import SessionEvent, SubagentEvent
from actors.core.stream_events.sink import Sink
from actors.core.values.identity import CallId
from actors.errors import JournalError, SessionClosed, ShuttingDown
from actors.kernel.tasks import Work
from actors.tools.context import Subagent, SubagentOptions


class ParentCall(Struct, frozen=True):
    """The call that a subagent session is opened for.

    Args:
        session: Id of the parent session.
        call_id: Id of the call.
        number: Number of the subagent among those of the call, from 1.
        show: Sends an event to the reader of the parent's ask; None if it has no reader.
    """

    session: str
    call_id: CallId
    number: int
    show: Callable[[SessionEvent], None] | None = None

    def session_id(self, number: int) -> str:
        """Return the id of the call's subagent session `number`: parent id, call id, and the number if it is not 1."""
        return subagent_id(self.session, self.call_id, number)

    def sink_for(self, session: str, sink: Sink) -> Sink:
        """Return the sink for an ask of a subagent session: its own reader and the parent's stream."""
        return sink if self.show is None else _SubagentSink(sink, partial(self._tell, session, self.show))

    def _tell(self, session: str, show: Callable[[SessionEvent], None], event: SessionEvent) -> None:
        if isinstance(event, SubagentEvent):
            show(SubagentEvent((self.call_id, *event.path), event.session, event.event))
        else:
            show(SubagentEvent((self.call_id,), session, event))


class _SubagentSink:
    """A sink that passes events to the ask's own reader and to the reader of the parent's ask."""

    __slots__ = ("_own", "_show")

    is_watched = True

    def __init__(self, own: Sink, show: Callable[[SessionEvent], None]) -> None:
        self._own, self._show = own, show

    def put(self, event: SessionEvent) -> None:
        self._show(event)
        self._own.put(event)

    def close(self, error: Exception | None = None) -> None:
        self._own.close(error)


class OwnedSession(Protocol):
    """A subagent session, as the call that opened it uses it."""

    @property
    def name(self) -> str:
        """Id of the session."""
        ...

    @property
    def used(self) -> Used | None:
        """Usage of the session, once it has ended; None if no budget counts it."""

    async def close(self, *, in_order: bool = True) -> None:
        """Close the session, and wait for it. Cancelling the caller does not stop the close; repeating it is harmless.

        Raises:
            JournalError: With `in_order`, the end of the session cannot be logged.
        """


OpenBelow: TypeAlias = Callable[[ParentCall, SubagentOptions], Awaitable[tuple[Subagent, OwnedSession]]]
"""Opens a subagent session for a call."""


class Subagents:
    """The open subagent sessions of one tool call.

    Args:
        above: The call.
        open_below: Opens a subagent session for the call.
        apart: Runs work in a task that the tool can neither damage nor cancel.
    """

    def __init__(self, above: ParentCall, open_below: OpenBelow, apart: Callable[[Work, str], None]) -> None:
        self._above, self._open_below, self._apart = above, open_below, apart
        self._count = 0
        self._open: set[OwnedSession] = set()
        self._then: list[Callable[[], None]] = []
        self._is_ending = False
        self.delegated: list[SubagentUsage] = []
        """Usage of the sessions that have ended, if a budget counts it."""

    def open(self, options: SubagentOptions) -> "SubagentBlock":
        """Return a context manager that opens a session and closes it on exit."""
        return SubagentBlock(self, options)

    async def open_owned(self, options: SubagentOptions) -> tuple[Subagent, OwnedSession]:
        """Open a session, and return it with the object that closes it.

        Raises:
            SessionClosed: The call is ending or has ended.
        """
        self._check()
        self._count += 1
        above = self._above
        subagent, owned = await self._open_below(
            ParentCall(above.session, above.call_id, self._count, above.show), options
        )
        self._open.add(owned)
        try:
            self._check()
        except SessionClosed:
            await self.close(owned)
            raise
        return subagent, owned

    def end(self) -> None:
        """Close all sessions, and reject new ones. The tool cannot prevent this."""
        if self._is_ending:
            return
        self._is_ending = True
        for owned in tuple(self._open):
            self._apart(partial(self.close, owned), f"{self._above.session}/subagents")

    def end_then(self, then: Callable[[], None]) -> None:
        """Close all sessions, and call `then` when none is open any more."""
        self.end()
        if self._open:
            self._then.append(then)
        else:
            then()

    async def close(self, owned: OwnedSession) -> None:
        """Close one session, and wait for it. If the caller is interrupted, the end of the call closes the session."""
        try:
            await owned.close()
        except (JournalError, ShuttingDown):  # the tool has left it, so close it even without a log event
            await owned.close(in_order=False)
        if owned not in self._open:
            return
        self._open.discard(owned)
        if owned.used is not None:
            self.delegated.append(SubagentUsage(self._above.call_id, owned.name, owned.used))
        if self._open:
            return
        waiting, self._then = self._then, []
        for then in waiting:
            then()

    def _check(self) -> None:
        if self._is_ending:
            raise SessionClosed(
                f"Call {self._above.call_id} of session {self._above.session!r} is ending and cannot open a subagent"
            )


class SubagentBlock:
    """An `async with` block around a subagent session, which closes on leaving even under cancellation."""

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
        if isinstance(error, GeneratorExit):  # a generator that is being closed cannot await
            self._subagents.end()
            return
        with anyio.CancelScope(shield=True):
            await self._subagents.close(self._owned)


async def _refuse_subagents(above: ParentCall, options: SubagentOptions) -> Any:  # Any: it never returns
    raise SessionClosed(f"Session {above.session!r} has no runtime that opens sessions below it")


NOBODY: OpenBelow = _refuse_subagents
"""For sessions without a runtime, for example in tests: rejects subagents."""
