"""Give a tool access to its call, its turn and subagents. This is the session's side of `ToolContext`."""

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
"""Maximum length of a progress message, in characters."""


class TurnView(Struct, frozen=True):
    """The part of a turn that the tools of a batch can read.

    Args:
        turn, round: The numbers of the turn and the round.
        history: The history when the turn began.
        ledger: The ledger when the turn began.
        put: Sends an event to the reader of the ask's stream; None if there is no reader.
    """

    turn: int = 0
    round: int = 0
    history: History = NO_MESSAGES
    ledger: Ledger = NO_CALLS
    put: Callable[[SessionEvent], None] | None = None


NO_VIEW = TurnView()
"""The view of calls that belong to no turn."""

Opens: TypeAlias = Callable[[SubagentOptions], AbstractAsyncContextManager[Subagent]]
"""Opens a subagent session for a call."""


class OngoingCall(Protocol):
    """The part of a running call that its view uses."""

    call: ToolCall

    @property
    def is_told(self) -> bool:
        """True if the tool was asked to stop."""
        ...

    @property
    def is_closed(self) -> bool:
        """True if the call has ended or was closed without its tool."""
        ...


class CallView:
    """The call behind one `ToolContext`. Created in the event loop, and safe to use from any thread."""

    def __init__(self, ongoing: OngoingCall, turn: TurnView, opens: Opens) -> None:
        self._ongoing, self._turn, self._opens = ongoing, turn, opens
        self._here, self._home = event_loop(), threading.get_ident()
        self._lock = threading.Lock()
        self._next: ToolProgressEvent | None = None  # reported by a thread and not yet published

    @property
    def is_cancelled(self) -> bool:
        """True if the call was asked to stop."""
        return self._ongoing.is_told

    @property
    def history(self) -> History:
        """The conversation when the turn began."""
        return with_ledger(self._turn.history, self._turn.ledger)

    @property
    def now(self) -> float:
        """The time on the event loop's clock."""
        return self._here.now()

    def progress(self, message: str, fraction: float | None) -> None:
        """Publish the progress of the call. If a thread reports several times in one loop iteration, only the last."""
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
                self._here.soon(self._publish_progress)

    def subagent(self, options: SubagentOptions) -> AbstractAsyncContextManager[Subagent]:
        """Open a subagent session."""
        return self._opens(options)

    def _progress_event(self, message: str, fraction: float | None) -> ToolProgressEvent:
        call = self._ongoing.call
        done = None if fraction is None else min(1.0, max(0.0, float(fraction)))
        words = sanitise(str(message)[:MESSAGE])
        return ToolProgressEvent(self._turn.turn, self._turn.round, call.id, call.name, words, done)

    def _publish_progress(self) -> None:
        with self._lock:
            event, self._next = self._next, None
        if event is not None and self._turn.put is not None and not self._ongoing.is_closed:
            self._turn.put(event)


def subagents_of(ongoing: OngoingCall, turn: TurnView, executor: Executor) -> Subagents:
    """Return the subagents of a call. Their events are not published after the end of the call."""
    put = turn.put

    def show(event: SessionEvent) -> None:
        if put is not None and not ongoing.is_closed:
            put(event)

    above = ParentCall(executor.session, ongoing.call.id, 0, None if put is None else show)
    return Subagents(above, executor.open_below, executor.start_apart)


def context_of(
    ongoing: OngoingCall, turn: TurnView, subagents: Subagents, executor: Executor, timeout: float | None
) -> ToolContext[Any]:  # Any: the type of the host's `deps`
    """Return the `ToolContext` of a call that starts now."""
    view, call_id = CallView(ongoing, turn, subagents.open), ongoing.call.id
    deadline = None if timeout is None else view.now + timeout
    key = f"{executor.session}/{executor.key}/{call_id}"
    return ToolContext(executor.deps, executor.session, call_id, key, deadline, view)
