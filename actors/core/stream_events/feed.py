"""What a caller of a session sees: the events of an ask's stream, and how an ask and a switch came out.

Text and thinking arrive as deltas: ephemeral, numbered within their round by `offset`, and some may be missing
when the reader is slow. What must not be missed is durable: it has a sequence number (`seq`), which is its place in
the session's log, and it was in the log before it was shown. An ask's stream ends with exactly one
`complete` or `error`.
"""

from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Protocol, TypeAlias

from msgspec import Struct

from actors.core.data.jsonio import JsonValue
from actors.core.log.events import SwitchApplied, SwitchFailed
from actors.core.policy.routing import SkippedMember
from actors.core.schemas.repair import Repair
from actors.core.transcript.diagnostics import Report
from actors.core.values.content import Message, ToolCall
from actors.core.values.identity import Binding, CallId
from actors.core.values.progress import Attempt, Cause, RefusedRequest
from actors.core.values.stream import Cut, LeftOut, Usage

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Value = TypeVar("Value", default=Any)  # Any: the value of an ask whose type is not known
else:
    from typing import TypeVar

    Value = TypeVar("Value")

AskStatus: TypeAlias = Literal["complete", "cancelled", "failed", "interrupted", "awaiting", "late"]
"""How an ask ended: `interrupted` is one that a restart of its session's actors ended.

Or `awaiting`: its turn waits for its caller; `late`: no turn waited for what was brought.
"""


class PendingCall(Struct, frozen=True):
    """A call that a turn waits for.

    Args:
        call: As the model made it; arguments with a slip are repaired.
        kind: `external`: the caller brings its result. `approval`: it runs if somebody approves of it.
        digest: Names its tool and arguments: that of a decision must be the same.
    """

    call: ToolCall
    kind: Literal["external", "approval"]
    digest: str


class TurnResult(Struct, Generic[Value], frozen=True):
    """How an ask came out, or where it stands.

    Args:
        text: The last word of the model.
        served_by: Binding of the last turn.
        attempts: Every turn of the ask, in order; more than one after failover.
        rounds: Requests that were answered or tried, over all turns, as `usage` is summed.
        why: One line on why it did not complete, else empty.
        finish: Why the model stopped, in its provider's word; None if the last round has no answer.
        cut: Why the last answer is not whole, though the ask is `complete`: `length` (a limit of tokens, a full
            window), `filter` (a filter or a refusal), `paused` (it would go on if asked again), `fault`, `empty` (twice
            running neither text nor a call), `unparsed` (a tool call as text, which was not run); else None.
        left_out: What the answers held and the history does not, over all rounds.
        awaiting: The calls that the turn waits for, if its status is `awaiting`: for results of external ones, which
            `Session.provide` takes, and for approvals, which `Session.decide` takes.
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
    served_by: Binding
    attempts: tuple[Attempt, ...]
    rounds: int
    usage: Usage
    why: str = ""
    finish: str | None = None
    cut: Cut | None = None
    left_out: LeftOut = ()
    awaiting: tuple[ToolCall, ...] = ()
    output: Value | None = None
    cost: float | None = None
    report: Report | None = None
    losses: dict[str, int] = {}
    refusals: tuple[RefusedRequest, ...] = ()
    skipped: tuple[SkippedMember, ...] = ()
    repaired: tuple[Repair, ...] = ()
    turn: int = 0
    turn_before: int | None = None


class Applied(Struct, frozen=True):
    """The switch is in force: the next ask goes to `target`."""

    target: str


class Deferred(Struct, frozen=True):
    """A turn is in flight; the switch takes effect when it has ended, and a `status` event will say so."""

    target: str
    turn: int


SwitchOutcome: TypeAlias = Applied | Deferred


class _Delta(Struct, frozen=True):
    text: str
    turn: int
    round: int
    offset: int


class TextEvent(_Delta, frozen=True):
    """A piece of the answer's text. Ephemeral."""

    type: ClassVar[Literal["text"]] = "text"


class ThinkingEvent(_Delta, frozen=True):
    """A piece of visible reasoning. Ephemeral."""

    type: ClassVar[Literal["thinking"]] = "thinking"


class ToolCallEvent(Struct, frozen=True):
    """A tool call, whole: the model asked for it and it is in the log. Durable. `more` as in `StatusEvent`."""

    type: ClassVar[Literal["tool_call"]] = "tool_call"
    call_id: CallId
    name: str
    arguments: dict[str, JsonValue]
    turn: int
    round: int
    seq: int
    more: bool = False


class Sent(Struct, frozen=True):
    """What a request carries, and in its report what the render did for it.

    The epoch is that of the binding's lane, from 0; of its `size` bytes with this request, `kept` were sent before and
    stay as they are.
    """

    binding: Binding
    epoch: int
    kept: int
    size: int
    report: Report


class CallProgress(Struct, frozen=True):
    """Which tool call says how far it has come, and what part of it is done, from 0 to 1, if it says that."""

    call_id: CallId
    tool: str
    fraction: float | None


class StatusEvent(Struct, frozen=True):
    """Something happened that the caller may want to know.

    `STATUSES` says what `status` may be. Those with a number (`seq`) are durable; `member_skipped`, `rendered`,
    `request_failed`, `tool_failed`, `tools_held`, `progress` and `resync` have none of their own. `more`: another event
    of the same number follows at once, so who reads on later does it from an earlier number. `tools_off` is that of a
    request, `cause` that of a turn or a request which failed, `repeated` how many calls of the results were noticed to
    repeat, `usage` that of the request which a model's message answers. `wait`: the seconds until a request that failed
    is sent again; None if it is not. `omitted` are the parameters that a request leaves out because its provider
    refused them. `repaired` are the slips of a call's arguments, or of the turn's answer, that were repaired.
    """

    type: ClassVar[Literal["status"]] = "status"
    status: str
    seq: int | None = None
    turn: int = 0
    round: int = 0
    detail: str = ""
    message: Message | None = None
    results: tuple[tuple[CallId, str], ...] = ()
    sent: Sent | None = None
    cut: Cut | None = None
    left_out: LeftOut = ()
    pending: PendingCall | None = None
    more: bool = False
    progress: CallProgress | None = None
    tools_off: bool = False
    cause: Cause | None = None
    repeated: int = 0
    usage: Usage | None = None
    wait: float | None = None
    omitted: tuple[str, ...] = ()
    repaired: tuple[Repair, ...] = ()


STATUSES: dict[str, str] = {
    "opened": "The session began; `detail` is its target. Only in a session's events.",
    "submitted": "An ask began; with the user's `message`.",
    "turn_started": "A turn began; `detail` is its binding.",
    "member_skipped": "A member of the pool takes none of the session's tools and is not asked; `detail` is its name "
    "and the reason. Ephemeral.",
    "request": "A request is about to be sent; `detail` is its binding. `tools_off` says that its model may call none, "
    "`omitted` what it leaves out because it was refused.",
    "rendered": "What that request carries (`request`), and what the render did for it. Ephemeral.",
    "request_failed": "The request failed: `detail` is its HTTP status or the class of the error, `cause` its kind. "
    "It is sent again after `wait` seconds, if that is given. Ephemeral.",
    "message": "The model's whole `message`, its request's `usage`; `detail` is the fault, if it was interrupted.",
    "progress": "A tool says how far a call has come (`progress`), in its words as `detail`. Ephemeral.",
    "tool_failed": "A tool raised, or took too long: `detail` is the class of the exception, `results` names the call. "
    "Ephemeral.",
    "call_repaired": "A call's arguments had a slip, such as a text for a number, and exactly one reading fits its "
    "tool: the call has those. `detail` is the tool, `repaired` says what was read otherwise.",
    "tool_results": "Every call of the message is closed; `results` says how each ended, in call order.",
    "rewritten": "The lane is rewritten; `detail` says why: a refusal, or what changed.",
    "media_replaced": "Notes stand for attachments that the provider refused, in this lane; `detail` is its words.",
    "turn_ended": "A turn ended; `detail` is its status, `cause` what kept its provider from answering, "
    "`repaired` what of the answer was read otherwise than it is written.",
    "failover": "The next turn of the ask is another backend's; `detail` is its name.",
    "approval_asked": "A call waits until somebody decides whether it may run; `pending` is the call.",
    "approval_decided": "Somebody decided; `detail` is `allow` or `deny`, `pending` the call.",
    "awaiting": "The turn waits for its caller; `results` are the calls, and how: `external` or `approval`.",
    "resumed": "The turn goes on, or is closed.",
    "instructed": "The model was told the form of its answer, or what its last answer lacks: the `message`.",
    "switch_held": "A switch waits for the ask's end; `detail` is its target.",
    "switch_applied": "The next ask goes to the target `detail`.",
    "switch_superseded": "A held switch to the target `detail` was replaced by a later one.",
    "switch_failed": "A held switch could not be applied; `detail` says why.",
    "configured": "Requests have another system prompt or offer other tools; `detail` is the digest of both.",
    "tools_held": "Tools that a call changed are declared by the next ask, not within this turn; `detail` says why. "
    "Ephemeral.",
    "shortened": "Results are shown as marks from here on; `detail` says how many. They stay in the ledger.",
    "compacted": "Turns of the history were replaced by a summary, the `message`; `detail` says how many messages.",
    "rewound": "The history ends where the turn `detail` ended; what was said since is in the log alone.",
    "events_lost": "The journal went back: `detail` names events that were acknowledged and are in it no more. Their "
    "numbers are given again, from this one on.",
    "closed": "The session ended. Only in a session's events.",
    "resync": "The reader was too slow; `detail` says what it missed. Ephemeral: `seq` is the last number it has seen.",
}
"""What may be in a `StatusEvent`, and what it says."""


class _Terminal(Struct, frozen=True):
    result: TurnResult
    seq: int


class ErrorEvent(_Terminal, frozen=True):
    """The ask failed, or was interrupted. Terminal, durable."""

    type: ClassVar[Literal["error"]] = "error"

    @property
    def why(self) -> str:
        """One line."""
        return self.result.why


class CompleteEvent(_Terminal, frozen=True):
    """The ask ended, complete or cancelled as was asked; or it is `awaiting`. Terminal, durable."""

    type: ClassVar[Literal["complete"]] = "complete"


class SubagentEvent(Struct, frozen=True):
    """An event of a session that a tool opened, as the stream of the session above shows it. Ephemeral there.

    Its `seq`, if it has one, is its number in its own session's log, where it can be read later.

    Args:
        path: The calls that lead to that session, from the one whose stream this is.
        session: That session's id.
        event: What its own reader is shown.
    """

    type: ClassVar[Literal["subagent"]] = "subagent"
    path: tuple[CallId, ...]
    session: str
    event: "OwnEvent"


OwnEvent: TypeAlias = TextEvent | ThinkingEvent | ToolCallEvent | StatusEvent | ErrorEvent | CompleteEvent
"""What happens in a session itself."""

SessionEvent: TypeAlias = OwnEvent | SubagentEvent


def switched(event: SwitchApplied | SwitchFailed, seq: int, turn: int) -> StatusEvent:
    """Return the status event for a held switch that was settled."""
    if isinstance(event, SwitchFailed):
        return StatusEvent("switch_failed", seq, turn, detail=event.why)
    return StatusEvent("switch_applied", seq, turn, detail=event.target)


def droppable(event: SessionEvent) -> bool:
    """Say whether a slow reader may miss an event: deltas, progress, what a render did, and all of subagents."""
    return isinstance(event, _Delta | SubagentEvent) or (isinstance(event, StatusEvent) and event.seq is None)


class Sink(Protocol):
    """Where an ask's events go. A reader that is gone or slow disturbs nobody: `put` never waits or raises."""

    @property
    def is_watched(self) -> bool:
        """Whether events are wanted as they come; if not, only the terminal one is."""

    def put(self, event: SessionEvent) -> None:
        """Show an event; a terminal one ends the stream."""

    def close(self, error: Exception | None = None) -> None:
        """End the stream, without a terminal event if none was shown. `error`: why, if not for the session's end."""
