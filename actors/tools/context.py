"""Give a running tool its call and a narrow interface to its session.

Tools receive a `ToolContext`; the scheduler creates one for each call.
"""

from collections.abc import AsyncIterator, Awaitable, Generator, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar, Unpack

from msgspec import Struct

from actors.core.history.history import NO_MESSAGES, History
from actors.core.settings.asking import AskSettings
from actors.core.stream_events.events import SessionEvent
from actors.core.stream_events.results import Approvals, AskResult, CallResults, SwitchOutcome
from actors.core.values.content import Message
from actors.errors import SessionError

Deps = TypeVar("Deps")


class Subagent(Protocol):
    """A child session that a tool has opened: the part of `Session` that tools need."""

    @property
    def id(self) -> str:
        """The id of the child session, and of its log."""
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
        """Send a message and return the result. Raises `AskFailed`, as `Session.ask` does."""
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
        """Send a message, or what a paused ask waits for, and stream the events."""
        ...

    async def switch(self, target: str) -> SwitchOutcome:
        """Send the next ask to `target`."""
        ...

    async def cancel(self) -> bool:
        """Cancel the ask in flight."""
        ...

    async def history(self) -> History:
        """Return the conversation so far."""
        ...


class SubagentOptions(Struct, frozen=True):
    """Options of a child session, as in `Runtime.open`. Without a target, the child uses the target of its parent."""

    target: str | None = None
    tools: Iterable[Any] = ()  # Any: as in `Runtime.open`
    system: str | None = None


class SessionLink(Protocol):
    """The session's side of a `ToolContext`. Every member except `subagent` may be used in any thread."""

    @property
    def is_cancelled(self) -> bool:
        """Return True if the call was cancelled or has passed its deadline."""
        ...

    @property
    def history(self) -> History:
        """The conversation at the start of the turn."""
        ...

    @property
    def now(self) -> float:
        """The current time in seconds, on the clock of the deadlines."""
        ...

    def progress(self, message: str, fraction: float | None) -> None:
        """Report the progress of the call."""

    def subagent(self, options: SubagentOptions) -> AbstractAsyncContextManager[Subagent]:
        """Open a child session. Call this in the event loop only."""
        ...


class NoSession:
    """The session's side of a context that was created without a session."""

    is_cancelled = False
    history = NO_MESSAGES
    now: float = 0.0

    def progress(self, message: str, fraction: float | None) -> None:
        """Ignore the report."""

    def subagent(self, options: SubagentOptions) -> AbstractAsyncContextManager[Subagent]:
        """Raise `SessionError`, because there is no parent session."""
        raise SessionError(
            "A ToolContext without a session cannot open a subagent; call the tool from a session"
        )


class _Done:
    """An awaitable that is already complete."""

    def __await__(self) -> Generator[None, None, None]:
        yield from ()


_DONE = _Done()
_NO_SESSION = NoSession()


@dataclass(frozen=True, eq=False)
class ToolContext(Generic[Deps]):
    """The call that a tool runs for. A parameter annotated with this type receives it, and is not part of the schema.

        @tool
        async def search(query: str, context: ToolContext[Database]) -> list[str]:
            await context.progress("searching", 0.5)
            return await context.deps.find(query)

    Tests may create a context directly, `ToolContext(deps)`: it is never cancelled and ignores progress.

    Args:
        deps: The value that the host passed to `Runtime.open(deps=...)`.
        session_id: The session of the call.
        call_id: The canonical id of the call.
        idempotency_key: Unique to this call, and equal each time the call runs: for services that deduplicate requests.
        deadline: Time at which the call is ended, on the clock of `anyio.current_time()`; None if only cancellation
            ends the call.
    """

    deps: Deps = field(repr=False)
    session_id: str = ""
    call_id: str = ""
    idempotency_key: str = ""
    deadline: float | None = None
    _door: SessionLink = field(default=_NO_SESSION, repr=False)

    @property
    def cancelled(self) -> bool:
        """True if the call was cancelled or has passed its deadline. A function in a thread learns of it only here."""
        return self._door.is_cancelled

    @property
    def remaining(self) -> float | None:
        """Seconds until the deadline, at least 0; None without a deadline. May be read in any thread."""
        return None if self.deadline is None else max(0.0, self.deadline - self._door.now)

    @property
    def history(self) -> History:
        """The conversation at the start of the turn, including the user message."""
        return self._door.history

    def progress(self, message: str = "", fraction: float | None = None) -> Awaitable[None]:
        """Report the progress of the call in the ask's stream, as a `status` event `progress`.

        The report is published before this method returns, in any thread. A function that is not async simply calls it;
        an async one may await it. Reports never wait for a reader: of several pending reports, a reader may see only
        the last.

        Args:
            message: A short description; the text is cut to 500 characters.
            fraction: The completed fraction, from 0 to 1.
        """
        self._door.progress(message, fraction)
        return _DONE

    def subagent(
        self,
        target: str | None = None,
        *,
        tools: Iterable[Any] = (),  # Any: as in `Runtime.open`
        system: str | None = None,
    ) -> AbstractAsyncContextManager[Subagent]:
        """Open a child session: `async with context.subagent(system="...") as child`.

        The child has its own log, ledger and lanes, and its parent's `deps` and approvals. Without an `approve`
        callback in the parent, calls that need approval are denied. The parent's stream also shows the events of the
        child's asks. The child is closed when its block or the call ends, and the call does not end before that.

        Args:
            target: The child's target; the parent's target by default.
            tools: The tools that the child's model may call.
            system: The child's system prompt.

        Entering the block raises the errors of `Runtime.open`, and `SubagentDepthExceeded` beyond
        `limits.max_subagent_depth` levels of sessions. Only async tools can open a child session.
        """
        return self._door.subagent(SubagentOptions(target, tools, system))
