"""Define the stream events of a round: its request, the model's answer, and the tool calls from the call to the result.

The answer arrives in fragments and as a complete message. `Session.stream_text` and the command line assemble the text
of an answer from these events, so that every character appears exactly once. Deltas may have gaps.
"""

from typing import ClassVar, Literal

from msgspec import field

from actors.core.data.jsonio import JsonValue
from actors.core.log.events import EpochReason, Verdict
from actors.core.schemas.repair import Repair
from actors.core.stream_events.ask_events import (
    CallEnd,
    PendingCall,
    RoundEventBase,
    StreamEvent,
    TurnEventBase,
)
from actors.core.transcript.diagnostics import Report
from actors.core.values.content import Message
from actors.core.values.identity import Binding, CallId
from actors.core.values.progress import Cause
from actors.core.values.stream import Cut, Usage


class RequestSentEvent(RoundEventBase, frozen=True):
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
    """The transcript of a request was rendered. Not stored in the log.

    Args:
        turn, round: Numbers of the turn, and of the round in this turn, from 1.
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
    """A request failed. Not stored in the log.

    Args:
        turn, round: Numbers of the turn, and of the round in this turn, from 1.
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


class _Delta(StreamEvent, frozen=True):
    """The base class of the events that carry a fragment of an answer.

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
    """A fragment of the answer's text. Not stored in the log.

    Args:
        offset: Number of characters of text and reasoning in the round before this fragment.
    """

    type: ClassVar[Literal["text"]] = "text"


class ThinkingEvent(_Delta, frozen=True):
    """A fragment of the model's visible reasoning. Not stored in the log.

    Args:
        offset: Number of characters of text and reasoning in the round before this fragment.
    """

    type: ClassVar[Literal["thinking"]] = "thinking"


class MessageEvent(RoundEventBase, frozen=True):
    """The model's complete message of a round, or a summary (round 0). A `ToolCallEvent` follows for each of its calls.

    Args:
        message: The message. It has no blocks if the answer had no content.
        usage: Tokens of the round's request and answer.
        error: The error that interrupted the answer; empty if the answer was not interrupted.
        incomplete: The reason why the answer is incomplete although the provider ended it; None if it is complete.
        dropped: Number of items of the answer that the message does not contain, by the provider's item type.
        more: True if another event with the same `seq` follows.
    """

    type: ClassVar[Literal["message"]] = "message"
    message: Message
    usage: Usage = Usage()
    error: str = ""
    incomplete: Cut | None = None
    dropped: dict[str, int] = field(default_factory=dict[str, int])
    more: bool = False


class FormatRequestedEvent(TurnEventBase, frozen=True):
    """A message was added that tells the model the required format of its answer, or the error in its last answer.

    Args:
        message: The message, as the model receives it.
    """

    type: ClassVar[Literal["format_requested"]] = "format_requested"
    message: Message


class LaneRewrittenEvent(TurnEventBase, frozen=True):
    """The transcript for a binding is rendered again from the start: its lane begins a new epoch.

    Args:
        binding: The binding of the lane.
        reason: The reason. With `refusal` and `thinking`, a request was rejected. With `media`, attachments were
            rejected, and notes replace them.
        detail: A description for people: the provider's error message, or the change.
    """

    type: ClassVar[Literal["lane_rewritten"]] = "lane_rewritten"
    binding: Binding
    reason: EpochReason
    detail: str = ""


class ToolCallEvent(RoundEventBase, frozen=True):
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


class CallRepairedEvent(RoundEventBase, frozen=True):
    """A call's invalid arguments were repaired, because they had one valid interpretation. The call then runs.

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
    """A running tool reported its progress. Not stored in the log.

    Args:
        turn, round: Numbers of the turn, and of the round in this turn, from 1.
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
    """A tool raised an exception or timed out. Not stored in the log.

    Args:
        turn, round: Numbers of the turn, and of the round in this turn, from 1.
        call_id: The canonical id of the call.
        error: The class of the exception.
    """

    type: ClassVar[Literal["tool_failed"]] = "tool_failed"
    turn: int
    round: int
    call_id: CallId
    error: str


class ToolResultsEvent(RoundEventBase, frozen=True):
    """All calls of the model's message have ended.

    Args:
        results: The outcomes of the calls, in call order.
        repeated: Number of calls that repeat an earlier call and have the same result.
    """

    type: ClassVar[Literal["tool_results"]] = "tool_results"
    results: tuple[CallEnd, ...]
    repeated: int = 0


class ApprovalRequestedEvent(RoundEventBase, frozen=True):
    """A call waits for approval.

    Args:
        pending: The call and its arguments, with a digest that the caller's decision should contain.
    """

    type: ClassVar[Literal["approval_requested"]] = "approval_requested"
    pending: PendingCall


class ApprovalDecidedEvent(RoundEventBase, frozen=True):
    """A call was approved or denied.

    Args:
        verdict: The decision: `allow` or `deny`.
        pending: The call; None if the log no longer contains the call.
    """

    type: ClassVar[Literal["approval_decided"]] = "approval_decided"
    verdict: Verdict
    pending: PendingCall | None = None


class RoundTextAssembler:
    """Assembles the text of each round, even if deltas were missed.

    A gap is recognised by the offsets of the deltas. After a gap, the remaining deltas of the round are ignored, and
    the missing text comes from the complete message at the end of the round.
    """

    def __init__(self) -> None:
        self._returned = ""
        self._next = 0
        self._gap = False

    def add_delta(self, event: TextEvent | ThinkingEvent) -> str:
        """Return the text to show for this delta; empty for thinking and after a gap."""
        self._gap = self._gap or event.offset != self._next
        self._next = event.offset + len(event.text)
        if isinstance(event, ThinkingEvent) or self._gap:
            return ""
        self._returned += event.text
        return event.text

    def end_round(self, text: str, *, interrupted: bool) -> str:
        """End the round, and return the part of its text that `add_delta` has not returned.

        `text` is the complete text of the message. If the answer was `interrupted` and no delta was missed, the result
        is empty.
        """
        returned, gap = self._returned, self._gap
        self._returned, self._next, self._gap = "", 0, False
        return text[len(returned) :] if text.startswith(returned) and (gap or not interrupted) else ""
