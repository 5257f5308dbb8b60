"""Define the results of asks, tool calls and switches, for the methods of `Session` and for stream events."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias

from msgspec import Struct

from actors.core.data.jsonio import JsonValue
from actors.core.log.events import Verdict
from actors.core.policy.routing import SkippedMember
from actors.core.schemas.repair import Repair
from actors.core.transcript.diagnostics import Report
from actors.core.values.content import ToolCall
from actors.core.values.identity import Binding, CallId
from actors.core.values.progress import Attempt, RefusedRequest
from actors.core.values.stream import Cut, LeftOut, Usage

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
        error: One line that explains why the ask is not complete; empty for a complete ask.
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
