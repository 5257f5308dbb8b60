"""The asks that a session has accepted and not ended: the ask in flight and the queue."""

from collections.abc import Callable, Sequence
from contextvars import Context as Variables
from copy import copy
from functools import partial
from typing import Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from actors.core.data.jsonio import JsonObject
from actors.core.history.compaction import CompactionResult
from actors.core.log.call_events import Failed, Returned
from actors.core.log.events import AskKey, Verdict
from actors.core.session.publishing import terminal_event
from actors.core.settings.asking import Asked
from actors.core.stream_events.events import SessionEvent, TerminalEvent
from actors.core.stream_events.results import AskResult
from actors.core.stream_events.sink import Sink
from actors.core.values.content import ToolResult
from actors.core.values.identity import CallId
from actors.core.values.packed import Packed
from actors.errors import CompactionFailed, ConfigError, JournalError, QueueFull, SessionError
from actors.kernel import Query
from actors.kernel.host_code import call_host
from actors.session.output import Output
from actors.session.records import SessionAskTracker

E = TypeVar("E", bound=Exception)


class HostCall(Struct):
    """A tool call by the program (`Session.call_tool`), in a turn without a model.

    Args:
        name: Name of the tool.
        arguments: Arguments of the call.
        result: The tool's result, when the turn has ended.
    """

    name: str
    arguments: JsonObject
    result: ToolResult | None = None

    def value(self, session: str, came_of: AskResult) -> ToolResult:
        """Return the result of the call. Raises `SessionError` if the call did not run."""
        if self.result is None:
            raise SessionError(f"Session {session!r} did not run tool {self.name!r}: {came_of.error}")
        return self.result


class HostCompaction(Struct):
    """A compaction at the request of the program. `result` is set when its turn has ended."""

    result: CompactionResult | None = None

    def value(self, session: str, came_of: AskResult) -> CompactionResult:
        """Return the result of the compaction. Raises `CompactionFailed` if nothing was compacted."""
        if self.result is None or came_of.status in ("failed", "interrupted"):
            raise CompactionFailed(f"The history of session {session!r} was not compacted: {came_of.error}")
        return self.result


class HostRewind(Struct):
    """A rewind to the end of turn `to`, at the request of the program.

    Args:
        to: The turn; 0 for the initial history.
        removed: Number of removed messages, set when the rewind is in the log.
        refusal: The reason if the history cannot be rewound, else empty.
    """

    to: int
    removed: int | None = None
    refusal: str = ""

    def __post_init__(self) -> None:
        if type(self.to) is not int or self.to < 0:
            raise ConfigError(f"rewind(to=) takes the number of a turn, or 0; not {self.to!r}")

    def value(self, session: str, came_of: AskResult) -> int:
        """Return the number of removed messages. Raises `ConfigError` after a refusal, `SessionError` after a crash."""
        if self.refusal:
            raise ConfigError(self.refusal)
        if self.removed is None:
            raise SessionError(f"Session {session!r} was just restarted; rewind it again")
        return self.removed


class Submit(Query[None], frozen=True):
    """Start an ask, or queue it. The reply means that the ask is accepted; `QueueFull` if the queue is full.

    Args:
        message: The user's message.
        sink: Receives the events. It is closed without a terminal event if the session ends before the ask.
        variables: The caller's context variables, for the tools.
        call: An operation that runs in place of a model's turn.
        asked: Settings of this ask alone.
        output: The type of the answer; `asked` has its schema.
        key: The idempotency key of the ask; None without one.
        own: The caller's own sink, which `sink` wraps. A repeated ask bypasses the other readers and the tracing.
    """

    message: Packed
    sink: Sink
    variables: Variables
    call: HostCall | HostCompaction | HostRewind | None = None
    asked: Asked | None = None
    output: Output[Any] | None = None  # Any: its values
    key: AskKey | None = None
    own: Sink | None = None

    def pass_on(self, event: SessionEvent) -> None:
        """Pass an event of the first ask to the caller of a repeated one."""
        if self.own is not None:
            self.own.put(event)

    def answer(self, event: TerminalEvent) -> None:
        """End the stream of a repeated ask with the result of the first one."""
        result = event.result
        if self.output is not None and result.status == "complete":
            read = self.output.parse(result.text, "unambiguous")
            result = replace(result, output=read[0] if isinstance(read, tuple) else None)
        self.pass_on(terminal_event(result, event.seq))
        self.sink.close()


class Decision(Struct, frozen=True):
    """A caller's decision about a call that waits for approval. See `ApprovalDecision`.

    Args:
        call_id: Id of the call.
        verdict: Whether the call may run.
        reason: Reason of the decision. The model receives the reason of a denial.
        arguments: Arguments that replace those of the model.
        digest: Digest of the call that was reviewed; None to skip the check.
    """

    call_id: CallId
    verdict: Verdict
    reason: str = ""
    arguments: JsonObject | None = None
    digest: str | None = None


class Resolutions(Struct, frozen=True):
    """Results and decisions for calls that a turn waits for: at least one, and at most one for each call.

    Args:
        ends: The ends of external calls.
        decisions: Decisions about calls that wait for approval.
    """

    ends: tuple[Returned | Failed, ...] = ()
    decisions: tuple[Decision, ...] = ()


class Resolve(Query[None], frozen=True):
    """Record results and decisions for calls that a turn waits for. The reply means that all are recorded.

    Args:
        resolutions: The results and decisions.
        sink, variables: As in `Submit`, for the rest of the turn if this command completes what it waits for.
    """

    resolutions: Resolutions
    sink: Sink
    variables: Variables


def is_ask(command: Submit | Resolve) -> bool:
    """Return True if a command is part of an ask, False for a call, a compaction or a rewind by the program."""
    return isinstance(command, Resolve) or command.call is None


def copy_error(error: E | None) -> E | None:
    """Return a copy of an error that several callers raise: each raises its own. If it cannot be copied, return it."""
    return call_host(partial(copy, error), lambda _: error)


class PendingAsks(Struct):
    """The accepted asks of a session, and the owner of the result of the ask in flight. It outlives crashes.

    Args:
        most_waiting: Most asks in the queue, and most commands with results or decisions that are not yet recorded.
        waiting: The queued asks, oldest first.
        current: The ask in flight, or the command with which its turn last continued.
        resolutions: The commands with results and decisions that are not yet recorded.
        terminal: The event that ends the stream of the ask in flight, set when the ask's last event is in the log.
        form: The output type of the last ask.
        key: The key of the ask in flight; empty without one.
        joined: By key, the repeated asks that wait for the result of the first one.
        rested: Called when an ask has ended, or its turn begins to wait.
        record: Counts and logs the asks.
    """

    most_waiting: int = 8
    waiting: list[Submit] = []
    current: Submit | Resolve | None = None
    resolutions: list[Resolve] = []
    terminal: TerminalEvent | None = None
    form: Output[Any] | None = None  # Any: its values
    key: str = ""
    joined: dict[str, list[Submit]] = {}
    rested: Callable[[], None] = lambda: None
    record: SessionAskTracker = field(default_factory=SessionAskTracker)

    def push(self, submit: Submit) -> None:
        """Queue an accepted ask."""
        self.waiting.append(submit)
        self.record.queue(1)

    def take(self) -> Submit:
        """Make the oldest queued ask the ask in flight, and return it."""
        submit = self.current = self.waiting.pop(0)
        self.key = "" if submit.key is None else submit.key.name
        self.record.queue(-1)
        return submit

    @property
    def is_empty(self) -> bool:
        """True if no command of a caller is queued."""
        return not (self.waiting or self.resolutions)

    def too_many(self, session: str) -> QueueFull:
        """Return the error for an ask that finds the queue full."""
        return QueueFull(
            f"Session {session!r} has {len(self.waiting)} asks waiting; wait for one, or cancel."
        )

    def too_much(self, session: str) -> QueueFull:
        """Return the error for results or decisions that find their queue full."""
        return QueueFull(
            f"Session {session!r} has {len(self.resolutions)} results waiting; pass these later."
        )

    def asks_with_key(self, name: str) -> list[Submit]:
        """Return the asks with this key that are in flight or queued."""
        return [
            each
            for each in (self.current, *self.waiting)
            if isinstance(each, Submit) and each.key is not None and each.key.name == name
        ]

    def join(self, submit: Submit, name: str) -> None:
        """Answer a repeated ask when the first one with its key, which is in flight or queued, has ended."""
        self.joined.setdefault(name, []).append(submit)

    def sink_for(self, first: Sink) -> Sink:
        """Return the sink for the ask in flight: that of its caller, and those of the callers that join."""
        return JoinedSink(first, self.joined.setdefault(self.key, [])) if self.key else first

    def settle(self, result: AskResult, seq: int) -> None:
        """Keep the result of the ask in flight: its last event is in the log, with the number `seq`.

        The result survives a crash of the session from here on. `conclude` delivers it.
        """
        self.terminal = terminal_event(result, seq)

    def conclude(self) -> AskResult | None:
        """Deliver the result of the ask in flight and end its stream; return the result, if there is one."""
        self._deliver()
        self._end_joined(self.key)
        event, self.current, self.terminal, self.key = self.terminal, None, None, ""
        self.rested()
        return None if event is None else event.result

    def _deliver(self) -> None:
        if self.current is not None and self.terminal is not None:
            if is_ask(self.current):  # log in the caller's context, which may bind variables for logging
                self.current.variables.copy().run(self.record.end, self.terminal.result)
            self.current.sink.put(self.terminal)
        if self.terminal is not None:
            for repeated in self.joined.pop(self.key, ()):
                repeated.answer(self.terminal)

    def _end_joined(self, key: str, error: Exception | None = None) -> None:
        """End the streams of the asks that joined the ask with this key."""
        for repeated in self.joined.pop(key, ()):
            repeated.sink.close(copy_error(error))

    def drop_rewinds(self, why: SessionError) -> None:
        """Remove queued rewinds and end their streams."""
        for submit in [each for each in self.waiting if isinstance(each.call, HostRewind)]:
            self.remove(submit)
            submit.sink.close(copy(why))

    def remove(self, submit: Submit) -> None:
        """Remove a queued ask. The caller ends its stream."""
        self.waiting = [each for each in self.waiting if each is not submit]
        self.record.queue(-1)

    def refuse(self, submit: Submit, error: QueueFull) -> None:
        """Remove and count an ask that has waited too long, and end its stream."""
        self.remove(submit)
        submit.variables.copy().run(self.record.record_refusal, error)
        self._close(submit, error)

    def _close(self, submit: Submit, error: Exception | None) -> None:
        """End the stream of a queued ask, and those of the asks that joined it."""
        submit.sink.close(copy_error(error))
        if submit.key is not None:
            self._end_joined(submit.key.name, error)

    def drop_waiting(self, why: JournalError | None = None) -> None:
        """Remove the queued asks and end their streams."""
        waiting, self.waiting = self.waiting, []
        self.record.queue(-len(waiting))
        self.record.drop(sum(map(is_ask, waiting)))
        for submit in waiting:
            self._close(submit, why)

    def clear(self, why: JournalError | None = None) -> None:
        """End every stream: the session has ended, or the error `why` has ended its actors."""
        self.drop_waiting(why)
        resolutions, self.resolutions = self.resolutions, []
        for resolve in resolutions:
            resolve.sink.close(copy_error(why))
        if self.current is not None:
            if self.terminal is None:
                self.record.drop(is_ask(self.current))
            self._deliver()
            self.current.sink.close(copy_error(why))
        for key in list(self.joined):
            self._end_joined(key, why)
        self.current, self.terminal, self.key = None, None, ""


class JoinedSink:
    """The sink of an ask with a key: it passes events to the first caller, and to the callers that joined the ask.

    Args:
        first: The sink of the first caller.
        joined: The repeated asks, which may grow.
    """

    is_watched = True  # a reader may join at any time

    def __init__(self, first: Sink, joined: Sequence[Submit]) -> None:
        self._first, self._joined = first, joined

    def put(self, event: SessionEvent) -> None:
        """Pass an event to all callers."""
        self._first.put(event)
        for each in self._joined:
            each.pass_on(event)

    def close(self, error: Exception | None = None) -> None:
        """End the stream of the first caller. `PendingAsks` ends those of the others."""
        self._first.close(error)


class NoSink:
    """A sink that drops the events of a turn without a reader."""

    is_watched = False

    def put(self, event: SessionEvent) -> None:
        """Drop the event."""

    def close(self, error: Exception | None = None) -> None:
        """Do nothing."""
