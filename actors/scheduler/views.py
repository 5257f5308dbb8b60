"""What a running call lets its tool see and say: the session's side of `ToolContext`."""

import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from actors.core.data.jsonio import sanitise
from actors.core.history.history import NO_MESSAGES, History, with_ledger
from actors.core.ledger import NO_CALLS, Ledger
from actors.core.stream_events.events import SessionEvent, ToolProgressEvent
from actors.core.values.content import ToolCall
from actors.kernel.event_loop import event_loop
from actors.scheduler.children import ParentCall, Subagents
from actors.scheduler.executor import Executor
from actors.tools.context import Subagent, SubagentOptions, ToolContext

MESSAGE = 500
"""Characters of one message of progress."""


class TurnView(Struct, frozen=True):
    """What the tools of a batch may know of their turn.

    Args:
        turn, round: Its numbers.
        history: As it stood when the turn began.
        ledger: What was known of its calls then.
        put: Shows an event to who asked; None if nobody watches.
    """

    turn: int = 0
    round: int = 0
    history: History = NO_MESSAGES
    ledger: Ledger = NO_CALLS
    put: Callable[[SessionEvent], None] | None = None


NO_VIEW = TurnView()
"""Of calls that belong to no turn."""

Opens: TypeAlias = Callable[[SubagentOptions], AbstractAsyncContextManager[Subagent]]
"""Opens a session below a call."""


class OngoingCall(Protocol):
    """A call, as far as its view must know it."""

    call: ToolCall

    @property
    def is_told(self) -> bool:
        """True if it was told to end."""
        ...

    @property
    def is_closed(self) -> bool:
        """True if it has ended, with its tool or without."""
        ...


class CallView:
    """One call as its tool sees it, for one `ToolContext`. Made in the event loop, used in any thread."""

    def __init__(self, ongoing: OngoingCall, turn: TurnView, opens: Opens) -> None:
        self._ongoing, self._turn, self._opens = ongoing, turn, opens
        self._here, self._home = event_loop(), threading.get_ident()
        self._lock = threading.Lock()
        self._next: ToolProgressEvent | None = None  # said in a thread, and not yet shown

    @property
    def is_cancelled(self) -> bool:
        """True if the call was told to end."""
        return self._ongoing.is_told

    @property
    def history(self) -> History:
        """The conversation as it stood when the turn began."""
        return with_ledger(self._turn.history, self._turn.ledger)

    @property
    def now(self) -> float:
        """The time on the event loop's clock."""
        return self._here.now()

    def progress(self, message: str, fraction: float | None) -> None:
        """Show how far the call has come; of what a thread says between two turns of the loop, the last."""
        if self._turn.put is None or self._ongoing.is_closed:
            return
        event = self._progress_event(message, fraction)
        if threading.get_ident() == self._home:
            self._turn.put(event)
            return
        with self._lock:
            is_coming, self._next = self._next is not None, event
        if not is_coming:
            with suppress(RuntimeError):  # the loop has ended
                self._here.soon(self._show)

    def subagent(self, options: SubagentOptions) -> AbstractAsyncContextManager[Subagent]:
        """Open a session below the call's."""
        return self._opens(options)

    def _progress_event(self, message: str, fraction: float | None) -> ToolProgressEvent:
        call = self._ongoing.call
        done = None if fraction is None else min(1.0, max(0.0, float(fraction)))
        words = sanitise(str(message)[:MESSAGE])
        return ToolProgressEvent(self._turn.turn, self._turn.round, call.id, call.name, words, done)

    def _show(self) -> None:
        with self._lock:
            event, self._next = self._next, None
        if event is not None and self._turn.put is not None and not self._ongoing.is_closed:
            self._turn.put(event)


def subagents_of(ongoing: OngoingCall, turn: TurnView, executor: Executor) -> Subagents:
    """Return what keeps the sessions that a call's tool opens. They show nothing behind the call's end."""
    put = turn.put

    def show(event: SessionEvent) -> None:
        if put is not None and not ongoing.is_closed:
            put(event)

    above = ParentCall(executor.session, ongoing.call.id, 0, None if put is None else show)
    return Subagents(above, executor.open_below, executor.start_apart)


def context_of(
    ongoing: OngoingCall, turn: TurnView, subagents: Subagents, executor: Executor, timeout: float | None
) -> ToolContext[Any]:  # Any: whatever the host gave
    """Return the context of a call that begins now."""
    view, call_id = CallView(ongoing, turn, subagents.open), ongoing.call.id
    deadline = None if timeout is None else view.now + timeout
    key = f"{executor.session}/{executor.key}/{call_id}"
    return ToolContext(executor.deps, executor.session, call_id, key, deadline, view)
