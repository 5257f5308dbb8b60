"""Stream events: their classes, their JSON Schema, and functions that encode them as JSON or as server-sent events.

`SessionEvent` is the union of all event classes. Use `match` on the class, or compare `event.type`:

    async for event in session.stream("Weather in Oslo?"):
        match event:
            case TextEvent(text=text):
                print(text, end="")
            case CompleteEvent(result=result):
                print(result.usage)
            case _:
                pass
"""

from actors.core.policy.routing import SkippedMember
from actors.core.schemas.repair import Repair
from actors.core.stream_events.ask_events import (
    ApprovalDecision,
    AskStartedEvent,
    AwaitedCall,
    CallEnd,
    CallOutcome,
    CompleteEvent,
    ErrorEvent,
    FailoverEvent,
    MemberSkippedEvent,
    PendingCall,
    TerminalEvent,
    TurnEndedEvent,
    TurnPausedEvent,
    TurnResumedEvent,
    TurnStartedEvent,
)
from actors.core.stream_events.event_json import SCHEMA, event_json, sse_frame
from actors.core.stream_events.events import (
    CompactedEvent,
    ConfiguredEvent,
    EventsLostEvent,
    OwnEvent,
    ResultsTrimmedEvent,
    ResyncEvent,
    RewoundEvent,
    SessionClosedEvent,
    SessionEvent,
    SessionOpenedEvent,
    SubagentEvent,
    SwitchAppliedEvent,
    SwitchFailedEvent,
    SwitchQueuedEvent,
    SwitchSupersededEvent,
    ToolChangeDeferredEvent,
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
from actors.core.values.progress import Attempt, Cause, RefusedRequest

__all__ = [
    "SCHEMA",
    "ApprovalDecidedEvent",
    "ApprovalDecision",
    "ApprovalRequestedEvent",
    "AskStartedEvent",
    "Attempt",
    "AwaitedCall",
    "CallEnd",
    "CallOutcome",
    "CallRepairedEvent",
    "Cause",
    "CompactedEvent",
    "CompleteEvent",
    "ConfiguredEvent",
    "ErrorEvent",
    "EventsLostEvent",
    "FailoverEvent",
    "FormatRequestedEvent",
    "LaneRewrittenEvent",
    "MemberSkippedEvent",
    "MessageEvent",
    "OwnEvent",
    "PendingCall",
    "RefusedRequest",
    "Repair",
    "RequestFailedEvent",
    "RequestRenderedEvent",
    "RequestSentEvent",
    "ResultsTrimmedEvent",
    "ResyncEvent",
    "RewoundEvent",
    "SessionClosedEvent",
    "SessionEvent",
    "SessionOpenedEvent",
    "SkippedMember",
    "SubagentEvent",
    "SwitchAppliedEvent",
    "SwitchFailedEvent",
    "SwitchQueuedEvent",
    "SwitchSupersededEvent",
    "TerminalEvent",
    "TextEvent",
    "ThinkingEvent",
    "ToolCallEvent",
    "ToolChangeDeferredEvent",
    "ToolFailedEvent",
    "ToolProgressEvent",
    "ToolResultsEvent",
    "TurnEndedEvent",
    "TurnPausedEvent",
    "TurnResumedEvent",
    "TurnStartedEvent",
    "event_json",
    "sse_frame",
]
