"""Sessions that tools open below their own: subagents.

A subagent is a session like any other, with a log, a ledger and lanes of its own. What is here ties it to the call
whose tool opened it. It ends with that call at the latest, whatever the tool does, and the call does not end before it.
What its asks show is shown to the reader of the call's own ask too, with the path of calls that leads to it.
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


class Above(Struct, frozen=True):
    """The call that a session is opened for.

    Args:
        session: Whose call.
        call_id: Which.
        number: Counts the sessions that its tool opens, from 1.
        show: Shows an event of the session to who asked the one above; None if nobody watches.
    """

    session: str
    call_id: CallId
    number: int
    show: Callable[[SessionEvent], None] | None = None

    def named(self, number: int) -> str:
        """Return the id of the call's session of that number: the id above, the call, and the number past the first."""
        return subagent_id(self.session, self.call_id, number)

    def joined(self, session: str, sink: Sink) -> Sink:
        """Return where an ask of that session's shows its events: to its own reader, and to those above."""
        return sink if self.show is None else _SubagentSink(sink, partial(self._tell, session, self.show))

    def _tell(self, session: str, show: Callable[[SessionEvent], None], event: SessionEvent) -> None:
        if isinstance(event, SubagentEvent):
            show(SubagentEvent((self.call_id, *event.path), event.session, event.event))
        else:
            show(SubagentEvent((self.call_id,), session, event))


class _SubagentSink:
    """An ask's sink, and the reader of the call above beside it."""

    __slots__ = ("_own", "_show")

    is_watched = True

    def __init__(self, own: Sink, show: Callable[[SessionEvent], None]) -> None:
        self._own, self._show = own, show

    def put(self, event: SessionEvent) -> None:
        self._show(event)
        self._own.put(event)

    def close(self, error: Exception | None = None) -> None:
        self._own.close(error)


class Owned(Protocol):
    """A session as its owner sees it."""

    @property
    def name(self) -> str:
        """Its id."""

    @property
    def used(self) -> Used | None:
        """What it has used, once it has ended; None if nobody counts that."""

    async def close(self, *, in_order: bool = True) -> None:
        """End it, and wait for that. Who goes away does not take it back; twice is once.

        Raises:
            JournalError: Its end cannot be written, as it should be `in_order`.
        """


OpenBelow: TypeAlias = Callable[[Above, SubagentOptions], Awaitable[tuple[Subagent, Owned]]]
"""Opens a session below a call."""


class Subagents:
    """The sessions that the tool of one call has opened, and not left.

    Args:
        above: The call. Its number is that of the last session it has opened.
        open_below: Opens them.
        apart: Does something that no tool can spoil or cancel.
    """

    def __init__(self, above: Above, open_below: OpenBelow, apart: Callable[[Work, str], None]) -> None:
        self._above, self._open_below, self._apart = above, open_below, apart
        self._count = 0
        self._open: set[Owned] = set()
        self._then: list[Callable[[], None]] = []
        self._is_ending = False
        self.delegated: list[SubagentUsage] = []
        """What those used that have ended, where somebody counts that."""

    def open(self, options: SubagentOptions) -> "SubagentBlock":
        """Return the block that a session lives in."""
        return SubagentBlock(self, options)

    async def opened(self, options: SubagentOptions) -> tuple[Subagent, Owned]:
        """Open one.

        Raises:
            SessionClosed: The call was told to end, or has ended.
        """
        self._check()
        self._count += 1
        above = self._above
        subagent, owned = await self._open_below(
            Above(above.session, above.call_id, self._count, above.show), options
        )
        self._open.add(owned)
        try:
            self._check()
        except SessionClosed:
            await self.close(owned)
            raise
        return subagent, owned

    def end(self) -> None:
        """Have all of them ended, and no more opened, whatever the tool does."""
        if self._is_ending:
            return
        self._is_ending = True
        for owned in tuple(self._open):
            self._apart(partial(self.close, owned), f"{self._above.session}/subagents")

    def over(self, then: Callable[[], None]) -> None:
        """End them, and call `then` when none is left: now, if there is none."""
        self.end()
        if self._open:
            self._then.append(then)
        else:
            then()

    async def close(self, owned: Owned) -> None:
        """End one of them, and wait for that. A caller that is interrupted leaves it to the end of the call."""
        try:
            await owned.close()
        except (JournalError, ShuttingDown):  # nobody could use it any more
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
                f"Call {self._above.call_id} of session {self._above.session!r} is ending; it opens no subagent"
            )


class SubagentBlock:
    """An `async with` block that a subagent lives in: leaving it ends the session, whoever is cancelled meanwhile."""

    def __init__(self, subagents: Subagents, options: SubagentOptions) -> None:
        self._subagents, self._options = subagents, options
        self._owned: Owned | None = None

    async def __aenter__(self) -> Subagent:
        subagent, self._owned = await self._subagents.opened(self._options)
        return subagent

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._owned is not None
        if isinstance(error, GeneratorExit):  # Python lets nothing be awaited behind this one
            self._subagents.end()
            return
        with anyio.CancelScope(shield=True):
            await self._subagents.close(self._owned)


async def _refused(above: Above, options: SubagentOptions) -> Any:  # Any: it never returns
    raise SessionClosed(f"Session {above.session!r} has no runtime that opens sessions below it")


NOBODY: OpenBelow = _refused
"""Of sessions that no runtime opened."""
