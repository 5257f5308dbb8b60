"""Define the stream events of tool calls, from the model's call to the results, with approvals in between."""

from typing import ClassVar, Literal

from actors.core.data.jsonio import JsonValue
from actors.core.log.events import Verdict
from actors.core.schemas.repair import Repair
from actors.core.stream_events.event_base import RoundEventBase, StreamEvent
from actors.core.stream_events.results import CallEnd, PendingCall
from actors.core.values.identity import CallId


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
    """A running tool reported its progress. Ephemeral.

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
    """A tool raised an exception or timed out. Ephemeral.

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
