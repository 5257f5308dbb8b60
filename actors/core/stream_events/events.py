"""Define the union of all stream events, which `Session.stream` and `Session.events` yield.

This module also defines the events of the session itself. `ask_events` and `round_events` define the events of asks and
rounds. `actors.core.session.publishing` derives the durable events from the session's log, both live and for replay.
Ephemeral events (a text delta, a failed request, a tool's progress) come from the actors that observe them. A session's
actors publish the events of an ask through a `Sink`.

A durable event has a sequence number (`seq`), its position in the session's log, and is logged before readers receive
it. An ephemeral event exists only while it is streamed, and a slow reader may miss it. One log record can yield several
stream events with the same `seq`. All of them except the last have `more=True`, so that a reader resumes only after the
last one. An ask's stream ends with exactly one `CompleteEvent` or `ErrorEvent`.
"""

from typing import ClassVar, Literal, Protocol, TypeAlias

from actors.core.stream_events.ask_events import (
    AskStartedEvent,
    DurableEvent,
    FailoverEvent,
    MemberSkippedEvent,
    StreamEvent,
    TerminalEvent,
    TurnEndedEvent,
    TurnEventBase,
    TurnPausedEvent,
    TurnResumedEvent,
    TurnStartedEvent,
)
from actors.core.stream_events.round_events import (
    ApprovalDecidedEvent,
    ApprovalRequestedEvent,
    CallRepairedEvent,
    FormatRequestedEvent,
    LaneRewrittenEvent,
    MessageEvent,
    RequestFailedEvent,
    RequestRenderedEvent,
    RequestSentEvent,
    TextEvent,
    ThinkingEvent,
    ToolCallEvent,
    ToolFailedEvent,
    ToolProgressEvent,
    ToolResultsEvent,
)
from actors.core.values.content import Message
from actors.core.values.identity import CallId


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
    """Tools changed during a turn. Requests declare the new tools only from the next ask on. Not stored in the log.

    Args:
        turn, round: Numbers of the turn, and of the round in this turn, from 1.
        reason: The reason why the turn keeps its tools, as text for people.
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
    """The reader was too slow and missed `missed` events. Not stored in the log.

    Args:
        seq: The number of the last event that the reader received.
        missed: Number of missed events.
    """

    type: ClassVar[Literal["resync"]] = "resync"
    seq: int
    missed: int


class SubagentEvent(StreamEvent, frozen=True):
    """An event of a subagent's session, in the stream of its parent session. Not stored in the parent's log.

    Args:
        path: The calls that lead to the subagent. The first of them is a call of the parent session.
        session: The subagent's session id.
        event: The subagent's event. Its `seq` is a position in the subagent's own log.
    """

    type: ClassVar[Literal["subagent"]] = "subagent"
    path: tuple[CallId, ...]
    session: str
    event: "OwnEvent"


OwnEvent: TypeAlias = (
    AskStartedEvent
    | TurnStartedEvent
    | FailoverEvent
    | MemberSkippedEvent
    | TurnPausedEvent
    | TurnResumedEvent
    | TurnEndedEvent
    | RequestSentEvent
    | RequestRenderedEvent
    | RequestFailedEvent
    | TextEvent
    | ThinkingEvent
    | MessageEvent
    | FormatRequestedEvent
    | LaneRewrittenEvent
    | ToolCallEvent
    | CallRepairedEvent
    | ToolProgressEvent
    | ToolFailedEvent
    | ToolResultsEvent
    | ApprovalRequestedEvent
    | ApprovalDecidedEvent
    | SessionOpenedEvent
    | SwitchQueuedEvent
    | SwitchAppliedEvent
    | SwitchSupersededEvent
    | SwitchFailedEvent
    | ConfiguredEvent
    | ToolChangeDeferredEvent
    | ResultsTrimmedEvent
    | CompactedEvent
    | RewoundEvent
    | EventsLostEvent
    | ResyncEvent
    | SessionClosedEvent
    | TerminalEvent
)
"""An event of the session itself rather than of a subagent: any stream event except `SubagentEvent`."""

SessionEvent: TypeAlias = OwnEvent | SubagentEvent
"""Any stream event. The union is closed, so a `match` over an event can be exhaustive."""


def is_droppable(event: SessionEvent) -> bool:
    """Return True if the event is ephemeral or comes from a subagent. A slow reader may miss this event."""
    return not isinstance(event, DurableEvent)


class Sink(Protocol):
    """A receiver of an ask's events. `put` never waits and never raises."""

    @property
    def is_watched(self) -> bool:
        """True if the sink needs all events; False if the terminal event is enough."""
        ...

    def put(self, event: SessionEvent) -> None:
        """Accept an event. A terminal event ends the stream."""

    def close(self, error: Exception | None = None) -> None:
        """End the stream without a terminal event. `error` is the reason; None if the session was closed normally."""
