"""Define the union of the stream events that `Session.stream` and `Session.events` yield.

The classes are defined by group: `ask_events`, `round_events`, `tool_events` and `session_events`.

`actors.core.session.publishing` derives the durable events from the session's log, both live and for replay. Ephemeral
events (a text delta, a failed request, a tool's progress) come from the actors that observe them.

A durable event has a sequence number (`seq`), its position in the session's log, and is logged before readers receive
it. An ephemeral event exists only while it is streamed, and a slow reader may miss it. One log record can yield several
stream events with the same `seq`. All of them except the last have `more=True`, so that a reader resumes only after the
last one. An ask's stream ends with exactly one `CompleteEvent` or `ErrorEvent`.
"""

from typing import ClassVar, Literal, TypeAlias

from actors.core.stream_events.ask_events import (
    AskStartedEvent,
    FailoverEvent,
    MemberSkippedEvent,
    TerminalEvent,
    TurnEndedEvent,
    TurnPausedEvent,
    TurnResumedEvent,
    TurnStartedEvent,
)
from actors.core.stream_events.event_base import DurableEvent, StreamEvent
from actors.core.stream_events.round_events import (
    FormatRequestedEvent,
    LaneRewrittenEvent,
    MessageEvent,
    RequestFailedEvent,
    RequestRenderedEvent,
    RequestSentEvent,
    TextEvent,
    ThinkingEvent,
)
from actors.core.stream_events.session_events import (
    CompactedEvent,
    ConfiguredEvent,
    EventsLostEvent,
    ResultsTrimmedEvent,
    ResyncEvent,
    RewoundEvent,
    SessionClosedEvent,
    SessionOpenedEvent,
    SwitchAppliedEvent,
    SwitchFailedEvent,
    SwitchQueuedEvent,
    SwitchSupersededEvent,
    ToolChangeDeferredEvent,
)
from actors.core.stream_events.tool_events import (
    ApprovalDecidedEvent,
    ApprovalRequestedEvent,
    CallRepairedEvent,
    ToolCallEvent,
    ToolFailedEvent,
    ToolProgressEvent,
    ToolResultsEvent,
)
from actors.core.values.identity import CallId


class SubagentEvent(StreamEvent, frozen=True):
    """An event of a subagent's session, in the stream of its parent session. Ephemeral in the parent's stream.

    Args:
        path: The calls that lead to the subagent. The first of them is a call of the parent session.
        session: The subagent's session id.
        event: The subagent's event. Its `seq` is a position in the subagent's own log.
    """

    type: ClassVar[Literal["subagent"]] = "subagent"
    path: tuple[CallId, ...]
    session: str
    event: "OwnEvent"


_Ask: TypeAlias = (
    AskStartedEvent
    | TurnStartedEvent
    | FailoverEvent
    | MemberSkippedEvent
    | TurnPausedEvent
    | TurnResumedEvent
    | TurnEndedEvent
)
_Round: TypeAlias = (
    RequestSentEvent
    | RequestRenderedEvent
    | RequestFailedEvent
    | TextEvent
    | ThinkingEvent
    | MessageEvent
    | FormatRequestedEvent
    | LaneRewrittenEvent
)
_Tool: TypeAlias = (
    ToolCallEvent
    | CallRepairedEvent
    | ToolProgressEvent
    | ToolFailedEvent
    | ToolResultsEvent
    | ApprovalRequestedEvent
    | ApprovalDecidedEvent
)
_Session: TypeAlias = (
    SessionOpenedEvent
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
)
OwnEvent: TypeAlias = _Ask | _Round | _Tool | _Session | TerminalEvent
"""An event of the session itself rather than of a subagent."""

SessionEvent: TypeAlias = OwnEvent | SubagentEvent
"""Any stream event. The union is closed, so a `match` over an event can be exhaustive."""


def is_droppable(event: SessionEvent) -> bool:
    """Return True if the event is ephemeral or comes from a subagent. A slow reader may miss this event."""
    return not isinstance(event, DurableEvent)
