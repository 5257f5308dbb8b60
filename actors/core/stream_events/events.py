"""Define the stream events that `Session.stream` and `Session.events` yield.

`actors.core.session.publishing` derives the durable events from the session's log, both live and for replay. Ephemeral
events (a text delta, a failed request, a tool's progress) come from the actors that observe them.

A durable event has a sequence number (`seq`), its position in the session's log, and is logged before readers receive
it. An ephemeral event exists only while it is streamed, and a slow reader may miss it. One log record can yield several
stream events with the same `seq`. All of them except the last have `more=True`, so that a reader resumes only after the
last one. An ask's stream ends with exactly one `CompleteEvent` or `ErrorEvent`.
"""

from typing import ClassVar, Literal, TypeAlias

from msgspec import Struct

from actors.core.data.jsonio import JsonValue
from actors.core.log.events import EpochReason, TurnStatus, Verdict
from actors.core.schemas.repair import Repair
from actors.core.stream_events.results import AskResult, AwaitedCall, CallEnd, PendingCall
from actors.core.transcript.diagnostics import Report
from actors.core.values.content import Message
from actors.core.values.identity import Binding, CallId
from actors.core.values.progress import Cause
from actors.core.values.stream import Cut, Usage


def _event_type(name: str) -> str:
    """Return the `type` of an event class: `_event_type("ToolCallEvent") == "tool_call"`."""
    words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    return words.lstrip("_").removesuffix("_event")


class StreamEvent(Struct, frozen=True, tag_field="type", tag=_event_type):
    """The base of all stream events."""


class DurableEvent(StreamEvent, frozen=True):
    """The base of all events that are stored in the session's log.

    Args:
        seq: Position in the session's log, from 1. Events that follow from the same log record share this position.
    """

    seq: int


class _TurnEvent(DurableEvent, frozen=True):
    """The base of durable events that belong to a turn.

    Args:
        turn: Number of the turn, from 1; 0 before the session's first turn.
    """

    turn: int


class _RoundEvent(_TurnEvent, frozen=True):
    """The base of durable events that belong to a round.

    Args:
        round: Number of the round within the turn, from 1; 0 for a summary.
    """

    round: int


class _Delta(StreamEvent, frozen=True):
    """The base of fragments of an answer.

    Args:
        text: The fragment.
        turn: Number of the turn, from 1.
        round: Number of the round within the turn, from 1.
        offset: Number of characters of text and reasoning that precede the fragment in the round.
    """

    text: str
    turn: int
    round: int
    offset: int


class TextEvent(_Delta, frozen=True):
    """A fragment of the answer's text. Ephemeral.

    Args:
        offset: Number of characters of text and reasoning in the round before this fragment.
    """

    type: ClassVar[Literal["text"]] = "text"


class ThinkingEvent(_Delta, frozen=True):
    """A fragment of the model's visible reasoning. Ephemeral.

    Args:
        offset: Number of characters of text and reasoning in the round before this fragment.
    """

    type: ClassVar[Literal["thinking"]] = "thinking"


class SessionOpenedEvent(DurableEvent, frozen=True):
    """The session was opened on `target`. Only `Session.events` yields this event."""

    type: ClassVar[Literal["session_opened"]] = "session_opened"
    target: str


class SessionClosedEvent(_TurnEvent, frozen=True):
    """The session was closed. Only `Session.events` yields this event.

    Args:
        reason: The reason, in free text; empty if none was given.
    """

    type: ClassVar[Literal["session_closed"]] = "session_closed"
    reason: str = ""


class AskStartedEvent(_TurnEvent, frozen=True):
    """An ask began with the user's message.

    Args:
        turn: Number of the ask's first turn.
        message: The user's message.
        key: The idempotency key; empty if the caller passed none.
    """

    type: ClassVar[Literal["ask_started"]] = "ask_started"
    message: Message
    key: str = ""


class TurnStartedEvent(_TurnEvent, frozen=True):
    """A turn began on `binding`, which serves the turn until the turn ends."""

    type: ClassVar[Literal["turn_started"]] = "turn_started"
    binding: Binding


class FailoverEvent(_TurnEvent, frozen=True):
    """The ask moves to `backend` and continues there in a new turn, whose `TurnStartedEvent` follows.

    Args:
        turn: Number of the new turn.
        backend: Name of the backend that continues the ask.
        more: True if another event with the same `seq` follows.
    """

    type: ClassVar[Literal["failover"]] = "failover"
    backend: str
    more: bool = True


class MemberSkippedEvent(StreamEvent, frozen=True):
    """A pool member was skipped because it accepts none of the session's tools. Ephemeral.

    Args:
        turn: Number of the turn, from 1.
        member: Name of the skipped backend.
        reason: The reason why the backend does not accept the tools, on one line.
    """

    type: ClassVar[Literal["member_skipped"]] = "member_skipped"
    turn: int
    member: str
    reason: str


class RequestSentEvent(_RoundEvent, frozen=True):
    """A request is about to be sent.

    Args:
        binding: The binding of the request.
        tools_off: True if the model may not call tools.
        omitted: Names of the parameters that the request omits because the provider rejected them.
    """

    type: ClassVar[Literal["request_sent"]] = "request_sent"
    binding: Binding
    tools_off: bool = False
    omitted: tuple[str, ...] = ()


class RequestRenderedEvent(StreamEvent, frozen=True):
    """The transcript of a request was rendered. Ephemeral.

    Args:
        turn, round: Numbers of the turn and of the round within it, from 1.
        binding: The binding for which the transcript was rendered.
        epoch: The epoch of the binding's lane, from 0.
        reused_bytes: Bytes at the start of the transcript that an earlier request of this epoch has already sent.
        total_bytes: Bytes of the complete transcript.
        report: The render report.
    """

    type: ClassVar[Literal["request_rendered"]] = "request_rendered"
    turn: int
    round: int
    binding: Binding
    epoch: int
    reused_bytes: int
    total_bytes: int
    report: Report


class RequestFailedEvent(StreamEvent, frozen=True):
    """A request failed. Ephemeral.

    Args:
        turn, round: Numbers of the turn and of the round within it, from 1.
        error: The HTTP status, or the class of the exception.
        cause: The kind of failure.
        retry_after: Seconds until the request is sent again; None if it is not sent again.
    """

    type: ClassVar[Literal["request_failed"]] = "request_failed"
    turn: int
    round: int
    error: str
    cause: Cause
    retry_after: float | None = None


class MessageEvent(_RoundEvent, frozen=True):
    """The model's complete message of a round. The message's calls follow as `ToolCallEvent`s. A summary has round 0.

    Args:
        message: The message; without blocks if the answer had no content.
        usage: Tokens of the round's request and answer.
        error: The error that interrupted the answer; empty if the answer was not interrupted.
        incomplete: The reason why the answer is incomplete although the provider ended it; None if it is complete.
        dropped: Number of items of the answer that the message does not contain, by the provider's name for them.
        more: True if another event with the same `seq` follows.
    """

    type: ClassVar[Literal["message"]] = "message"
    message: Message
    usage: Usage = Usage()
    error: str = ""
    incomplete: Cut | None = None
    dropped: dict[str, int] = {}
    more: bool = False


class ToolCallEvent(_RoundEvent, frozen=True):
    """The model called a tool.

    Args:
        call_id: The canonical id of the call.
        name: The tool's name, as the model wrote it.
        arguments: The complete arguments, as the model sent them, not validated yet.
        more: True if another event with the same `seq` follows.
    """

    type: ClassVar[Literal["tool_call"]] = "tool_call"
    call_id: CallId
    name: str
    arguments: dict[str, JsonValue]
    more: bool = False


class CallRepairedEvent(_RoundEvent, frozen=True):
    """A call's arguments were invalid and were repaired to the only valid interpretation, with which the call runs.

    Args:
        call_id: The canonical id of the call.
        name: The tool's name.
        repaired: The kind and the path of each repair.
    """

    type: ClassVar[Literal["call_repaired"]] = "call_repaired"
    call_id: CallId
    name: str
    repaired: tuple[Repair, ...]


class ToolProgressEvent(StreamEvent, frozen=True):
    """A running tool reported its progress. Ephemeral.

    Args:
        turn, round: Numbers of the turn and of the round within it, from 1.
        call_id: The canonical id of the call.
        name: The tool's name.
        message: The tool's description of its progress, shortened to 500 characters.
        fraction: The completed part of the work, from 0 to 1; None if the tool reported no fraction.
    """

    type: ClassVar[Literal["tool_progress"]] = "tool_progress"
    turn: int
    round: int
    call_id: CallId
    name: str
    message: str
    fraction: float | None = None


class ToolFailedEvent(StreamEvent, frozen=True):
    """A tool raised an exception or timed out. Ephemeral.

    Args:
        turn, round: Numbers of the turn and of the round within it, from 1.
        call_id: The canonical id of the call.
        error: The class of the exception.
    """

    type: ClassVar[Literal["tool_failed"]] = "tool_failed"
    turn: int
    round: int
    call_id: CallId
    error: str


class ToolResultsEvent(_RoundEvent, frozen=True):
    """All calls of the model's message have ended.

    Args:
        results: The outcomes of the calls, in call order.
        repeated: Number of calls detected as repeats of an earlier call with the same result.
    """

    type: ClassVar[Literal["tool_results"]] = "tool_results"
    results: tuple[CallEnd, ...]
    repeated: int = 0


class ApprovalRequestedEvent(_RoundEvent, frozen=True):
    """A call waits for approval.

    Args:
        pending: The call and its arguments, with a digest that a decision repeats.
    """

    type: ClassVar[Literal["approval_requested"]] = "approval_requested"
    pending: PendingCall


class ApprovalDecidedEvent(_RoundEvent, frozen=True):
    """A call was approved or denied.

    Args:
        verdict: The decision: `allow` or `deny`.
        pending: The call; None if the log no longer contains the call.
    """

    type: ClassVar[Literal["approval_decided"]] = "approval_decided"
    verdict: Verdict
    pending: PendingCall | None = None


class TurnPausedEvent(_RoundEvent, frozen=True):
    """The turn waits for results or approvals of `calls`. A `CompleteEvent` with the status `awaiting` follows.

    Args:
        calls: The ids of the calls, and whether each waits for a result or for an approval.
        more: True if another event with the same `seq` follows.
    """

    type: ClassVar[Literal["turn_paused"]] = "turn_paused"
    calls: tuple[AwaitedCall, ...]
    more: bool = True


class TurnResumedEvent(_TurnEvent, frozen=True):
    """The paused turn continues or is closed."""

    type: ClassVar[Literal["turn_resumed"]] = "turn_resumed"


class FormatRequestedEvent(_TurnEvent, frozen=True):
    """A message was added that tells the model the required format of its answer, or the error in its last answer.

    Args:
        message: The message, as the model receives it.
    """

    type: ClassVar[Literal["format_requested"]] = "format_requested"
    message: Message


class LaneRewrittenEvent(_TurnEvent, frozen=True):
    """A binding's lane begins a new epoch: its transcript is rendered again from the start.

    Args:
        binding: The binding of the lane.
        reason: `refusal` and `thinking` follow a rejected request; `media` replaces rejected attachments by notes.
        detail: A description for people: the provider's error message, or the change.
    """

    type: ClassVar[Literal["lane_rewritten"]] = "lane_rewritten"
    binding: Binding
    reason: EpochReason
    detail: str = ""


class TurnEndedEvent(_TurnEvent, frozen=True):
    """A turn ended, and all of its calls are closed. If it was the last turn of the ask, the terminal event follows.

    Args:
        status: The outcome; `handed_over` if another turn of the ask follows.
        cause: The failure or the limit that ended the turn; None for any other end.
        repaired: Repairs of an invalid structured answer that had exactly one valid interpretation.
        more: True if another event with the same `seq` follows.
    """

    type: ClassVar[Literal["turn_ended"]] = "turn_ended"
    status: TurnStatus
    cause: Cause | None = None
    repaired: tuple[Repair, ...] = ()
    more: bool = False


class SwitchQueuedEvent(_TurnEvent, frozen=True):
    """A switch to `target` was requested during a turn and is deferred until the turn ends."""

    type: ClassVar[Literal["switch_queued"]] = "switch_queued"
    target: str


class SwitchAppliedEvent(_TurnEvent, frozen=True):
    """The session switched to `target`, which serves the next turn."""

    type: ClassVar[Literal["switch_applied"]] = "switch_applied"
    target: str


class SwitchSupersededEvent(_TurnEvent, frozen=True):
    """The deferred switch to `target` was replaced by a later switch, to `replaced_by`."""

    type: ClassVar[Literal["switch_superseded"]] = "switch_superseded"
    target: str
    replaced_by: str


class SwitchFailedEvent(_TurnEvent, frozen=True):
    """The deferred switch to `target` could not be applied.

    Args:
        target: The requested backend or pool.
        error: The reason, as an error message.
    """

    type: ClassVar[Literal["switch_failed"]] = "switch_failed"
    target: str
    error: str


class ConfiguredEvent(_TurnEvent, frozen=True):
    """The system prompt or the tools changed. `digest` identifies the new combination."""

    type: ClassVar[Literal["configured"]] = "configured"
    digest: str


class ToolChangeDeferredEvent(StreamEvent, frozen=True):
    """Tools changed during the turn; requests declare the new tools only from the next ask on. Ephemeral.

    Args:
        turn, round: Numbers of the turn and of the round within it, from 1.
        reason: The reason why the turn keeps its tools, in words.
    """

    type: ClassVar[Literal["tool_change_deferred"]] = "tool_change_deferred"
    turn: int
    round: int
    reason: str


class ResultsTrimmedEvent(_TurnEvent, frozen=True):
    """From now on, transcripts show a mark in place of `count` results. The ledger keeps these results."""

    type: ClassVar[Literal["results_trimmed"]] = "results_trimmed"
    count: int


class CompactedEvent(_TurnEvent, frozen=True):
    """A summary replaced `replaced` messages of the history.

    Args:
        summary: The message that contains the summary.
        replaced: Number of messages that the summary replaced.
    """

    type: ClassVar[Literal["compacted"]] = "compacted"
    summary: Message
    replaced: int


class RewoundEvent(_TurnEvent, frozen=True):
    """The history was rewound to the end of the turn `to`; 0 is its beginning. The log keeps the later turns."""

    type: ClassVar[Literal["rewound"]] = "rewound"
    to: int


class EventsLostEvent(_TurnEvent, frozen=True):
    """The journal lost the events `first` to `last` after it had acknowledged them.

    The lost numbers are reused: this event takes the first, and later events follow.
    """

    type: ClassVar[Literal["events_lost"]] = "events_lost"
    first: int
    last: int


class ResyncEvent(StreamEvent, frozen=True):
    """The reader was too slow and missed `missed` events. `seq` is the last number that it received. Ephemeral."""

    type: ClassVar[Literal["resync"]] = "resync"
    seq: int
    missed: int


class CompleteEvent(DurableEvent, frozen=True):
    """The last event of an ask's stream if the ask's status is `complete`, `cancelled` or `awaiting`.

    Args:
        result: The value that `Session.ask` returns for this ask.
    """

    type: ClassVar[Literal["complete"]] = "complete"
    result: AskResult


class ErrorEvent(DurableEvent, frozen=True):
    """The last event of an ask's stream if the ask's status is `failed` or `interrupted`.

    Args:
        result: The value that `Session.ask` returns for this ask with `check=False`.
    """

    type: ClassVar[Literal["error"]] = "error"
    result: AskResult


class SubagentEvent(StreamEvent, frozen=True):
    """An event of a subagent's session, as the stream of its parent session contains it. Ephemeral in that stream.

    Args:
        path: The calls that lead to the subagent. The first of them is a call of the parent session.
        session: The subagent's session id.
        event: The subagent's event. Its `seq` is a position in the subagent's own log.
    """

    type: ClassVar[Literal["subagent"]] = "subagent"
    path: tuple[CallId, ...]
    session: str
    event: "OwnEvent"


TerminalEvent: TypeAlias = CompleteEvent | ErrorEvent
_Ask: TypeAlias = (
    AskStartedEvent
    | TurnStartedEvent
    | FailoverEvent
    | MemberSkippedEvent
    | TurnPausedEvent
    | TurnResumedEvent
    | TurnEndedEvent
)
_Round: TypeAlias = (
    RequestSentEvent
    | RequestRenderedEvent
    | RequestFailedEvent
    | TextEvent
    | ThinkingEvent
    | MessageEvent
    | FormatRequestedEvent
    | LaneRewrittenEvent
)
_Tool: TypeAlias = (
    ToolCallEvent
    | CallRepairedEvent
    | ToolProgressEvent
    | ToolFailedEvent
    | ToolResultsEvent
    | ApprovalRequestedEvent
    | ApprovalDecidedEvent
)
_Session: TypeAlias = (
    SessionOpenedEvent
    | SwitchQueuedEvent
    | SwitchAppliedEvent
    | SwitchSupersededEvent
    | SwitchFailedEvent
    | ConfiguredEvent
    | ToolChangeDeferredEvent
    | ResultsTrimmedEvent
    | CompactedEvent
    | RewoundEvent
    | EventsLostEvent
    | ResyncEvent
    | SessionClosedEvent
)
OwnEvent: TypeAlias = _Ask | _Round | _Tool | _Session | TerminalEvent
"""An event of the session itself rather than of a subagent."""

SessionEvent: TypeAlias = OwnEvent | SubagentEvent
"""Any stream event. The union is closed, so a `match` over an event can be exhaustive."""


def is_droppable(event: SessionEvent) -> bool:
    """Return True if a slow reader may miss the event, because the event is ephemeral or a subagent's."""
    return not isinstance(event, DurableEvent)
