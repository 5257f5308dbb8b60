"""Define the log events of a single tool call, and the record that results from them.

`actors.core.log.events` defines all other events and lists the complete catalogue. The ledger (`actors.core.ledger`)
applies the events of this module and keeps one `ToolCallRecord` per call.
"""

from typing import Literal, TypeAlias

from actors.core.data.jsonio import Json
from actors.core.data.record import StoredRecord, from_fields
from actors.core.schemas.repair import Repair
from actors.core.values.content import Media, Status, ToolResult
from actors.core.values.identity import CallId

Reason: TypeAlias = Literal[
    "cancelled", "interrupted", "never_started", "outcome_unknown", "compacted", "denied", "lost"
]
"""The reason for a synthetic result. The list is closed."""
# Reasons that leave it unknown whether the call took effect.
_UNKNOWN: frozenset[str] = frozenset({"lost", "outcome_unknown"})
MissingReason: TypeAlias = Reason | Literal["running"]
"""The reason why a call has no result. `running` is derived from the ledger and occurs in no event."""
Effects: TypeAlias = Literal["pure", "idempotent", "once"]
"""The side effects of a tool. A `pure` tool has none. With an `idempotent` tool, repeating a call with the same
idempotency key has no further effect. With a `once` tool, a call must not be repeated.
"""


def _snake_case(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


class EventBase(StoredRecord, frozen=True, tag=_snake_case):
    """The base of all log events. In the log, the type of an event is its class name in snake case."""


class CallEventBase(EventBase, frozen=True):
    """The base of all events of one tool call. These events change only the ledger.

    Args:
        call_id: The canonical id of the call.
    """

    call_id: CallId


class Scheduled(CallEventBase, frozen=True):
    """A call was accepted for execution. The event is written before the tool starts.

    Args:
        tool: The tool's name.
        arguments: The arguments as JSON, repaired if they were malformed.
        repaired: The repairs. Only malformed arguments with exactly one interpretation under the tool's schema are
            repaired.
    """

    tool: str
    arguments: Json = Json(b"{}")
    repaired: tuple[Repair, ...] = ()


class Started(CallEventBase, frozen=True):
    """The tool of a call began to run. `effects` are the side effects that the tool declared at that time."""

    effects: Effects = "once"


class Returned(CallEventBase, frozen=True):
    """The tool of a call returned. No other event contains the return value.

    Args:
        content: The return value as JSON, without its images and documents; `null` if the tool returned nothing else.
        media: Images and documents that the tool returned, in order.
        repeated: True if the same call has returned the same result so often that repetition was detected.
    """

    content: Json = Json(b"null")
    media: tuple[Media, ...] = ()
    repeated: bool = False

    @property
    def result(self) -> ToolResult:
        """The result that answers the call."""
        return from_fields(ToolResult, self.call_id, self.content, None, True, self.media)


class _ErrorCompletion(CallEventBase, frozen=True):
    """The base of real completions that answer the call with an error.

    Args:
        error: The error as JSON, usually a string.
    """

    error: Json = Json(b'""')

    @property
    def result(self) -> ToolResult:
        """The result that answers the call."""
        return from_fields(ToolResult, self.call_id, None, self.error, None, ())


class Failed(_ErrorCompletion, frozen=True):
    """The tool of a call raised an exception. `repeated` has the same meaning as in `Returned`."""

    repeated: bool = False


class Denied(_ErrorCompletion, frozen=True):
    """A policy or a person denied the call. This is a real completion; the model receives the denial as an error."""


class Refused(_ErrorCompletion, frozen=True):
    """The call could not run, because its tool is unknown or its arguments are invalid. This is a real completion."""


class Cancelled(CallEventBase, frozen=True):
    """The call was stopped, or never started, and is closed without a real completion.

    Args:
        reason: The reason code. It determines the text of the synthetic result that answers the call.
    """

    reason: Reason = "cancelled"


Completion: TypeAlias = Returned | Failed | Denied | Refused
"""A real completion of a tool call. Its `result` answers the call."""

End: TypeAlias = Completion | ToolResult
"""The completion of a call: a log event, or a result from an imported history."""

CallEvent: TypeAlias = Scheduled | Started | Completion | Cancelled
"""Events of one tool call. Only a session's scheduler reports them."""


class ToolCallRecord(StoredRecord, frozen=True):
    """The record of one tool call.

    Args:
        call_id: The canonical id of the call.
        tool, arguments: The tool's name and the arguments as JSON, repaired if they were malformed; None while only the
            completion is known.
        started: True if the tool is known to have started.
        end: The first real completion; None if there is none.
        cancelled: The reason code if the call was stopped or never started; None otherwise.
        sealed: The reason code of the synthetic result that was sent; None if none was sent. If `end` is set too, the
            real completion arrived after the request with the synthetic result.
        duplicates: Further real completions that differ from the first. They are never rendered.
        effects: The side effects that the tool declared when it started. They decide whether the call may run again.
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
        """The real completion that transcripts show; None if the call has none or a synthetic result was sent first."""
        return None if self.end is None or self.sealed is not None else result_of(self.end)

    @property
    def late(self) -> ToolResult | None:
        """The real completion that arrived after a synthetic result was sent; None if no completion was late.

        Transcripts show a late completion as a note.
        """
        return None if self.end is None or self.sealed is None else result_of(self.end)

    @property
    def status(self) -> Status:
        """The call's status: `pending`, `complete`, `error`, `cancelled` or `unknown`.

        If the call has a real completion, the call has the status of its result. A call without a real completion is
        `pending` while it may still complete. After that, it is `unknown` if it may have taken effect (its reason is
        `lost` or `outcome_unknown`), and `cancelled` otherwise.
        """
        # REQ-915-048 determines the status of a result
        if (completion := self.completion) is not None:
            return completion.status
        if self.cancelled is None and self.sealed is None:
            return "pending"
        return "unknown" if self.reason in _UNKNOWN else "cancelled"

    @property
    def reason(self) -> MissingReason | None:
        """The reason why the call has no result from its tool; None if the tool completed the call.

        The reason of a sent synthetic result takes precedence over `denied`, and `denied` over the reason of a
        cancellation. Without any of them, the reason is `running`. A denial is rendered as an error. Every other reason
        is rendered as a synthetic result.
        """
        if self.sealed is not None:
            return self.sealed
        if self.end is not None:
            return "denied" if type(self.end) is Denied else None
        return self.cancelled or "running"


def result_of(end: End) -> ToolResult:
    """Return the result that answers a call with this completion."""
    return end if isinstance(end, ToolResult) else end.result
