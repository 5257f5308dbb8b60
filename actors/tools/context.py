"""Give a running tool information about its call, and a limited interface to its session.

Tools receive a `ToolContext`; the scheduler creates one for each call.
"""

from collections.abc import AsyncIterator, Awaitable, Generator, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar, Unpack

from msgspec import Struct

from actors.core.history.history import NO_MESSAGES, History
from actors.core.settings.asking import AskSettings
from actors.core.stream_events.ask_events import Approvals, AskResult, CallResults, SwitchOutcome
from actors.core.stream_events.events import SessionEvent
from actors.core.values.content import Message
from actors.errors import SessionError

Deps = TypeVar("Deps")


class Subagent(Protocol):
    """A child session that a tool has opened, with some of the methods of `Session`."""

    @property
    def id(self) -> str:
        """The id of the child session and of its log."""
        ...

    async def ask(
        self,
        message: str | Message,
        *,
        key: str | None = None,
        output: Any = None,
        check: bool = True,
        **settings: Unpack[AskSettings],
    ) -> AskResult:
        """Send a message to the child session, and return the result. See `Session.ask`."""
        ...

    def stream(
        self,
        message: str | Message | None = None,
        *,
        results: CallResults | None = None,
        approvals: Approvals | None = None,
        key: str | None = None,
        output: Any = None,
        **settings: Unpack[AskSettings],
    ) -> AbstractAsyncContextManager[AsyncIterator[SessionEvent]]:
        """Send a message, or the results and decisions that a turn waits for, and stream the events.

        See `Session.stream`.
        """
        ...

    async def switch(self, target: str) -> SwitchOutcome:
        """Send later asks to `target`. See `Session.switch`."""
        ...

    async def cancel(self) -> bool:
        """Cancel the ask in flight. Return True if an ask was in flight. See `Session.cancel`."""
        ...

    async def history(self) -> History:
        """Return the conversation so far. See `Session.history`."""
        ...


class SubagentOptions(Struct, frozen=True):
    """Options of a child session, as in `Runtime.open`. Without a `target`, the child uses its parent's target."""

    target: str | None = None
    tools: Iterable[Any] = ()  # Any: entries of `tools=`, whose types this package cannot import
    system: str | None = None


class SessionLink(Protocol):
    """The interface through which a `ToolContext` uses its session.

    All members except `subagent` may be used from any thread.
    """

    @property
    def is_cancelled(self) -> bool:
        """True if the call was cancelled or has passed its deadline."""
        ...

    @property
    def history(self) -> History:
        """The conversation at the start of the turn."""
        ...

    @property
    def now(self) -> float:
        """The current time in seconds, on the clock of the call's deadline."""
        ...

    def progress(self, message: str, fraction: float | None) -> None:
        """Report the progress of the call to the readers of the ask."""

    def subagent(self, options: SubagentOptions) -> AbstractAsyncContextManager[Subagent]:
        """Return a context manager that opens a child session. Call this only in the event loop."""
        ...


class NoSession:
    """The `SessionLink` of a `ToolContext` that was created without a session, for example by a test."""

    is_cancelled = False
    history = NO_MESSAGES
    now: float = 0.0

    def progress(self, message: str, fraction: float | None) -> None:
        """Do nothing."""

    def subagent(self, options: SubagentOptions) -> AbstractAsyncContextManager[Subagent]:
        """Raise `SessionError`, because a child session needs a parent session."""
        raise SessionError(
            "A ToolContext without a session cannot open a subagent; call the tool from a session"
        )


class _CompletedAwaitable:
    """An awaitable that is already complete. `ToolContext.progress` returns it."""

    def __await__(self) -> Generator[None, None, None]:
        yield from ()


_COMPLETED = _CompletedAwaitable()
_NO_SESSION = NoSession()


@dataclass(frozen=True, eq=False)
class ToolContext(Generic[Deps]):
    """Information about the call for which a tool runs, and an interface to the call's session.

    A function's parameter with this annotation receives the context, and is not part of the tool's schema.

        @tool
        async def search(query: str, context: ToolContext[Database]) -> list[str]:
            await context.progress("searching", 0.5)
            return await context.deps.find(query)

    Tests may create a context directly, `ToolContext(deps)`. A context without a session is never cancelled and ignores
    progress.

    Args:
        deps: The object that the program passed to `Runtime.open(deps=...)`.
        session_id: Id of the call's session.
        call_id: The canonical id of the call.
        idempotency_key: A key for services that deduplicate requests. Each call has a different key, which stays the
            same if the call runs again.
        deadline: Time at which the call is stopped, on the clock of `anyio.current_time()`; None if only cancellation
            stops the call.
    """

    deps: Deps = field(repr=False)
    session_id: str = ""
    call_id: str = ""
    idempotency_key: str = ""
    deadline: float | None = None
    _link: SessionLink = field(default=_NO_SESSION, repr=False)

    @property
    def cancelled(self) -> bool:
        """True if the call was cancelled or has passed its deadline.

        A function that runs in a thread is not interrupted, so it should check this property.
        """
        return self._link.is_cancelled

    @property
    def remaining(self) -> float | None:
        """Seconds until the deadline, at least 0; None if there is no deadline. Any thread may read this property."""
        return None if self.deadline is None else max(0.0, self.deadline - self._link.now)

    @property
    def history(self) -> History:
        """The conversation at the start of the turn, including the user message."""
        return self._link.history

    def progress(self, message: str = "", fraction: float | None = None) -> Awaitable[None]:
        """Report the call's progress: the ask's stream receives a `tool_progress` event.

        The report is published before this method returns. So a sync function, which runs in a thread, need not await
        it. A slow reader may receive only the last of several reports.

        Args:
            message: A short description, which is cut to 500 characters.
            fraction: The completed fraction, from 0 to 1.
        """
        self._link.progress(message, fraction)
        return _COMPLETED

    def subagent(
        self,
        target: str | None = None,
        *,
        tools: Iterable[Any] = (),  # Any: entries of `tools=`, whose types this package cannot import
        system: str | None = None,
    ) -> AbstractAsyncContextManager[Subagent]:
        """Open a child session: `async with context.subagent(system="...") as child`.

        The child has its own log, ledger and lanes, and its parent's `deps` and approvals. If the parent has no
        `approve` function, calls that need approval are denied. The parent's stream also contains the events of the
        child's asks. The child is closed when the block ends, or when the call is about to end.

        Args:
            target: The child's target; the parent's target by default.
            tools: The tools that the child's model may call.
            system: The child's system prompt.

        Entering the block raises the same errors as `Runtime.open`, and `SubagentDepthExceeded` if sessions would be
        nested deeper than `limits.max_subagent_depth`. Only async tools can open a child session.
        """
        return self._link.subagent(SubagentOptions(target, tools, system))
