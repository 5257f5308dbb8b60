"""Give a tool access to its call, its turn and its subagents. `ToolContext` calls the objects of this module."""

import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from actors.core.data.jsonio import sanitise
from actors.core.history.history import NO_MESSAGES, History, with_ledger
from actors.core.ledger import NO_CALLS, Ledger
from actors.core.stream_events.events import SessionEvent
from actors.core.stream_events.round_events import ToolProgressEvent
from actors.core.values.content import ToolCall
from actors.kernel.event_loop import event_loop
from actors.scheduler.children import ParentCall, Subagents
from actors.scheduler.executor import Executor
from actors.tools.context import Subagent, SubagentOptions, ToolContext

MAX_MESSAGE_LENGTH = 500
"""Maximum length of a progress message, in characters."""


class TurnView(Struct, frozen=True):
    """Information about a turn, which the tools of a batch can read.

    Args:
        turn, round: The numbers of the turn and the round.
        history: The history at the start of the turn.
        ledger: The ledger at the start of the turn.
        put: Sends an event to the reader of the ask's stream; None if the stream has no reader.
    """

    turn: int = 0
    round: int = 0
    history: History = NO_MESSAGES
    ledger: Ledger = NO_CALLS
    put: Callable[[SessionEvent], None] | None = None


NO_VIEW = TurnView()
"""The view for calls that belong to no turn."""

OpenSubagentBlock: TypeAlias = Callable[[SubagentOptions], AbstractAsyncContextManager[Subagent]]
"""Returns a context manager that opens a subagent session for a call."""


class OngoingCall(Protocol):
    """The properties of a running call that `CallView` reads."""

    call: ToolCall

    @property
    def is_stop_requested(self) -> bool:
        """True if the tool was asked to stop."""
        ...

    @property
    def is_closed(self) -> bool:
        """True if the call has ended, or was closed while its tool still runs."""
        ...


class CallView:
    """The link between a tool call's `ToolContext` and its session.

    Create the object in the thread of the event loop. Its methods may be called in any thread.

    Args:
        ongoing: The running call.
        turn: The information about the turn.
        open_block: Returns a context manager that opens a subagent session.
    """

    def __init__(self, ongoing: OngoingCall, turn: TurnView, open_block: OpenSubagentBlock) -> None:
        self._ongoing, self._turn, self._open_block = ongoing, turn, open_block
        self._here, self._home = event_loop(), threading.get_ident()
        self._lock = threading.Lock()
        self._next: ToolProgressEvent | None = None  # reported by a thread, but not published yet

    @property
    def is_cancelled(self) -> bool:
        """True if the call was asked to stop."""
        return self._ongoing.is_stop_requested

    @property
    def history(self) -> History:
        """The conversation at the start of the turn."""
        return with_ledger(self._turn.history, self._turn.ledger)

    @property
    def now(self) -> float:
        """The current time on the event loop's clock, in seconds."""
        return self._here.now()

    def progress(self, message: str, fraction: float | None) -> None:
        """Publish the progress of the call if the call is not closed and the stream of the ask has a reader.

        If a thread reports several times in one iteration of the event loop, only the last report is published.
        """
        if self._turn.put is None or self._ongoing.is_closed:
            return
        event = self._progress_event(message, fraction)
        if threading.get_ident() == self._home:
            self._turn.put(event)
            return
        with self._lock:
            is_coming, self._next = self._next is not None, event
        if not is_coming:
            with suppress(RuntimeError):  # the event loop has ended
                self._here.soon(self._publish_progress)

    def subagent(self, options: SubagentOptions) -> AbstractAsyncContextManager[Subagent]:
        """Return a context manager that opens a subagent session."""
        return self._open_block(options)

    def _progress_event(self, message: str, fraction: float | None) -> ToolProgressEvent:
        """Return an event with a shortened message, and with `fraction` limited to the range from 0 to 1."""
        call = self._ongoing.call
        done = None if fraction is None else min(1.0, max(0.0, float(fraction)))
        words = sanitise(str(message)[:MAX_MESSAGE_LENGTH])
        return ToolProgressEvent(self._turn.turn, self._turn.round, call.id, call.name, words, done)

    def _publish_progress(self) -> None:
        """Publish the last progress that a thread has reported. Called in the event loop."""
        with self._lock:
            event, self._next = self._next, None
        if event is not None and self._turn.put is not None and not self._ongoing.is_closed:
            self._turn.put(event)


def create_subagents(ongoing: OngoingCall, turn: TurnView, executor: Executor) -> Subagents:
    """Return the object that opens and closes the subagents of a call.

    Events of the subagents are not published after the call has ended.
    """
    put = turn.put

    def show(event: SessionEvent) -> None:
        if put is not None and not ongoing.is_closed:
            put(event)

    parent_call = ParentCall(executor.session, ongoing.call.id, 0, None if put is None else show)
    return Subagents(parent_call, executor.open_subagent, executor.start_separate_task)


def create_tool_context(
    ongoing: OngoingCall, turn: TurnView, subagents: Subagents, executor: Executor, timeout: float | None
) -> ToolContext[Any]:  # Any: the host chooses the type of `deps`
    """Return the `ToolContext` for a call that starts now.

    `timeout` is the number of seconds until the deadline of the call. None means no deadline.
    """
    view, call_id = CallView(ongoing, turn, subagents.open), ongoing.call.id
    deadline = None if timeout is None else view.now + timeout
    key = f"{executor.session}/{executor.key}/{call_id}"
    return ToolContext(executor.deps, executor.session, call_id, key, deadline, view)
