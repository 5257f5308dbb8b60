"""Define the catalogue of log events. A session stores nothing but its log.

History, ledger, lanes, the turn number and the selected binding are folds of these events. The catalogue is closed and
versioned. An event is durable before any of its effects is visible outside.

    Opened, Closed                          first and last event of a session
    AskStarted                              a user message; begins an ask
    TurnStarted, TurnEnded                  a turn on one binding
    FormatRequested                         a message to the model about the form of its answer or its lack of content
    RequestSent, RoundEnded                 a round: written before the request's first byte; the model's message
    Scheduled, Started                      a tool call before its completion
    Returned, Failed, Denied, Refused       real completion of a tool call
    Cancelled                               a tool call closed without a real completion
    SubagentUsage                           a subagent's share of the budget of its session
    ApprovalAsked, ApprovalDecided          a call that needs an approval, and the decision
    TurnPaused, TurnResumed                 a turn waits for its caller, and continues
    SwitchQueued, SwitchApplied, SwitchSuperseded, SwitchFailed
    Configured                              a new system prompt or new tools
    ResultsTrimmed, Compacted               a shorter history: results replaced by marks, turns by a summary
    Rewound                                 a shorter history: its last turns removed
    EpochBegan                              a lane is rewritten
    EventsLost                              acknowledged events that the journal's storage no longer has
"""

from typing import Final, Literal, TypeAlias

from actors.core.data.jsonio import JsonObject
from actors.core.data.record import StoredRecord
from actors.core.log.call_events import CallEvent, Reason, ToolCallRecord
from actors.core.log.event_base import EventBase
from actors.core.schemas.repair import Repair
from actors.core.settings.asking import Asked
from actors.core.settings.labels import Metadata
from actors.core.settings.spending import Budget, Used
from actors.core.values.identity import Binding, CallId
from actors.core.values.intake import ImportReport
from actors.core.values.packed import Packed
from actors.core.values.progress import LEAVING, AskProgress, Attempt, Cause, TurnProgress
from actors.core.values.stream import Cut, LeftOut, Usage

VERSION: Final = 1

EpochReason: TypeAlias = Literal["compaction", "thinking", "refusal", "configured", "media", "rewind"]
"""The reason for rewriting a lane."""

Short: TypeAlias = Literal["repeated", "large", "old"]
"""The reason for a mark: the call was repeated later, the result was long, or space was needed."""

TurnStatus: TypeAlias = Literal["complete", "cancelled", "failed", "interrupted", "handed_over"]
"""The outcome of a turn. `handed_over`: a turn on another binding continues the same ask."""

Verdict: TypeAlias = Literal["allow", "deny"]
"""The decision on a call that needed approval."""


class AskKey(StoredRecord, frozen=True):
    """The idempotency key of an ask.

    Args:
        name: The key that the caller passed.
        digest: A digest of the message and of the schema of the answer.
    """

    name: str
    digest: str


class AskStarted(EventBase, frozen=True):
    """A user message started an ask.

    Args:
        ask: Number of the ask, from 1.
        message: The user message.
        asked: Settings of this ask alone.
        key: The idempotency key; None if the caller passed none.
    """

    ask: int
    message: Packed
    asked: Asked | None = None
    key: AskKey | None = None


class TurnStarted(EventBase, frozen=True):
    """A turn began on this binding. A further turn of an ask is a failover, or continues an interrupted ask.

    Args:
        turn: Number of the turn.
        ask: Number of the ask; 0 for a turn that compacts the history at the program's request.
        binding: The binding of the turn.
    """

    turn: int
    ask: int
    binding: Binding


class OmittedParameter(StoredRecord, frozen=True):
    """A parameter that a request omits because its provider refused it.

    Args:
        name: The parameter's name (`actors.adapters.settings`).
        only_value: True if the provider rejected only the value; False if it does not support the parameter.
    """

    name: str
    only_value: bool = False


class RequestSent(EventBase, frozen=True):
    """A request is about to be sent. Durable before the first byte; the binding's lane then adopts its next version.

    Args:
        turn: Number of the turn.
        round: Number of the round within the turn, from 1.
        binding: The binding of the request.
        epoch: Number of the lane's epoch, from 0.
        cursor: Messages of the history that the lane has rendered, this request included.
        seals: Synthetic results that the request carries for the first time, as (call id, reason).
        tools_off: True if the request turns tools off to get a final text.
        aside: True for a request for a summary. No request continues it, so its lane stays unchanged.
        omitted: Requested parameters that are left out because the provider refused them.
    """

    turn: int
    round: int
    binding: Binding
    epoch: int
    cursor: int
    seals: tuple[tuple[CallId, Reason], ...] = ()
    tools_off: bool = False
    aside: bool = False
    omitted: tuple[OmittedParameter, ...] = ()


class RoundEnded(EventBase, frozen=True):
    """A round ended with the model's message, or with its usable part and the `fault` that interrupted it.

    Args:
        turn, round: Numbers of the turn and the round.
        message: The message; None if it would be empty.
        usage: Tokens of the round.
        finish: The provider's finish reason.
        fault: The error that interrupted the answer.
        calls: Canonical ids used by the round, those of dropped calls included.
        left_out: Parts of the answer that the message lacks.
        cut: Why an answer that arrived completely is incomplete.
    """

    turn: int
    round: int
    message: Packed | None
    usage: Usage = Usage()
    finish: str | None = None
    fault: str | None = None
    calls: int = 0
    left_out: LeftOut = ()
    cut: Cut | None = None


class FormatRequested(EventBase, frozen=True):
    """A message told the model the required format of its answer, or that its last answer had no content or another
    format.
    """

    ask: int
    message: Packed


class SubagentUsage(EventBase, frozen=True):
    """A subagent's session ended. `used` is its share of this session's budget."""

    call_id: CallId
    session: str
    used: Used


class ApprovalAsked(EventBase, frozen=True):
    """A call waits for approval. `digest` identifies its tool and arguments."""

    call_id: CallId
    tool: str
    digest: str


class ApprovalDecided(EventBase, frozen=True):
    """A call that waited for approval was allowed or denied, for this tool and these arguments.

    Args:
        call_id: The call.
        tool, digest: Those of `ApprovalAsked`.
        verdict: The decision.
        reason: The reason, in free text.
        arguments: Arguments that replace the model's; None to keep those.
    """

    call_id: CallId
    tool: str
    digest: str
    verdict: Verdict
    reason: str = ""
    arguments: JsonObject | None = None


class TurnPaused(EventBase, frozen=True):
    """A turn waits for its caller; all other calls of its batch have ended.

    Args:
        turn: Number of the turn.
        external: Calls whose results the caller supplies, in call order.
        approvals: Calls that run once they are approved, in call order.
        turn_so_far, ask_so_far: The progress from which the turn continues.
        seconds: Time since the turn began or resumed, if the session's budget counts it.
    """

    turn: int
    external: tuple[CallId, ...]
    approvals: tuple[CallId, ...] = ()
    turn_so_far: TurnProgress = TurnProgress()
    ask_so_far: AskProgress = AskProgress()
    seconds: float = 0.0

    @property
    def kinds(self) -> tuple[tuple[str, tuple[CallId, ...]], ...]:
        """The calls by the kind of input they wait for."""
        return ("external", self.external), ("approval", self.approvals)


class TurnResumed(EventBase, frozen=True):
    """A paused turn continues or is closed; no call waits for the caller any more."""

    turn: int


class SwitchQueued(EventBase, frozen=True):
    """A switch was requested during a turn and is deferred to its end."""

    turn: int
    target: str


class SwitchApplied(EventBase, frozen=True):
    """The session's next turn goes to `target`. `held` is True if the switch was deferred."""

    target: str
    held: bool = False


class SwitchSuperseded(EventBase, frozen=True):
    """A later switch replaced a deferred one before it was applied."""

    target: str
    by: str


class SwitchFailed(EventBase, frozen=True):
    """A deferred switch failed at the end of its turn, because its target is no longer valid."""

    target: str
    why: str


class Configured(EventBase, frozen=True):
    """The session has another system prompt or other tools from the next turn on.

    Args:
        system: The system prompt.
        tools: Names of the tools.
        preamble: Digest of the system prompt and of the tools' declarations in requests. The tools' code is not logged.
    """

    system: str | None
    tools: tuple[str, ...]
    preamble: str


class ResultsTrimmed(EventBase, frozen=True):
    """Later transcripts show marks in place of these calls' results. The ledger keeps the results."""

    results: tuple[tuple[CallId, Short], ...]


class Compacted(EventBase, frozen=True):
    """A summary, which is a normal message, replaced messages `start` to `stop` (excluded) of the history."""

    start: int
    stop: int
    summary: Packed


class Rewound(EventBase, frozen=True):
    """The history was cut after `turn`; 0 means the opening. The log and the ledger keep the removed turns."""

    turn: int


class EpochBegan(EventBase, frozen=True):
    """The next request on this binding rewrites its lane.

    Args:
        binding: The binding.
        epoch: Number of the new epoch.
        reason: The reason code.
        plain: True if the epoch renders conservatively.
        why: The reason as text for people.
        media: Names (`content_name`) of attachments that the provider refused. A note replaces each of them in this
            lane; the history and the ledger keep them.
    """

    binding: Binding
    epoch: int
    reason: EpochReason
    plain: bool = False
    why: str = ""
    media: tuple[str, ...] = ()


class TurnEnded(EventBase, frozen=True):
    """A turn ended; all its calls are closed.

    Args:
        turn: Number of the turn.
        status: The outcome.
        why: One line for people.
        cause: The failure that ended the turn, if any.
        retried: Failed requests of the turn that were retried.
        wait: Seconds before the last request, if it was a retry.
        seconds: Time since the turn began or resumed, if the session's budget counts it.
        repaired: Malformed parts of the answer that had exactly one interpretation in the required format.
    """

    turn: int
    status: TurnStatus
    why: str = ""
    cause: Cause | None = None
    retried: tuple[Attempt, ...] = ()
    wait: float = 0.0
    seconds: float = 0.0
    repaired: tuple[Repair, ...] = ()

    @property
    def ends_ask(self) -> bool:
        """True if no further turn continues the ask: the turn was not handed over, and its host did not end."""
        return self.status not in ("handed_over", "interrupted") and self.cause != LEAVING


class EventsLost(EventBase, frozen=True):
    """The storage lost acknowledged events: `first` to `last` are in no log any more.

    This event has the number `first`, and later events reuse the following numbers. Lost calls may have run, so their
    ids are not reused.
    """

    first: int
    last: int


class Closed(EventBase, frozen=True):
    """The session ended."""

    why: str = ""


class Opened(EventBase, frozen=True):
    """A session began, possibly with an imported history.

    Args:
        session: The session's id.
        target: The selected target.
        system: The system prompt.
        messages: The normal messages of the imported history.
        known: Records of the calls in these messages.
        calls: Canonical ids that these messages use.
        report: The repairs and losses of the import.
        key: Distinguishes the session from others that had or have the same id.
        tenant: The session's tenant.
        budget: The session's own budget.
        preamble: As in `Configured`.
        above: The `key` of the parent session, if a call of it opened this session as a subagent.
        title, metadata: The host's data for its lists of sessions.
    """

    session: str
    target: str
    system: str | None = None
    messages: tuple[Packed, ...] = ()
    known: tuple[ToolCallRecord, ...] = ()
    calls: int = 0
    report: ImportReport = ImportReport()
    key: str = ""
    tenant: str = ""
    budget: Budget | None = None
    preamble: str = ""
    above: str = ""
    title: str = ""
    metadata: Metadata = ()


SwitchEvent: TypeAlias = SwitchQueued | SwitchApplied | SwitchSuperseded | SwitchFailed
AskEvent: TypeAlias = (
    AskStarted
    | FormatRequested
    | TurnStarted
    | RequestSent
    | RoundEnded
    | SubagentUsage
    | EpochBegan
    | TurnEnded
    | ApprovalAsked
    | TurnPaused
    | ApprovalDecided
    | TurnResumed
)
HistoryEvent: TypeAlias = ResultsTrimmed | Compacted | Rewound
"""What makes the history shorter."""
LogEvent: TypeAlias = (
    Opened | AskEvent | CallEvent | SwitchEvent | Configured | HistoryEvent | EventsLost | Closed
)
