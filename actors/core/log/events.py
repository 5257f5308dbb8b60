"""The catalogue of log events. The log of a session is the only thing that is stored.

History, ledger, lanes, the turn number and the selected binding are folded from these events. The catalogue is closed
and has a version. An event is durable before anything that follows from it is visible outside.

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

from actors.core.data.form import Form, kept
from actors.core.data.jsonio import Json, JsonObject
from actors.core.schemas.repair import Repair
from actors.core.settings.asking import Asked
from actors.core.settings.labels import Metadata
from actors.core.settings.spending import Budget, Used
from actors.core.values.content import Media, Status, ToolResult
from actors.core.values.identity import Binding, CallId
from actors.core.values.intake import ImportReport
from actors.core.values.packed import Packed
from actors.core.values.progress import AskProgress, Attempt, Cause, TurnProgress
from actors.core.values.stream import Cut, LeftOut, Usage

VERSION: Final = 1

Reason: TypeAlias = Literal[
    "cancelled", "interrupted", "never_started", "outcome_unknown", "compacted", "denied", "lost"
]
"""Why a call has no real result; the closed list of synthetic reason codes."""

_UNKNOWN: frozenset[str] = frozenset({"lost", "outcome_unknown"})  # reasons that say nothing of the end

Gap: TypeAlias = Reason | Literal["running"]
"""Why a reader sees no result of a call: one of these reasons, or it has not ended yet. No event says the latter."""

Effects: TypeAlias = Literal["pure", "idempotent", "once"]
"""What a call does to the world: nothing; the same, however often it runs with one idempotency key; something anew."""

EpochReason: TypeAlias = Literal["compaction", "thinking", "refusal", "configured", "media", "rewind"]
"""Why a lane had to be rewritten."""

Short: TypeAlias = Literal["repeated", "large", "old"]
"""Why a result is shown as a mark: the call was made again later, or the result was long, or it made room."""

TurnStatus: TypeAlias = Literal["complete", "cancelled", "failed", "interrupted", "handed_over"]
"""How a turn ended. `handed_over`: a continuation turn on another binding follows, in the same ask."""

Verdict: TypeAlias = Literal["allow", "deny"]
"""What was decided about a call that asked for approval."""


def _word(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


class EventBase(Form, frozen=True, tag=_word):
    """What all events have: a name in the log, which is that of their class."""


class AskStarted(EventBase, frozen=True):
    """A user message; its number is that of the ask it begins, counted from 1. `asked`: settings of that ask alone."""

    ask: int
    message: Packed
    asked: Asked | None = None


class TurnStarted(EventBase, frozen=True):
    """A turn began on this binding. Several turns of one ask are failovers."""

    turn: int
    ask: int
    binding: Binding


class Omission(Form, frozen=True):
    """A parameter that a request leaves out because its provider refused it.

    Args:
        name: Its name (`actors.adapters.settings`).
        is_value: Whether the provider rejected its value; else it does not support the parameter at all.
    """

    name: str
    is_value: bool = False


class RequestSent(EventBase, frozen=True):
    """A request is about to be sent: durable before its first byte. With it the binding's lane adopts its next version.

    Args:
        round: Counts from 1 in each turn.
        epoch: The lane's epoch, from 0.
        cursor: How many messages of the history the lane has rendered with it.
        seals: Synthetic results it carries for the first time, as (call id, reason).
        tools_off: It asks for a final text.
        aside: It asks for a summary, and no request continues it: its lane stays as it was.
        omitted: Parameters that were asked for and that it leaves out because the provider refused them.
    """

    turn: int
    round: int
    binding: Binding
    epoch: int
    cursor: int
    seals: tuple[tuple[CallId, Reason], ...] = ()
    tools_off: bool = False
    aside: bool = False
    omitted: tuple[Omission, ...] = ()


class RoundEnded(EventBase, frozen=True):
    """The model's message of one round, whole; or what could be kept of it, with `fault` saying why.

    There is no message where it would be empty. `calls` is how many canonical ids the round used, those of dropped
    calls included; `left_out` what the answer held beside the message; `cut` why it is not whole though all there is.
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
    """The model was told the form of its answer, or what is wrong with the last one: its form, or no content."""

    ask: int
    message: Packed


class CallEventBase(EventBase, frozen=True):
    """What all events of one tool call have. They change the ledger and nothing else."""

    call_id: CallId


class Scheduled(CallEventBase, frozen=True):
    """A call was accepted for execution, with its arguments as they were read. Written before the tool starts.

    `repaired`: their slips, where exactly one reading of them fits the tool's schema.
    """

    tool: str
    arguments: Json = Json(b"{}")
    repaired: tuple[Repair, ...] = ()


class Started(CallEventBase, frozen=True):
    """The tool of a call began to run. `effects` is what it said then of what it does to the world."""

    effects: Effects = "once"


class Returned(CallEventBase, frozen=True):
    """The tool of a call returned. The only place a result is written: its words, and the media beside them.

    `repeated`: the same call had the same result before, so often that this was noticed.
    """

    content: Json = Json(b"null")
    media: tuple[Media, ...] = ()
    repeated: bool = False

    @property
    def result(self) -> ToolResult:
        """What answers the call."""
        return kept(ToolResult, self.call_id, self.content, None, True, self.media)


class _Unsuccessful(CallEventBase, frozen=True):
    """A call's real completion that is an error."""

    error: Json = Json(b'""')

    @property
    def result(self) -> ToolResult:
        """What answers the call."""
        return kept(ToolResult, self.call_id, None, self.error, None, ())


class Failed(_Unsuccessful, frozen=True):
    """The tool of a call raised. `repeated` is as in `Returned`."""

    repeated: bool = False


class Denied(_Unsuccessful, frozen=True):
    """A policy or a person refused to run the call. A real completion: the model is told."""


class Refused(_Unsuccessful, frozen=True):
    """The call could not be run as written: unknown tool or invalid arguments. A real completion."""


class Cancelled(CallEventBase, frozen=True):
    """The call was stopped, or will not be run: closed without a real completion."""

    reason: Reason = "cancelled"


class SubagentUsage(EventBase, frozen=True):
    """A session that the tool of a call opened has ended, and used so much of this one's budget."""

    call_id: CallId
    session: str
    used: Used


class ApprovalAsked(EventBase, frozen=True):
    """A call waits for somebody to approve of it. `digest` names its tool and arguments."""

    call_id: CallId
    tool: str
    digest: str


class ApprovalDecided(EventBase, frozen=True):
    """Somebody decided about a call that asked: of this tool, with these arguments.

    Args:
        reason: Why, in the decider's words.
        arguments: To run it with in place of the model's; None for those.
    """

    call_id: CallId
    tool: str
    digest: str
    verdict: Verdict
    reason: str = ""
    arguments: JsonObject | None = None


class TurnPaused(EventBase, frozen=True):
    """A turn waits for its caller: all other calls of its batch have ended.

    Args:
        external: Calls whose results the caller brings, in call order.
        approvals: Calls that run if somebody approves of them, likewise.
        turn_so_far, ask_so_far: What the turn goes on from.
        seconds: How long it took since it began or went on, where the session's budget counts them.
    """

    turn: int
    external: tuple[CallId, ...]
    approvals: tuple[CallId, ...] = ()
    turn_so_far: TurnProgress = TurnProgress()
    ask_so_far: AskProgress = AskProgress()
    seconds: float = 0.0

    @property
    def kinds(self) -> tuple[tuple[str, tuple[CallId, ...]], ...]:
        """The calls by what they wait for."""
        return ("external", self.external), ("approval", self.approvals)


class TurnResumed(EventBase, frozen=True):
    """A turn goes on, or is closed: nothing is awaited any more."""

    turn: int


class SwitchQueued(EventBase, frozen=True):
    """A switch was asked for during a turn and waits for its end."""

    turn: int
    target: str


class SwitchApplied(EventBase, frozen=True):
    """The session's next turn goes to `target`. `held` if it had waited for a boundary."""

    target: str
    held: bool = False


class SwitchSuperseded(EventBase, frozen=True):
    """A held switch was replaced by a later one before it could be applied."""

    target: str
    by: str


class SwitchFailed(EventBase, frozen=True):
    """A held switch could not be applied when its turn had ended: its target cannot be used any more."""

    target: str
    why: str


class Configured(EventBase, frozen=True):
    """From the next turn on requests have this system prompt, and offer the tools of these names.

    `preamble` is the digest of both, with all that requests say of the tools; what tools do is in no log.
    """

    system: str | None
    tools: tuple[str, ...]
    preamble: str


class ResultsTrimmed(EventBase, frozen=True):
    """From here on the results of these calls are shown as marks. What they returned stays in the ledger."""

    results: tuple[tuple[CallId, Short], ...]


class Compacted(EventBase, frozen=True):
    """Messages `start` to `stop` (excluded) of the history were replaced by a summary, a normal message."""

    start: int
    stop: int
    summary: Packed


class Rewound(EventBase, frozen=True):
    """The history ends where `turn` ended, 0 for where the session was opened. The log and the ledger keep the rest."""

    turn: int


class EpochBegan(EventBase, frozen=True):
    """A binding's lane is rewritten from here on, for a `reason` and `why` in words for people.

    Args:
        plain: With the conservative render.
        media: Names (`content_name`) of attachments that the provider refused. From here on a note stands for each
            of them in this lane; the history and the ledger keep them.
    """

    binding: Binding
    epoch: int
    reason: EpochReason
    plain: bool = False
    why: str = ""
    media: tuple[str, ...] = ()


class TurnEnded(EventBase, frozen=True):
    """A turn ended; every call of it is closed. `why` is one line for people, `cause` the failure that ended it.

    `retried` are its requests that failed and were tried again, `wait` the seconds before the last, if that is a retry.
    `seconds` is how long it took since it began, or last went on, where the session's budget counts them. `repaired`
    are the slips of its answer, where exactly one reading has the form that was asked for.
    """

    turn: int
    status: TurnStatus
    why: str = ""
    cause: Cause | None = None
    retried: tuple[Attempt, ...] = ()
    wait: float = 0.0
    seconds: float = 0.0
    repaired: tuple[Repair, ...] = ()


class EventsLost(EventBase, frozen=True):
    """The storage went back behind what it had acknowledged: events `first` to `last` are in no log any more.

    This event has the number `first`, and other events have the numbers that follow. Calls that are lost may have run,
    so their ids are given to no others.
    """

    first: int
    last: int


class Closed(EventBase, frozen=True):
    """A session ended."""

    why: str = ""


Completion: TypeAlias = Returned | Failed | Denied | Refused
"""A tool call's real end. Its `result` answers the call."""

End: TypeAlias = Completion | ToolResult
"""How a call ended: the log's own event, or the result that an imported history held."""


class ToolCallRecord(Form, frozen=True):
    """All that is known about one tool call.

    Args:
        tool, arguments: As the model gave them, the arguments as JSON (repaired, if they had a slip); None while only
            its end is known.
        started: Whether the tool is known to have begun.
        end: Its first real completion; None without one.
        cancelled: Why the call was stopped, if it was.
        sealed: Reason code of the synthetic result that was sent for it, if one was. A real completion came after it.
        duplicates: Further real completions that differ from the first. Never emitted.
        effects: What the tool that began said of what it does to the world: whether the call may be run again.
    """

    call_id: CallId
    tool: str | None = None
    arguments: Json | None = None
    started: bool = False
    end: End | None = None
    cancelled: Reason | None = None
    sealed: Reason | None = None
    duplicates: tuple[ToolResult, ...] = ()
    effects: Effects = "once"

    @property
    def completion(self) -> ToolResult | None:
        """The effective real completion; None without one, and where a synthetic result was sent before it came."""
        return None if self.end is None or self.sealed is not None else result_of(self.end)

    @property
    def late(self) -> ToolResult | None:
        """A real completion that came after the seal; the model gets it as a note."""
        return None if self.end is None or self.sealed is None else result_of(self.end)

    @property
    def status(self) -> Status:
        """`pending`, `complete`, `error`, `cancelled`, or `unknown` where the call may have ended unrecorded.

        The result's own status comes first (REQ-915-048). A call without a result is `pending` while it may still end,
        `unknown` if its reason is `lost` or `outcome_unknown`, and else `cancelled`.
        """
        if (completion := self.completion) is not None:
            return completion.status
        if self.cancelled is None and self.sealed is None:
            return "pending"
        return "unknown" if self.reason in _UNKNOWN else "cancelled"

    @property
    def reason(self) -> Gap | None:
        """Why there is no result: the seal's reason, else `denied`, else the state's. None if the tool ran to its end.

        A denial is emitted, as the error it is; for the other reasons a synthetic result is.
        """
        if self.sealed is not None:
            return self.sealed
        if self.end is not None:
            return "denied" if type(self.end) is Denied else None
        return self.cancelled or "running"


def result_of(end: End) -> ToolResult:
    """Return the result that answers a call that ended so."""
    return end if isinstance(end, ToolResult) else end.result


class Opened(EventBase, frozen=True):
    """A session began, on an imported history if it has `messages`.

    They are normal. `known` is what is known about their calls, `calls` how many canonical ids they used, `report` what
    was done to make them so. `key` tells it from a session that had its id before or has it elsewhere.
    `tenant` is whose it is, `budget` what it may use. `preamble` is as in `Configured`. `above` is the `key` of the
    session for one of whose calls this one was opened. `title` and `metadata` are the host's, for its lists.
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


CallEvent: TypeAlias = Scheduled | Started | Completion | Cancelled
"""What happens to one tool call. Only a session's scheduler reports these."""

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
