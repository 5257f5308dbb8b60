"""Define the catalogue of log events. The log is all that a session stores.

History, ledger, lanes, the turn number and the selected binding are computed from these events. The catalogue is closed
and versioned. An event is durable before any of its effects is visible outside.

    Opened, Closed                          the first and the last event of a session
    AskStarted                              a user message begins an ask
    TurnStarted, TurnEnded                  a turn on one binding
    FormatRequested                         a message asks the model for another format, or for an answer with content
    RequestSent, RoundEnded                 a round: written before the request's first byte; the model's message
    Scheduled, Started                      a tool call before its completion
    Returned, Failed, Denied, Refused       a real completion of a tool call
    Cancelled                               a tool call is closed without a real completion
    SubagentUsage                           a subagent's usage, counted in its parent session's budget
    ApprovalAsked, ApprovalDecided          a call needs an approval; the decision
    TurnPaused, TurnResumed                 a turn waits for its caller; the turn continues
    SwitchQueued, SwitchApplied, SwitchSuperseded, SwitchFailed
    Configured                              a new system prompt or new tools
    ResultsTrimmed, Compacted               a shorter history: placeholders replace results; a summary replaces turns
    Rewound                                 a shorter history: its last turns are removed
    EpochBegan                              a lane is rewritten
    EventsLost                              the journal's storage has lost acknowledged events
"""

from typing import Final, Literal, TypeAlias

from actors.core.data.jsonio import JsonObject
from actors.core.data.record import StoredRecord
from actors.core.log.call_events import CallEvent, EventBase, Reason, ToolCallRecord
from actors.core.schemas.repair import Repair
from actors.core.settings.asking import StoredAskSettings
from actors.core.settings.labels import Metadata
from actors.core.settings.spending import Budget, SessionUsage
from actors.core.values.identity import Binding, CallId
from actors.core.values.intake import ImportReport
from actors.core.values.packed import Packed
from actors.core.values.progress import LEAVING, AskProgress, Attempt, Cause, TurnProgress
from actors.core.values.stream import Cut, LeftOut, Usage

VERSION: Final = 1

EpochReason: TypeAlias = Literal["compaction", "thinking", "refusal", "configured", "media", "rewind"]
"""The reason why a lane, a session's transcript for one binding, is rendered again from the start."""

TrimReason: TypeAlias = Literal["repeated", "large", "old"]
"""The reason why a placeholder replaces a result: its call was repeated later, it is long, or space was needed."""

TurnStatus: TypeAlias = Literal["complete", "cancelled", "failed", "interrupted", "handed_over"]
"""The outcome of a turn. `handed_over` means that a turn on another binding continues the same ask."""

Verdict: TypeAlias = Literal["allow", "deny"]
"""The decision about a call that needed approval."""


class AskKey(StoredRecord, frozen=True):
    """The idempotency key of an ask.

    Args:
        name: The key that the caller passed.
        digest: A digest of the message and the answer's schema.
    """

    name: str
    digest: str


class AskStarted(EventBase, frozen=True):
    """A user message started an ask.

    Args:
        ask: Number of the ask, from 1.
        message: The user message.
        asked: The settings of this ask; None if the ask has no settings of its own.
        key: The idempotency key; None if the caller passed none.
    """

    ask: int
    message: Packed
    asked: StoredAskSettings | None = None
    key: AskKey | None = None


class TurnStarted(EventBase, frozen=True):
    """A turn began on `binding`. The second and later turns of an ask follow a failover, a handoff or an interruption.

    Args:
        turn: Number of the turn.
        ask: Number of the ask; 0 for a turn that compacts the history at the program's request.
        binding: The binding of the turn.
    """

    turn: int
    ask: int
    binding: Binding


class OmittedParameter(StoredRecord, frozen=True):
    """A parameter that a request omits because the provider rejected it.

    Args:
        name: The name of a setting, such as `temperature`, or of a group of request fields, such as `cache`.
        only_value: True if the provider rejected only the value; False if it does not support the parameter.
    """

    name: str
    only_value: bool = False


class RequestSent(EventBase, frozen=True):
    """A request is about to be sent. The event is durable before the request's first byte.

    From then on, the binding's lane contains the rendered transcript.

    Args:
        turn: Number of the turn.
        round: Number of the round within the turn, from 1.
        binding: The binding of the request.
        epoch: Number of the lane's epoch, from 0.
        cursor: Number of history messages that the lane has rendered, including this request.
        seals: Synthetic results that the request carries for the first time, as (call id, reason).
        tools_off: True if the request turns tools off to get a final text.
        is_for_summary: True for a request for a summary. No later request continues it, so the lane stays unchanged.
        omitted: Requested parameters that this request omits because the provider rejected them.
    """

    turn: int
    round: int
    binding: Binding
    epoch: int
    cursor: int
    seals: tuple[tuple[CallId, Reason], ...] = ()
    tools_off: bool = False
    is_for_summary: bool = False
    omitted: tuple[OmittedParameter, ...] = ()


class RoundEnded(EventBase, frozen=True):
    """A round ended with the model's message, or with the usable part of a message that was interrupted by `fault`.

    Args:
        turn, round: Numbers of the turn and the round.
        message: The message; None if it would be empty.
        usage: Tokens of the round.
        finish: The provider's finish reason; None if the answer has none.
        fault: The error that interrupted the answer; None if all of the answer arrived.
        calls: Number of canonical ids that the round used, including the ids of dropped calls.
        dropped: Content of the answer that is not in the message.
        incomplete: The reason why the answer is incomplete although all of it arrived; None for a complete answer.
    """

    turn: int
    round: int
    message: Packed | None
    usage: Usage = Usage()
    finish: str | None = None
    fault: str | None = None
    calls: int = 0
    dropped: LeftOut = ()
    incomplete: Cut | None = None


class FormatRequested(EventBase, frozen=True):
    """A message to the model about its answer was added to the history.

    Args:
        ask: Number of the ask, from 1.
        message: The message. It states the required format, or that the last answer had the wrong format or no content.
    """

    ask: int
    message: Packed


class SubagentUsage(EventBase, frozen=True):
    """A subagent's session ended.

    Args:
        call_id: The id of the call that started the subagent.
        session: The subagent's session id.
        used: The subagent's usage, which counts towards the budget of this session.
    """

    call_id: CallId
    session: str
    used: SessionUsage


class ApprovalAsked(EventBase, frozen=True):
    """A call waits for approval.

    Args:
        call_id: The id of the call.
        tool: The tool's name.
        digest: A digest of the tool and the arguments. A decision is valid only for this digest.
    """

    call_id: CallId
    tool: str
    digest: str


class ApprovalDecided(EventBase, frozen=True):
    """A call that waited for approval was allowed or denied, for this tool and these arguments.

    Args:
        call_id: The id of the call.
        tool, digest: The same values as in `ApprovalAsked`.
        verdict: The decision.
        reason: The reason for the decision, in free text.
        arguments: Arguments that replace the model's; None to keep the model's arguments.
    """

    call_id: CallId
    tool: str
    digest: str
    verdict: Verdict
    reason: str = ""
    arguments: JsonObject | None = None


class TurnPaused(EventBase, frozen=True):
    """A turn is paused: it waits for results or approvals from its caller.

    All other calls of the turn's batch have ended.

    Args:
        turn: Number of the turn.
        external: Calls whose results the caller provides, in call order.
        approvals: Calls that run once they are approved, in call order.
        turn_so_far, ask_so_far: The progress from which the turn continues.
        seconds: Seconds since the turn began or resumed, if the session's budget counts them.
    """

    turn: int
    external: tuple[CallId, ...]
    approvals: tuple[CallId, ...] = ()
    turn_so_far: TurnProgress = TurnProgress()
    ask_so_far: AskProgress = AskProgress()
    seconds: float = 0.0

    @property
    def kinds(self) -> tuple[tuple[str, tuple[CallId, ...]], ...]:
        """The waiting calls, grouped by the input that they wait for: `external` results or an `approval`."""
        return ("external", self.external), ("approval", self.approvals)


class TurnResumed(EventBase, frozen=True):
    """A paused turn continues or is closed. None of its calls waits for the caller any more.

    Args:
        turn: Number of the turn.
    """

    turn: int


class SwitchQueued(EventBase, frozen=True):
    """A switch was requested during a turn and is deferred until the turn ends.

    Args:
        turn: Number of the turn.
        target: The requested backend or pool.
    """

    turn: int
    target: str


class SwitchApplied(EventBase, frozen=True):
    """The session switched to `target`, which serves the next turn. `was_queued` is True if it had been queued."""

    target: str
    was_queued: bool = False


class SwitchSuperseded(EventBase, frozen=True):
    """A later switch, to `replaced_by`, replaced the deferred switch to `target` before it was applied."""

    target: str
    replaced_by: str


class SwitchFailed(EventBase, frozen=True):
    """A deferred switch failed at the end of its turn, because its target is no longer valid.

    Args:
        target: The requested backend or pool.
        error: The error message.
    """

    target: str
    error: str


class Configured(EventBase, frozen=True):
    """From the next turn on, the session has this system prompt and these tools.

    Args:
        system: The system prompt; None if the session has none.
        tools: Names of the tools.
        preamble: Digest of the system prompt and of the tools' declarations in requests. The tools' code is not logged.
    """

    system: str | None
    tools: tuple[str, ...]
    preamble: str


class ResultsTrimmed(EventBase, frozen=True):
    """Later transcripts contain short placeholders in place of these results. The ledger keeps the results.

    Args:
        results: The calls of the results, each with the reason for its placeholder.
    """

    results: tuple[tuple[CallId, TrimReason], ...]


class Compacted(EventBase, frozen=True):
    """A summary replaced a part of the history.

    Args:
        start, stop: The range of the replaced messages' indexes, from 0. `stop` is excluded.
        summary: The summary, as a normal message.
    """

    start: int
    stop: int
    summary: Packed


class Rewound(EventBase, frozen=True):
    """The history was cut at the end of `turn`, or to its initial state if `turn` is 0.

    The log and the ledger keep the removed turns.
    """

    turn: int


class EpochBegan(EventBase, frozen=True):
    """The transcript of this binding (its lane) is rendered again from the start for the next request.

    Args:
        binding: The binding of the lane.
        epoch: Number of the new epoch.
        reason: The reason code.
        plain: True if the epoch renders tool calls as text.
        detail: The reason as text for people.
        media: SHA-256 digests of the attachments that the provider rejected. A note replaces each of them in this lane;
            the history and the ledger keep them.
    """

    binding: Binding
    epoch: int
    reason: EpochReason
    plain: bool = False
    detail: str = ""
    media: tuple[str, ...] = ()


class TurnEnded(EventBase, frozen=True):
    """A turn ended, and all its calls are closed.

    Args:
        turn: Number of the turn.
        status: The outcome.
        reason: The reason for the outcome, on one line for people; empty for a complete turn.
        cause: The failure that ended the turn; None if no failure ended it.
        retried: Failed requests of the turn that were retried.
        wait: Seconds of delay before the last request, if that request was a retry.
        seconds: Seconds since the turn began or resumed, if the session's budget counts them.
        repaired: Repairs of a malformed answer that had exactly one interpretation in the required format.
    """

    turn: int
    status: TurnStatus
    reason: str = ""
    cause: Cause | None = None
    retried: tuple[Attempt, ...] = ()
    wait: float = 0.0
    seconds: float = 0.0
    repaired: tuple[Repair, ...] = ()

    @property
    def ends_ask(self) -> bool:
        """True if no further turn continues the ask.

        Another turn continues the ask if this turn was handed over or interrupted, or if the host released the session.
        """
        return self.status not in ("handed_over", "interrupted") and self.cause != LEAVING


class EventsLost(EventBase, frozen=True):
    """The storage lost the acknowledged events `first` to `last`. No log contains them any more.

    This event has the number `first`, and later events reuse the following numbers. Lost calls may have run, so their
    ids are not reused.
    """

    first: int
    last: int


class Closed(EventBase, frozen=True):
    """The session ended. `reason` is empty if none was given."""

    reason: str = ""


class Opened(EventBase, frozen=True):
    """A session began, possibly with an imported history.

    Args:
        session: The session's id.
        target: The selected target.
        system: The system prompt; None if the session has none.
        messages: The imported history's messages, in normal form.
        call_records: Records of the calls in these messages.
        calls: Number of canonical ids that these messages use.
        report: The repairs and losses of the import.
        key: A unique key, because another session may have or may have had the same id.
        tenant: The session's tenant; empty for none.
        budget: The session's own budget; None for none.
        preamble: The same digest as in `Configured`.
        parent_key: The `key` of the parent session if the session is a subagent's; empty otherwise.
        title, metadata: Data that the application shows in its lists of sessions.
    """

    session: str
    target: str
    system: str | None = None
    messages: tuple[Packed, ...] = ()
    call_records: tuple[ToolCallRecord, ...] = ()
    calls: int = 0
    report: ImportReport = ImportReport()
    key: str = ""
    tenant: str = ""
    budget: Budget | None = None
    preamble: str = ""
    parent_key: str = ""
    title: str = ""
    metadata: Metadata = ()


SwitchEvent: TypeAlias = SwitchQueued | SwitchApplied | SwitchSuperseded | SwitchFailed
"""Events of switches to another target."""
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
"""Events of asks and of their turns and rounds."""
HistoryEvent: TypeAlias = ResultsTrimmed | Compacted | Rewound
"""An event that makes the history shorter."""
LogEvent: TypeAlias = (
    Opened | AskEvent | CallEvent | SwitchEvent | Configured | HistoryEvent | EventsLost | Closed
)
"""Any event of a session's log. The union is closed, so a `match` over an event can be exhaustive."""
