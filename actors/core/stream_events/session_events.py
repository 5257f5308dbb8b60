"""Define the stream events of the session itself: its opening and end, switches, and changes of tools and history."""

from typing import ClassVar, Literal

from actors.core.stream_events.event_base import DurableEvent, StreamEvent, TurnEventBase
from actors.core.values.content import Message


class SessionOpenedEvent(DurableEvent, frozen=True):
    """The session was opened on `target`. Only `Session.events` yields this event."""

    type: ClassVar[Literal["session_opened"]] = "session_opened"
    target: str


class SessionClosedEvent(TurnEventBase, frozen=True):
    """The session was closed. Only `Session.events` yields this event.

    Args:
        reason: The reason, in free text; empty if none was given.
    """

    type: ClassVar[Literal["session_closed"]] = "session_closed"
    reason: str = ""


class SwitchQueuedEvent(TurnEventBase, frozen=True):
    """A switch to `target` was requested during a turn and is deferred until the turn ends."""

    type: ClassVar[Literal["switch_queued"]] = "switch_queued"
    target: str


class SwitchAppliedEvent(TurnEventBase, frozen=True):
    """The session switched to `target`, which serves the next turn."""

    type: ClassVar[Literal["switch_applied"]] = "switch_applied"
    target: str


class SwitchSupersededEvent(TurnEventBase, frozen=True):
    """The deferred switch to `target` was replaced by a later switch, to `replaced_by`."""

    type: ClassVar[Literal["switch_superseded"]] = "switch_superseded"
    target: str
    replaced_by: str


class SwitchFailedEvent(TurnEventBase, frozen=True):
    """The deferred switch to `target` could not be applied.

    Args:
        target: The requested backend or pool.
        error: The reason, as an error message.
    """

    type: ClassVar[Literal["switch_failed"]] = "switch_failed"
    target: str
    error: str


class ConfiguredEvent(TurnEventBase, frozen=True):
    """The system prompt or the tools changed. `digest` identifies the new combination."""

    type: ClassVar[Literal["configured"]] = "configured"
    digest: str


class ToolChangeDeferredEvent(StreamEvent, frozen=True):
    """Tools changed during a turn. Requests declare the new tools only from the next ask on. Ephemeral.

    Args:
        turn, round: Numbers of the turn, and of the round in this turn, from 1.
        reason: The reason why the turn keeps its tools, in words.
    """

    type: ClassVar[Literal["tool_change_deferred"]] = "tool_change_deferred"
    turn: int
    round: int
    reason: str


class ResultsTrimmedEvent(TurnEventBase, frozen=True):
    """From now on, requests contain placeholders for `count` results. The ledger keeps these results."""

    type: ClassVar[Literal["results_trimmed"]] = "results_trimmed"
    count: int


class CompactedEvent(TurnEventBase, frozen=True):
    """A summary replaced `replaced` messages of the history.

    Args:
        summary: The message that contains the summary.
        replaced: Number of messages that the summary replaced.
    """

    type: ClassVar[Literal["compacted"]] = "compacted"
    summary: Message
    replaced: int


class RewoundEvent(TurnEventBase, frozen=True):
    """The history was rewound to the end of turn `to`. If `to` is 0, only the imported messages are left."""

    type: ClassVar[Literal["rewound"]] = "rewound"
    to: int


class EventsLostEvent(TurnEventBase, frozen=True):
    """The journal lost the events `first` to `last` after it had acknowledged them.

    The lost numbers are used again, beginning with this event.
    """

    type: ClassVar[Literal["events_lost"]] = "events_lost"
    first: int
    last: int


class ResyncEvent(StreamEvent, frozen=True):
    """The reader was too slow and missed `missed` events. `seq` is the last number that it received. Ephemeral."""

    type: ClassVar[Literal["resync"]] = "resync"
    seq: int
    missed: int
