"""How an ask came out and what its turn waits for; what a caller decides about a call; how a switch came out."""

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

    Value = TypeVar("Value", default=Any)  # Any: the value of an ask whose type is not known
else:
    from typing import TypeVar

    Value = TypeVar("Value")

AskStatus: TypeAlias = Literal["complete", "cancelled", "failed", "interrupted", "awaiting", "late"]
"""How an ask ended: `interrupted` is one that a restart of its session's actors ended.

Or `awaiting`: its turn waits for its caller; `late`: no turn waited for the results.
"""


class PendingCall(Struct, frozen=True):
    """A call that a turn waits for.

    Args:
        call: As the model made it; arguments with a slip are repaired.
        kind: `external`: the caller passes its result. `approval`: it runs if somebody approves of it.
        digest: Names its tool and arguments: that of a decision must be the same.
    """

    call: ToolCall
    kind: Literal["external", "approval"]
    digest: str


class ApprovalDecision(Struct, frozen=True):
    """What a caller decides about a call that waits for approval.

    Args:
        verdict: `allow` runs the call, `deny` answers it without running it. An external call can be denied too.
        reason: Why. The model is told the reason of a denial.
        arguments: Arguments to run the call with in place of the model's.
        digest: `PendingCall.digest` of the call that was looked at. If the call has other arguments, the decision is
            refused. None checks nothing.
    """

    verdict: Verdict
    reason: str = ""
    arguments: Mapping[str, JsonValue] | None = None
    digest: str | None = None


CallResults: TypeAlias = Mapping[str, object] | Mapping[CallId, object]
"""What external calls returned, by call id; or the exceptions with which they failed."""
Approvals: TypeAlias = Mapping[str, ApprovalDecision] | Mapping[CallId, ApprovalDecision]
"""Decisions about calls, by call id."""


class AskResult(Struct, Generic[Value], frozen=True):
    """How an ask came out, or where it stands.

    Args:
        text: The last word of the model.
        binding: Binding of the last turn.
        attempts: Every turn of the ask, in order; more than one after failover.
        rounds: Requests that were answered or tried, over all turns, as `usage` is summed.
        error: One line on why it did not complete, else empty.
        finish_reason: Why the model stopped, in its provider's word; None if the last round has no answer.
        incomplete: Why the last answer is not whole, though the ask is `complete`: `length` (a limit of tokens, a full
            window), `filter` (a filter or a refusal), `paused` (it would go on if asked again), `fault`, `empty` (twice
            running neither text nor a call), `unparsed` (a tool call as text, which was not run); else None.
        dropped: What the answers held and the history does not, over all rounds.
        pending_calls: The calls that the turn waits for, if its status is `awaiting`. `Session.ask` takes the
            results of external calls in `results`, and decisions about the others in `approvals`.
        output: The answer as a value of the type that was asked for with `output=`; None unless it is `complete`.
        cost: What `usage` costs by the prices that were given, summed over turns; None where one is not known.
        report: What the render of the last request did, and why; None if there was none.
        losses: What the last request did not show or ask for, by kind, as in `Preview.losses`.
        refusals: Requests of the ask that a provider or the judge refused, in order, also where the ask completed.
        skipped: Members of the target's pool that take none of the session's tools, and so were not asked.
        repaired: Slips of the ask's calls and of its answer that were repaired, since exactly one reading fits.
        turn: The number of the ask's last turn, which `Session.rewind` takes; 0 if it had none.
        turn_before: The last turn before the ask that `Session.rewind` takes; None if there is none.

    A result that is read from the log later has no value, cost, report, losses, refusals, skipped members, repairs or
    turn before.
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
    """How a session answers a switch or a change of its configuration.

    Args:
        target: The target of the next ask.
        status: `applied`: it is in force. `queued`: a turn is in flight, so it takes effect when that turn has ended,
            and a stream event reports its outcome.
        turn: Number of the turn in flight; 0 if the switch is applied.
    """

    target: str
    status: Literal["applied", "queued"]
    turn: int = 0
