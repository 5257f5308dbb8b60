"""Check that a `match` over all events is exhaustive, so type checkers report a forgotten event.

mypy checks this file with the tree, and pyright checks it with the package. Each comment that ignores an error is an
error itself once a type checker finds nothing to ignore.
"""

# pyright: reportUnnecessaryTypeIgnoreComment=error

from typing import assert_never, get_args

import pytest

from actors.events import (
    ApprovalDecidedEvent,
    ApprovalRequestedEvent,
    AskStartedEvent,
    CallRepairedEvent,
    CompactedEvent,
    CompleteEvent,
    ConfiguredEvent,
    ErrorEvent,
    EventsLostEvent,
    FailoverEvent,
    FormatRequestedEvent,
    LaneRewrittenEvent,
    MemberSkippedEvent,
    MessageEvent,
    RequestFailedEvent,
    RequestRenderedEvent,
    RequestSentEvent,
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
    TextEvent,
    ThinkingEvent,
    ToolCallEvent,
    ToolChangeDeferredEvent,
    ToolFailedEvent,
    ToolProgressEvent,
    ToolResultsEvent,
    TurnEndedEvent,
    TurnPausedEvent,
    TurnResumedEvent,
    TurnStartedEvent,
)
from actors.log_events import (
    ApprovalAsked,
    ApprovalDecided,
    AskStarted,
    Cancelled,
    Closed,
    Compacted,
    Configured,
    Denied,
    EpochBegan,
    EventsLost,
    Failed,
    FormatRequested,
    LogEvent,
    Opened,
    Refused,
    RequestSent,
    ResultsTrimmed,
    Returned,
    Rewound,
    RoundEnded,
    Scheduled,
    Started,
    SubagentUsage,
    SwitchApplied,
    SwitchFailed,
    SwitchQueued,
    SwitchSuperseded,
    TurnEnded,
    TurnPaused,
    TurnResumed,
    TurnStarted,
)
from tests.core.every_event import every_event


def group(event: SessionEvent) -> str:
    match event:
        case AskStartedEvent() | TurnStartedEvent() | FailoverEvent() | MemberSkippedEvent():
            return "start"
        case TurnPausedEvent() | TurnResumedEvent() | TurnEndedEvent() | CompleteEvent() | ErrorEvent():
            return "end"
        case RequestSentEvent() | RequestRenderedEvent() | RequestFailedEvent() | LaneRewrittenEvent():
            return "request"
        case TextEvent() | ThinkingEvent() | MessageEvent() | FormatRequestedEvent():
            return "text"
        case ToolCallEvent() | CallRepairedEvent() | ToolProgressEvent() | ToolFailedEvent():
            return "call"
        case ToolResultsEvent() | ApprovalRequestedEvent() | ApprovalDecidedEvent():
            return "call"
        case SwitchQueuedEvent() | SwitchAppliedEvent() | SwitchSupersededEvent() | SwitchFailedEvent():
            return "switch"
        case ConfiguredEvent() | ToolChangeDeferredEvent() | ResultsTrimmedEvent() | CompactedEvent():
            return "change"
        case RewoundEvent() | EventsLostEvent() | ResyncEvent() | SessionOpenedEvent() | SessionClosedEvent():
            return "session"
        case SubagentEvent():
            return "subagent"
        case _:
            assert_never(event)


def log_group(event: LogEvent) -> str:
    match event:
        case Opened() | Configured() | EventsLost() | Closed():
            return "session"
        case AskStarted() | FormatRequested() | TurnStarted() | TurnPaused() | TurnResumed() | TurnEnded():
            return "turn"
        case RequestSent() | RoundEnded() | EpochBegan() | SubagentUsage():
            return "request"
        case ApprovalAsked() | ApprovalDecided() | Scheduled() | Started():
            return "call"
        case Returned() | Failed() | Denied() | Refused() | Cancelled():
            return "end of a call"
        case SwitchQueued() | SwitchApplied() | SwitchSuperseded() | SwitchFailed():
            return "switch"
        case ResultsTrimmed() | Compacted() | Rewound():
            return "history"
        case _:
            assert_never(event)


def forgets_the_end_of_a_stream(event: CompleteEvent | ErrorEvent | SubagentEvent) -> str:
    match event:
        case CompleteEvent() | SubagentEvent():
            return "complete"
        case _:
            assert_never(event)  # type: ignore[arg-type]


def forgets_the_end_of_a_log(event: Opened | Configured | Closed) -> str:
    match event:
        case Opened() | Configured():
            return "open"
        case _:
            assert_never(event)  # type: ignore[arg-type]


def test_a_match_over_all_stream_events_returns_the_group_of_an_event() -> None:
    assert group(SwitchAppliedEvent(1, 1, "a")) == "switch"


@pytest.mark.parametrize("event", every_event(), ids=lambda event: type(event).__name__)
def test_a_match_over_all_log_events_returns_the_group_of_each_event(event: LogEvent) -> None:
    assert type(event) in get_args(LogEvent)
    assert log_group(event)


def test_a_match_without_a_case_for_an_event_raises_for_that_event() -> None:
    with pytest.raises(AssertionError, match="Closed"):
        forgets_the_end_of_a_log(Closed())
