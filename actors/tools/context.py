"""What a tool sees of the call it works for, and its only door to the session that called it."""

from collections.abc import AsyncIterator, Awaitable, Generator, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar, Unpack

from msgspec import Struct

from actors.core.history.history import NO_MESSAGES, History
from actors.core.settings.asking import AskSettings
from actors.core.stream_events.events import SessionEvent
from actors.core.stream_events.results import AskResult, SwitchOutcome
from actors.core.values.content import Message
from actors.errors import SessionError

Deps = TypeVar("Deps")


class Subagent(Protocol):
    """A session that a tool has opened below its own: a `Session`, as far as its tool needs it."""

    @property
    def id(self) -> str:
        """Of the session, and of its log."""

    async def ask(
        self, words: str | Message, *, output: Any = None, check: bool = True, **settings: Unpack[AskSettings]
    ) -> AskResult:
        """Say something and return how it came out. Raises `AskFailed` as `Session.ask` does."""

    def stream(
        self, words: str | Message, *, output: Any = None, **settings: Unpack[AskSettings]
    ) -> AbstractAsyncContextManager[AsyncIterator[SessionEvent]]:
        """Say something and give its events."""

    async def switch(self, target: str) -> SwitchOutcome:
        """Send the next ask to `target`."""

    async def cancel(self) -> bool:
        """Cancel the ask in flight."""

    async def history(self) -> History:
        """Return its conversation so far."""


class SubagentOptions(Struct, frozen=True):
    """What a tool says of a session that it opens. Fields as in `Runtime.open`; no target is that of the tool's own."""

    target: str | None = None
    tools: Iterable[Any] = ()  # Any: what `Runtime.open` takes
    system: str | None = None


class CallDoor(Protocol):
    """The session's side of a context. Any thread may use it."""

    @property
    def is_cancelled(self) -> bool:
        """Whether the call was told to end."""

    @property
    def history(self) -> History:
        """The conversation as it stood when the turn began."""

    @property
    def now(self) -> float:
        """The time on the clock that deadlines are told by."""

    def progress(self, message: str, fraction: float | None) -> None:
        """Show how far the call has come."""

    def subagent(self, options: SubagentOptions) -> AbstractAsyncContextManager[Subagent]:
        """Open a session below the call's. In the event loop only."""


class NoDoor:
    """The door of a context that no session made."""

    is_cancelled = False
    history = NO_MESSAGES
    now = 0.0

    def progress(self, message: str, fraction: float | None) -> None:
        """Show it to nobody."""

    def subagent(self, options: SubagentOptions) -> AbstractAsyncContextManager[Subagent]:
        """Refuse: there is no session to open it below."""
        raise SessionError("A ToolContext made by hand opens no subagent; call the tool from a session")


class _Done:
    """What is done already, for those who await it."""

    def __await__(self) -> Generator[None, None, None]:
        yield from ()


_DONE = _Done()
_NO_DOOR = NoDoor()


@dataclass(frozen=True, eq=False)
class ToolContext(Generic[Deps]):
    """What a tool sees of the call it works for. A parameter annotated with it is given one, and no model sees that.

        @tool
        async def search(query: str, context: ToolContext[Database]) -> list[str]:
            await context.progress("searching", 0.5)
            return await context.deps.find(query)

    A test of a tool may make one by hand, `ToolContext(deps)`: it is never cancelled, and shows its progress to nobody.

    Args:
        deps: What the host gave to `Runtime.open(deps=...)`.
        session_id: The session that called.
        call_id: The call, by the session's own numbering.
        idempotency_key: The same whenever this call is run, and no other call's: for services that do once what
            they are asked twice.
        deadline: When the call is ended, on the clock of `anyio.current_time()`; None if nothing but a cancellation
            ends it.
    """

    deps: Deps = field(repr=False)
    session_id: str = ""
    call_id: str = ""
    idempotency_key: str = ""
    deadline: float | None = None
    _door: CallDoor = field(default=_NO_DOOR, repr=False)

    @property
    def cancelled(self) -> bool:
        """Whether the call was told to end, or its time is over. A function in a thread hears of it only here."""
        return self._door.is_cancelled

    @property
    def remaining(self) -> float | None:
        """Seconds until the deadline, at least 0; None without one. In any thread."""
        return None if self.deadline is None else max(0.0, self.deadline - self._door.now)

    @property
    def history(self) -> History:
        """The conversation as it stood when the turn began, its user message included."""
        return self._door.history

    def progress(self, message: str = "", fraction: float | None = None) -> Awaitable[None]:
        """Show in the ask's stream how far the call has come, as a `status` event `progress`.

        Nothing waits for a reader, and of many only the last may be shown. It has happened when this returns, in any
        thread, so a function that is not async just calls it; others may await it as they await all else.

        Args:
            message: A few words; more than 500 characters are cut.
            fraction: How much is done, from 0 to 1.
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
        """Open a session below this one: `async with context.subagent(system="...") as child`.

        It has its own log, ledger and lanes, and this session's `deps` and approvals; without `approve` there, calls
        that want approval are denied. What its asks show is shown in this session's stream too. Leaving the block ends
        it. So does the end of the call, for whatever reason, and the call does not end before it.

        Args:
            target: Whom it talks to; this session's own target if not given.
            tools: What its model may call.
            system: Its system prompt.

        Entering the block raises what `Runtime.open` does, and `SubagentDepthExceeded` beyond
        `limits.max_subagent_depth` levels of sessions. Only async tools can use it.
        """
        return self._door.subagent(SubagentOptions(target, tools, system))
