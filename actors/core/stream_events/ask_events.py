"""Define the stream events of an ask and its turns, from the user's message to the terminal event.

Each ask's stream ends with exactly one `CompleteEvent` or `ErrorEvent`. An ask has one turn, or several after failover.
"""

from typing import ClassVar, Literal, TypeAlias

from actors.core.log.events import TurnStatus
from actors.core.schemas.repair import Repair
from actors.core.stream_events.event_base import DurableEvent, RoundEventBase, StreamEvent, TurnEventBase
from actors.core.stream_events.results import AskResult, AwaitedCall
from actors.core.values.content import Message
from actors.core.values.identity import Binding
from actors.core.values.progress import Cause


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
    """A pool member was skipped because it accepts none of the session's tools. Ephemeral.

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
