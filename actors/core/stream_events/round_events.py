"""Define the stream events of a round: its request, and the model's answer in fragments and as a complete message."""

from typing import ClassVar, Literal

from msgspec import field

from actors.core.log.events import EpochReason
from actors.core.stream_events.event_base import RoundEventBase, StreamEvent, TurnEventBase
from actors.core.transcript.diagnostics import Report
from actors.core.values.content import Message
from actors.core.values.identity import Binding
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
    """The transcript of a request was rendered. Ephemeral.

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
    """A request failed. Ephemeral.

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
