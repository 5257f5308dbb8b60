"""Define the stream events of an ask and its turns, from the user's message to the terminal event, and their results.

The methods of `Session` return the results of asks, tool calls and switches, and stream events contain them. Each ask's
stream ends with exactly one `CompleteEvent` or `ErrorEvent`. An ask has one turn, or several after failover.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeAlias

from msgspec import Struct

from actors.core.data.jsonio import JsonValue
from actors.core.log.events import TurnStatus, Verdict
from actors.core.policy.routing import SkippedMember
from actors.core.schemas.repair import Repair
from actors.core.transcript.diagnostics import Report
from actors.core.values.content import Message, ToolCall
from actors.core.values.identity import Binding, CallId
from actors.core.values.progress import Attempt, Cause, RefusedRequest
from actors.core.values.stream import Cut, LeftOut, Usage


def _event_type(name: str) -> str:
    """Return the `type` of an event class: `_event_type("ToolCallEvent") == "tool_call"`."""
    words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    return words.lstrip("_").removesuffix("_event")


class StreamEvent(Struct, frozen=True, tag_field="type", tag=_event_type):
    """The base class of all stream events."""


class DurableEvent(StreamEvent, frozen=True):
    """The base class of the events that the session's log stores.

    Args:
        seq: Position in the session's log, from 1. If one log record yields several events, they share this position.
    """

    seq: int


class TurnEventBase(DurableEvent, frozen=True):
    """The base class of durable events that belong to a turn.

    Args:
        turn: Number of the turn, from 1; 0 before the session's first turn.
    """

    turn: int


class RoundEventBase(TurnEventBase, frozen=True):
    """The base class of durable events that belong to a round (one request and its answer).

    Args:
        round: Number of the round within the turn, from 1; 0 for a summary.
    """

    round: int


if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Value = TypeVar("Value", default=Any)  # Any: the output of an ask whose output type is unknown
else:
    from typing import TypeVar

    Value = TypeVar("Value")

AskStatus: TypeAlias = Literal["complete", "cancelled", "failed", "interrupted", "awaiting", "late"]
"""The status of an ask. `interrupted` means that a restart of the session's actors ended the ask. `awaiting` means that
the ask's turn waits for results or approvals. `late` means that no turn waited for the provided results any more.
"""

CallOutcome: TypeAlias = Literal[
    "returned", "failed", "denied", "refused", "cancelled", "never_started", "outcome_unknown"
]
"""The outcome of a tool call.

`refused` means that the call was invalid, so its tool did not run. `never_started` means that the turn ended before the
tool started. `outcome_unknown` means that the session crashed while the tool ran, so the call may have taken effect.
"""


class PendingCall(Struct, frozen=True):
    """A call that a turn waits for, together with its arguments.

    Args:
        call: The model's call, with repaired arguments if they were malformed.
        kind: `external` if the caller provides the result; `approval` if the call runs once it is approved.
        digest: Digest of the tool and the arguments. A decision contains the digest of the call that was reviewed.
    """

    call: ToolCall
    kind: Literal["external", "approval"]
    digest: str


class AwaitedCall(Struct, frozen=True):
    """The id of a call that a turn waits for.

    Args:
        call_id: The canonical id of the call, as in `ToolCallEvent`.
        kind: `external` if the turn waits for a result, `approval` if it waits for an approval.
    """

    call_id: CallId
    kind: Literal["external", "approval"]


class CallEnd(Struct, frozen=True):
    """The outcome of one call of a batch.

    Args:
        call_id: The canonical id of the call, as in `ToolCallEvent`.
        outcome: The outcome of the call; `returned` is the only success.
    """

    call_id: CallId
    outcome: CallOutcome


class ApprovalDecision(Struct, frozen=True):
    """A caller's decision about a call that waits for approval.

    Args:
        verdict: `allow` runs the call; `deny` answers the call without running its tool. An external call may also be
            denied.
        reason: The reason for the decision. The model receives the reason for a denial.
        arguments: Arguments that replace the model's arguments. `None` keeps the model's arguments.
        digest: `PendingCall.digest` of the reviewed call. If the call's arguments have changed since, the decision is
            rejected. `None` skips this check.
    """

    verdict: Verdict
    reason: str = ""
    arguments: Mapping[str, JsonValue] | None = None
    digest: str | None = None


CallResults: TypeAlias = Mapping[str, object] | Mapping[CallId, object]
"""Results of external calls, by call id. Each is a return value, or an exception if the call failed."""
Approvals: TypeAlias = Mapping[str, ApprovalDecision] | Mapping[CallId, ApprovalDecision]
"""Decisions about calls that wait for approval, by call id."""


class AskResult(Struct, Generic[Value], frozen=True):
    """The result of an ask, either final or `awaiting`.

    Args:
        text: The text of the model's last message.
        status: The outcome of the ask. `awaiting` is not final: the turn continues once the caller has provided results
            or approvals.
        binding: The binding of the last turn: its backend, dialect, account and model.
        attempts: Every turn of the ask and every retried request, in order.
        rounds: The number of rounds in all turns.
        usage: The tokens of all rounds together.
        error: One line that explains why the ask is not complete. For a complete ask, it is empty, unless the calls of
            the model's last message did not run because the limit of rounds was reached.
        finish_reason: The provider's finish reason; None if the last round has no answer.
        incomplete: The reason why the last answer is incomplete although the ask is `complete`: `length` (a token limit
            or a full context window), `filter` (a filter or a refusal), `paused` (the model would continue on request),
            `fault` (an error of the provider or the model), `empty` (neither text nor a call, twice), `unparsed` (a
            tool call written as text, which was not run). None if the answer is complete.
        dropped: The number of items in the ask's answers that the history does not contain, by kind.
        pending_calls: The calls that the turn waits for, if the status is `awaiting`. Pass results of external calls to
            `Session.ask` as `results`, and decisions as `approvals`.
        output: The answer as a value of the type that `output=` requires; None unless the ask is `complete`.
        cost: The cost of `usage` over all turns; None if a price is missing.
        report: The render report of the last request; None if no request was rendered.
        losses: The number of blocks and settings that the last request omitted, by kind, as in `Preview.losses`.
        refusals: Requests of the ask that a provider or the judge refused, in order, even if the ask completed.
        skipped: Members of the target's pool that were not used, because they accept none of the session's tools.
        repaired: Repairs of malformed calls and of the answer. Only JSON with one valid interpretation is repaired.
        turn: The number of the ask's last turn, for `Session.rewind`; 0 if the ask had no turn.
        turn_before: The number of the last turn before the ask, for `Session.rewind`; None if the history cannot be
            rewound to a turn before the ask.

    A result that is read from the log later has no `output`, `cost`, `report`, `losses`, `refusals`, `skipped`,
    `repaired` or `turn_before`.
    """

    text: str
    status: AskStatus
    binding: Binding
    attempts: tuple[Attempt, ...]
    rounds: int
    usage: Usage
    error: str = ""
    finish_reason: str | None = None
    incomplete: Cut | None = None
    dropped: LeftOut = ()
    pending_calls: tuple[ToolCall, ...] = ()
    output: Value | None = None
    cost: float | None = None
    report: Report | None = None
    losses: dict[str, int] = {}
    refusals: tuple[RefusedRequest, ...] = ()
    skipped: tuple[SkippedMember, ...] = ()
    repaired: tuple[Repair, ...] = ()
    turn: int = 0
    turn_before: int | None = None


class SwitchOutcome(Struct, frozen=True):
    """The outcome of a switch or a configuration change.

    Args:
        target: The target of the next ask.
        status: `applied` if the change is in force. `queued` if a turn is in flight: the change takes effect when the
            turn has ended, and a stream event reports the outcome.
        turn: Number of the turn in flight; 0 if the change is applied.
    """

    target: str
    status: Literal["applied", "queued"]
    turn: int = 0


class AskStartedEvent(TurnEventBase, frozen=True):
    """An ask began with the user's message.

    Args:
        turn: Number of the ask's first turn.
        message: The user's message.
        key: The idempotency key; empty if the caller passed none.
    """

    type: ClassVar[Literal["ask_started"]] = "ask_started"
    message: Message
    key: str = ""


class TurnStartedEvent(TurnEventBase, frozen=True):
    """A turn began. `binding` serves the turn until it ends."""

    type: ClassVar[Literal["turn_started"]] = "turn_started"
    binding: Binding


class FailoverEvent(TurnEventBase, frozen=True):
    """The ask continues on `backend` in a new turn, whose `TurnStartedEvent` follows.

    Args:
        turn: Number of the new turn.
        backend: Name of the backend that continues the ask.
        more: True if another event with the same `seq` follows.
    """

    type: ClassVar[Literal["failover"]] = "failover"
    backend: str
    more: bool = True


class MemberSkippedEvent(StreamEvent, frozen=True):
    """A pool member was skipped because it accepts none of the session's tools. Not stored in the log.

    Args:
        turn: Number of the turn, from 1.
        member: Name of the skipped backend.
        reason: The reason why the backend does not accept the tools, on one line.
    """

    type: ClassVar[Literal["member_skipped"]] = "member_skipped"
    turn: int
    member: str
    reason: str


class TurnPausedEvent(RoundEventBase, frozen=True):
    """The turn waits for results or approvals of `calls`. A `CompleteEvent` with the status `awaiting` follows.

    Args:
        calls: The ids of the calls, and whether each waits for a result or for an approval.
        more: True if another event with the same `seq` follows.
    """

    type: ClassVar[Literal["turn_paused"]] = "turn_paused"
    calls: tuple[AwaitedCall, ...]
    more: bool = True


class TurnResumedEvent(TurnEventBase, frozen=True):
    """The paused turn continues or is closed."""

    type: ClassVar[Literal["turn_resumed"]] = "turn_resumed"


class TurnEndedEvent(TurnEventBase, frozen=True):
    """A turn ended, and all of its calls are closed. After the ask's last turn, the terminal event follows.

    Args:
        status: The outcome; `handed_over` if another turn of the ask follows.
        cause: The failure or the limit that ended the turn; None if the turn ended for another reason.
        repaired: The repairs of an invalid structured answer. Only an answer with exactly one valid interpretation is
            repaired.
        more: True if another event with the same `seq` follows.
    """

    type: ClassVar[Literal["turn_ended"]] = "turn_ended"
    status: TurnStatus
    cause: Cause | None = None
    repaired: tuple[Repair, ...] = ()
    more: bool = False


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


TerminalEvent: TypeAlias = CompleteEvent | ErrorEvent
"""The last event of an ask's stream."""
