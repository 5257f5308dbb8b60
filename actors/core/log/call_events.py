"""Define the log events of a single tool call, and the record that they make up.

`actors.core.log.events` has all other events and the table of the catalogue. The ledger (`actors.core.ledger`) applies
the events of this module and keeps one `ToolCallRecord` per call.
"""

from typing import Literal, TypeAlias

from actors.core.data.jsonio import Json
from actors.core.data.record import StoredRecord, from_fields
from actors.core.log.event_base import EventBase
from actors.core.schemas.repair import Repair
from actors.core.values.content import Media, Status, ToolResult
from actors.core.values.identity import CallId

Reason: TypeAlias = Literal[
    "cancelled", "interrupted", "never_started", "outcome_unknown", "compacted", "denied", "lost"
]
"""The reason of a synthetic result; a closed list."""

_UNKNOWN: frozenset[str] = frozenset({"lost", "outcome_unknown"})  # reasons that leave the outcome open

Gap: TypeAlias = Reason | Literal["running"]
"""The reason of a missing result. `running` is derived from the ledger and occurs in no event."""

Effects: TypeAlias = Literal["pure", "idempotent", "once"]
"""A call's side effects: none, repeatable with one idempotency key, or not repeatable."""


class CallEventBase(EventBase, frozen=True):
    """The base of events of one tool call, which change only the ledger."""

    call_id: CallId


class Scheduled(CallEventBase, frozen=True):
    """A call was accepted for execution, with its parsed arguments. Written before the tool starts.

    `repaired` lists malformed parts of the arguments that had exactly one interpretation under the tool's schema.
    """

    tool: str
    arguments: Json = Json(b"{}")
    repaired: tuple[Repair, ...] = ()


class Started(CallEventBase, frozen=True):
    """The tool of a call began to run. `effects` is the tool's declaration at that time."""

    effects: Effects = "once"


class Returned(CallEventBase, frozen=True):
    """The tool of a call returned. No other event contains its return value.

    `repeated` is True if the same call has returned the same result so often that repetition was detected.
    """

    content: Json = Json(b"null")
    media: tuple[Media, ...] = ()
    repeated: bool = False

    @property
    def result(self) -> ToolResult:
        """The result that answers the call."""
        return from_fields(ToolResult, self.call_id, self.content, None, True, self.media)


class _Unsuccessful(CallEventBase, frozen=True):
    """The base of real completions that are errors."""

    error: Json = Json(b'""')

    @property
    def result(self) -> ToolResult:
        """The result that answers the call."""
        return from_fields(ToolResult, self.call_id, None, self.error, None, ())


class Failed(_Unsuccessful, frozen=True):
    """The tool of a call raised an exception. `repeated` is as in `Returned`."""

    repeated: bool = False


class Denied(_Unsuccessful, frozen=True):
    """A policy or a person denied the call. A real completion, which the model receives as an error."""


class Refused(_Unsuccessful, frozen=True):
    """The call could not run as written: unknown tool or invalid arguments. A real completion."""


class Cancelled(CallEventBase, frozen=True):
    """The call was stopped or never started: closed without a real completion."""

    reason: Reason = "cancelled"


Completion: TypeAlias = Returned | Failed | Denied | Refused
"""A tool call's real completion. Its `result` answers the call."""

End: TypeAlias = Completion | ToolResult
"""A call's completion: an event of the log, or a result from an imported history."""

CallEvent: TypeAlias = Scheduled | Started | Completion | Cancelled
"""Events of one tool call. Only a session's scheduler reports them."""


class ToolCallRecord(StoredRecord, frozen=True):
    """The record of one tool call.

    Args:
        call_id: The call.
        tool, arguments: The tool's name and the arguments as JSON, repaired if they were malformed; None while only the
            completion is known.
        started: True if the tool is known to have started.
        end: The first real completion; None if there is none.
        cancelled: The reason if the call was stopped.
        sealed: Reason code of the synthetic result that was sent; a real completion, if any, came after it.
        duplicates: Further real completions that differ from the first. Never rendered.
        effects: The side effects that the tool declared when it started; they decide whether the call may run again.
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
        """The effective real completion; None if there is none or if a synthetic result was sent before it."""
        return None if self.end is None or self.sealed is not None else result_of(self.end)

    @property
    def late(self) -> ToolResult | None:
        """A real completion that came after the seal; transcripts carry it as a note."""
        return None if self.end is None or self.sealed is None else result_of(self.end)

    @property
    def status(self) -> Status:
        """`pending`, `complete`, `error`, `cancelled`, or `unknown` if the call may have completed unrecorded.

        The result's own status comes first (REQ-915-048). A call without a result is `pending` while it may still
        complete, `unknown` if its reason is `lost` or `outcome_unknown`, and `cancelled` otherwise.
        """
        if (completion := self.completion) is not None:
            return completion.status
        if self.cancelled is None and self.sealed is None:
            return "pending"
        return "unknown" if self.reason in _UNKNOWN else "cancelled"

    @property
    def reason(self) -> Gap | None:
        """Why there is no result: the seal's reason, else `denied`, else the call's state. None for a completed tool.

        A denial is rendered as its error, all other reasons as a synthetic result.
        """
        if self.sealed is not None:
            return self.sealed
        if self.end is not None:
            return "denied" if type(self.end) is Denied else None
        return self.cancelled or "running"


def result_of(end: End) -> ToolResult:
    """Return the result that answers a call with this completion."""
    return end if isinstance(end, ToolResult) else end.result
