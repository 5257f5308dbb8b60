"""Keep the asks that a session has accepted: the ask in flight and the queue.

`PendingAsks` survives a crash of the session's actors, so queued asks run after the restart.
"""

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
from actors.core.settings.asking import StoredAskSettings
from actors.core.stream_events.ask_events import AskResult, TerminalEvent
from actors.core.stream_events.events import SessionEvent, Sink
from actors.core.values.content import ToolResult
from actors.core.values.identity import CallId
from actors.core.values.packed import Packed
from actors.errors import ActorsError, CompactionFailed, ConfigError, JournalError, QueueFull, SessionError
from actors.kernel import Query
from actors.kernel.host_code import call_host
from actors.kernel.receiver import call_with_variables
from actors.session.output import Output
from actors.session.records import SessionAskTracker

E = TypeVar("E", bound=Exception)


class HostCall(Struct):
    """A tool call that the program makes with `Session.call_tool`, in a turn without a model.

    Args:
        name: Name of the tool.
        arguments: Arguments of the call.
        result: The tool's result, set when the turn has ended.
    """

    name: str
    arguments: JsonObject
    result: ToolResult | None = None

    def value(self, session: str, turn_result: AskResult) -> ToolResult:
        """Return the result of the call. `turn_result` is the result of the turn that ran the call.

        Raises:
            SessionError: The call did not run.
        """
        if self.result is None:
            raise SessionError(f"Tool {self.name!r} did not run in session {session!r}: {turn_result.error}")
        return self.result


class HostCompaction(Struct):
    """A compaction that the program requests with `Session.compact`. `result` is set when the turn has ended."""

    result: CompactionResult | None = None

    def value(self, session: str, turn_result: AskResult) -> CompactionResult:
        """Return the result of the compaction. `turn_result` is the result of the turn that compacted the history.

        Raises:
            CompactionFailed: Nothing was compacted.
        """
        if self.result is None or turn_result.status in ("failed", "interrupted"):
            raise CompactionFailed(
                f"The history of session {session!r} was not compacted: {turn_result.error}"
            )
        return self.result


class HostRewind(Struct):
    """A rewind to the end of turn `to_turn`, which the program requests with `Session.rewind`.

    Args:
        to_turn: Number of the turn; 0 for the initial history.
        removed: Number of removed messages, set when the log contains the rewind.
        refusal: The reason why the history cannot be rewound; empty if it can be rewound.
    """

    to_turn: int
    removed: int | None = None
    refusal: str = ""

    def __post_init__(self) -> None:
        if type(self.to_turn) is not int or self.to_turn < 0:
            raise ConfigError(
                f"rewind(to=) must be the number of a turn, or 0 for the initial history, not {self.to_turn!r}"
            )

    def value(self, session: str, turn_result: AskResult) -> int:
        """Return the number of removed messages.

        Raises:
            ConfigError: The history cannot be rewound to that turn.
            SessionError: The session crashed before the rewind was logged.
        """
        if self.refusal:
            raise ConfigError(self.refusal)
        if self.removed is None:
            raise SessionError(f"Session {session!r} was restarted during the rewind; call rewind() again")
        return self.removed


class Submit(Query[None], frozen=True):
    """Start an ask, or queue it. A reply without an error means that the session has accepted the ask.

    If the queue is full, the reply is the error `QueueFull`.

    Args:
        message: The user's message.
        sink: Receives the events. The sink is closed without a terminal event if the session ends before the ask.
        variables: The caller's context variables, for the tools.
        call: An operation of the host program that runs instead of an ask; None for an ask.
        asked: The settings of this ask; None for the defaults.
        output: The type of the answer. `asked` contains its schema.
        key: The idempotency key of the ask; None without a key.
        own: The caller's own sink. `sink` passes events to this sink, to other readers and to tracing. If the ask
            repeats an earlier ask, the earlier ask's events go only to the caller's own sink.
    """

    message: Packed
    sink: Sink
    variables: Variables
    call: HostCall | HostCompaction | HostRewind | None = None
    asked: StoredAskSettings | None = None
    output: Output[Any] | None = None  # Any: the answer may have any type
    key: AskKey | None = None
    own: Sink | None = None

    def pass_on(self, event: SessionEvent) -> None:
        """Send an event of the first ask with this key to the caller that repeats the ask."""
        if self.own is not None:
            self.own.put(event)

    def answer(self, event: TerminalEvent) -> None:
        """End the stream of a repeated ask with the result of the first ask."""
        result = event.result
        if self.output is not None and result.status == "complete":
            parse = partial(self.output.parse, result.text, "unambiguous")
            read = call_with_variables(self.variables, parse)
            result = replace(result, output=read[0] if isinstance(read, tuple) else None)
        self.sink.put(terminal_event(result, event.seq))

    def has_key(self, key: str) -> bool:
        """Return True if the ask has this key. No ask has an empty key."""
        return self.key is not None and self.key.name == key


class Decision(Struct, frozen=True):
    """A caller's decision about a call that waits for approval. See `ApprovalDecision`.

    Args:
        call_id: Id of the call.
        verdict: `allow` runs the call, and `deny` answers it without running its tool.
        reason: Reason for the decision. The model receives the reason for a denial.
        arguments: Arguments that replace the model's arguments. `None` keeps the model's arguments.
        digest: Digest of the call that the caller reviewed. `None` skips the check.
    """

    call_id: CallId
    verdict: Verdict
    reason: str = ""
    arguments: JsonObject | None = None
    digest: str | None = None


class Resolutions(Struct, frozen=True):
    """Results and decisions for calls that a turn waits for.

    There is at least one result or decision, and at most one per call.

    Args:
        ends: The ends of external calls.
        decisions: Decisions about calls that wait for approval.
    """

    ends: tuple[Returned | Failed, ...] = ()
    decisions: tuple[Decision, ...] = ()


class Resolve(Query[None], frozen=True):
    """Record results and decisions for calls that a turn waits for. The reply means that all of them are recorded.

    Args:
        resolutions: The results and decisions.
        sink, variables: As in `Submit`. If no further call is pending, the rest of the turn uses them.
    """

    resolutions: Resolutions
    sink: Sink
    variables: Variables


def is_ask(command: Submit | Resolve) -> bool:
    """Return True if a command starts or continues an ask, and False for a call, compaction or rewind."""
    return isinstance(command, Resolve) or command.call is None


def copy_error(error: E | None) -> E | None:
    """Return a copy of an error, so that several callers can raise it. If copying fails, return the error itself."""
    return call_host(partial(copy, error), lambda _: error)


class PendingAsks(Struct):
    """The accepted asks of a session, including the ask in flight and its result. They survive crashes of the actors.

    Args:
        max_queued: Maximum number of queued asks, and of queued `Resolve` commands.
        waiting: The queued asks, oldest first.
        current: The ask in flight, or the `Resolve` command that last continued its turn.
        resolutions: The `Resolve` commands that are not recorded yet.
        terminal: The event that ends the stream of the ask in flight, set when the ask's last event is in the log.
        output_type: The output type of the last ask.
        key: The key of the ask in flight; empty without a key.
        joined: The repeated asks that wait for the result of the first ask, by key.
        on_ask_end: Called when an ask has ended, or when its turn is paused.
        record: Counts and logs the asks.
    """

    max_queued: int = 8
    waiting: list[Submit] = []
    current: Submit | Resolve | None = None
    resolutions: list[Resolve] = []
    terminal: TerminalEvent | None = None
    output_type: Output[Any] | None = None  # Any: the answer may have any type
    key: str = ""
    joined: dict[str, list[Submit]] = {}
    on_ask_end: Callable[[], None] = lambda: None
    record: SessionAskTracker = field(default_factory=SessionAskTracker)

    def queue_ask(self, submit: Submit) -> None:
        """Add an accepted ask to the queue."""
        self.waiting.append(submit)
        self.record.change_queued(1)

    def take_oldest(self) -> Submit:
        """Remove the oldest ask from the queue, make it the ask in flight, and return it."""
        submit = self.current = self.waiting.pop(0)
        self.key = "" if submit.key is None else submit.key.name
        self.record.change_queued(-1)
        return submit

    @property
    def is_empty(self) -> bool:
        """True if no ask and no `Resolve` command is queued."""
        return not (self.waiting or self.resolutions)

    def queue_full_error(self, session: str) -> QueueFull:
        """Return the error for an ask that is rejected because the queue is full."""
        return QueueFull(
            f"Session {session!r} already has {len(self.waiting)} queued asks; wait until an ask ends, or cancel one"
        )

    def resolutions_full_error(self, session: str) -> QueueFull:
        """Return the error for results or decisions that are rejected because their queue is full."""
        return QueueFull(
            f"Session {session!r} is still recording {len(self.resolutions)} earlier results; pass these results later"
        )

    def asks_with_key(self, key_name: str) -> list[Submit]:
        """Return the asks with this key that are in flight or queued."""
        return [
            each
            for each in (self.current, *self.waiting)
            if isinstance(each, Submit) and each.has_key(key_name)
        ]

    def join_ask(self, submit: Submit, key: str) -> None:
        """Keep a repeated ask until the first ask with this key has ended. Both asks get the same result.

        The first ask is in flight or queued.
        """
        self.joined.setdefault(key, []).append(submit)

    def sink_for(self, caller_sink: Sink) -> Sink:
        """Return a sink for the ask in flight.

        It passes events to the caller's sink, and to the callers that join the ask.
        """
        return JoinedSink(caller_sink, self.joined.setdefault(self.key, [])) if self.key else caller_sink

    def store_result(self, result: AskResult, seq: int) -> None:
        """Store the result of the ask in flight. `seq` is the number of the ask's last event in the log.

        From now on, the result survives a crash of the session's actors. `deliver_result` delivers the result.
        """
        self.terminal = terminal_event(result, seq)

    def deliver_result(self) -> AskResult | None:
        """Deliver the result of the ask in flight and end its stream.

        Return the result, or None if no result is stored.
        """
        self._deliver()
        # If a queued ask has the same key, its result will answer the repeated asks.
        if not any(each.has_key(self.key) for each in self.waiting):
            self._answer_joined()
        event, self.current, self.terminal, self.key = self.terminal, None, None, ""
        self.on_ask_end()
        return None if event is None else event.result

    def _deliver(self) -> None:
        """Send the terminal event of the ask in flight to its stream, and record the outcome of the ask."""
        if self.current is not None and self.terminal is not None:
            # Log in the caller's context, because the caller may have bound logging variables there.
            if is_ask(self.current):
                self.current.variables.copy().run(self.record.record_end, self.terminal.result)
            self.current.sink.put(self.terminal)

    def _answer_joined(self) -> None:
        """End the streams of the repeated asks that joined the ask in flight.

        These asks get the result of the ask in flight. If there is no result, their streams end without a result.
        """
        for repeated in self.joined.pop(self.key, ()):
            if self.terminal is None:
                repeated.sink.close()
            else:
                repeated.answer(self.terminal)

    def _end_joined(self, key: str, error: Exception | None = None) -> None:
        """End the streams of the repeated asks that joined the ask with this key, without a result."""
        for repeated in self.joined.pop(key, ()):
            repeated.sink.close(copy_error(error))

    def drop_rewinds(self, error: SessionError) -> None:
        """Remove queued rewinds, and end their streams with this error."""
        for submit in [each for each in self.waiting if isinstance(each.call, HostRewind)]:
            self.remove(submit)
            submit.sink.close(copy(error))

    def remove(self, submit: Submit) -> None:
        """Remove an ask from the queue. The caller must end the stream of the ask."""
        self.waiting = [each for each in self.waiting if each is not submit]
        self.record.change_queued(-1)

    def reject_queued(self, submit: Submit, error: QueueFull) -> None:
        """Remove a queued ask that waited too long, count it as rejected, and end its stream."""
        self.remove(submit)
        submit.variables.copy().run(self.record.record_refusal, error)
        self._close(submit, error)

    def _close(self, submit: Submit, error: Exception | None) -> None:
        """End the stream of a queued ask, and the streams of the repeated asks that joined it."""
        submit.sink.close(copy_error(error))
        if submit.key is not None:
            self._end_joined(submit.key.name, error)

    def drop_queued(self, error: ActorsError | None = None) -> None:
        """Remove all queued asks, and end their streams. With `error`, the streams raise this error."""
        waiting, self.waiting = self.waiting, []
        self.record.change_queued(-len(waiting))
        self.record.record_dropped(sum(map(is_ask, waiting)))
        for submit in waiting:
            self._close(submit, error)

    def end_all(self, error: JournalError | None = None) -> None:
        """End the streams of all asks, because the session or its actors have ended.

        `error` is the failure that ended the actors; None if the session has ended.
        """
        self.drop_queued(error)
        resolutions, self.resolutions = self.resolutions, []
        for resolve in resolutions:
            resolve.sink.close(copy_error(error))
        if self.current is not None:
            if self.terminal is None:
                self.record.record_dropped(is_ask(self.current))
            self._deliver()
            self.current.sink.close(copy_error(error))
        if self.terminal is not None:
            self._answer_joined()
        for key in list(self.joined):
            self._end_joined(key, error)
        self.current, self.terminal, self.key = None, None, ""


class JoinedSink:
    """The sink of an ask with a key. It passes events to the first caller, and to the callers that joined the ask.

    Args:
        first: The sink of the first caller.
        joined: The repeated asks. More asks may be added later.
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
        """End the stream of the first caller. `PendingAsks` ends the streams of the other callers."""
        self._first.close(error)


class NoSink:
    """A sink that discards the events of a turn without a reader."""

    is_watched = False

    def put(self, event: SessionEvent) -> None:
        """Discard the event."""

    def close(self, error: Exception | None = None) -> None:
        """Do nothing."""
