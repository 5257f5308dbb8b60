"""Derive the durable stream events of a session from its log.

In:  the events of a log, in order.
Out: for each log event, the stream events that readers receive.

`Publisher` is the only producer of durable stream events. `actors.journal.commands` passes it the events of an ask
when they become durable, and `session.events()` passes it the events of the log. So both kinds of readers receive the
same events, except at the end of an ask. There, the ask's stream contains the complete `AskResult`, which the session
creates. If a deferred switch is applied after the ask, its event precedes the result in the ask's stream.
"""

from collections.abc import Iterable
from typing import TypeAlias, assert_never

from msgspec import Struct, field

from actors.core.ledger import is_repeated
from actors.core.log import events
from actors.core.log.call_events import (
    CallEvent,
    Cancelled,
    Completion,
    Denied,
    End,
    Failed,
    Reason,
    Refused,
    Returned,
    Scheduled,
    Started,
)
from actors.core.log.events import (
    AskEvent,
    HistoryEvent,
    LogEvent,
    RoundEnded,
    SwitchEvent,
    TurnEnded,
    TurnPaused,
)
from actors.core.stream_events.ask_events import (
    AskResult,
    AskStartedEvent,
    AskStatus,
    AwaitedCall,
    CallEnd,
    CallOutcome,
    CompleteEvent,
    ErrorEvent,
    FailoverEvent,
    PendingCall,
    TerminalEvent,
    TurnEndedEvent,
    TurnPausedEvent,
    TurnResumedEvent,
    TurnStartedEvent,
)
from actors.core.stream_events.events import (
    CompactedEvent,
    ConfiguredEvent,
    EventsLostEvent,
    ResultsTrimmedEvent,
    RewoundEvent,
    SessionClosedEvent,
    SessionEvent,
    SessionOpenedEvent,
    SwitchAppliedEvent,
    SwitchFailedEvent,
    SwitchQueuedEvent,
    SwitchSupersededEvent,
)
from actors.core.stream_events.round_events import (
    ApprovalDecidedEvent,
    ApprovalRequestedEvent,
    CallRepairedEvent,
    FormatRequestedEvent,
    LaneRewrittenEvent,
    MessageEvent,
    RequestSentEvent,
    ToolCallEvent,
    ToolResultsEvent,
)
from actors.core.values.content import Message, ToolCall
from actors.core.values.identity import Binding, CallId
from actors.core.values.packed import unpack
from actors.core.values.progress import Attempt
from actors.core.values.stream import Cut, Usage

NO_BINDING = Binding("none", "")
_RemainingEvent: TypeAlias = (
    events.Opened | events.Configured | HistoryEvent | events.EventsLost | events.Closed
)
_NOTHING: tuple[SessionEvent, ...] = ()
_OUTCOMES: dict[type, CallOutcome] = {
    Returned: "returned",
    Failed: "failed",
    Denied: "denied",
    Refused: "refused",
}
_CANCELLED: dict[Reason, CallOutcome] = {
    "never_started": "never_started",
    "outcome_unknown": "outcome_unknown",
}
"""The outcome of a call by the reason for which it was closed. For all other reasons, the outcome is `cancelled`."""


def outcome_of(end: End | None, reason: Reason | None = None) -> CallOutcome:
    """Return the outcome of a call, given its completion `end` or the `reason` for closing it."""
    if end is not None:
        return _OUTCOMES.get(type(end), "returned")
    return "cancelled" if reason is None else _CANCELLED.get(reason, "cancelled")


def terminal_event(result: AskResult, seq: int) -> TerminalEvent:
    """Return the last event of an ask's stream. `seq` is the number of the log event that ended the ask."""
    return (
        ErrorEvent(seq, result) if result.status in ("failed", "interrupted") else CompleteEvent(seq, result)
    )


def interrupted_result(bound: Binding | None, why: str, turn: int) -> AskResult:
    """Return the result of an ask that a crash interrupted. `why` is the error message."""
    attempts = () if bound is None else (Attempt(bound, "interrupted", why),)
    return AskResult("", "interrupted", bound or NO_BINDING, attempts, 0, Usage(), why, turn=turn)


class AskResultBuilder(Struct):
    """Computes the result of an ask from the events of its log.

    The attributes are the result's fields so far.

    Args:
        usage_by_binding: The usage of each binding; `usage` is the sum.
    """

    binding: Binding = NO_BINDING
    attempts: tuple[Attempt, ...] = ()
    rounds: int = 0
    usage: Usage = field(default_factory=Usage)
    text: str = ""
    finish: str | None = None
    cut: Cut | None = None
    left_out: dict[str, int] = {}
    request: tuple[int, int] = (0, 0)  # the numbers of the last request's turn and round
    usage_by_binding: dict[Binding, Usage] = {}

    @property
    def is_handed_over(self) -> bool:
        """True if the last turn was handed over to another binding."""
        return bool(self.attempts) and self.attempts[-1].status == "handed_over"

    def record_request(self, turn: int, round_number: int) -> None:
        self.finish = self.cut = None
        self.rounds += self.request != (turn, round_number)
        self.request = turn, round_number

    def record_answer(self, event: RoundEnded, message: Message) -> None:
        self.finish, self.cut = event.finish, event.incomplete
        self.usage += event.usage
        self.usage_by_binding[self.binding] = self.usage_by_binding.get(self.binding, Usage()) + event.usage
        for kind, count in event.dropped:
            self.left_out[kind] = self.left_out.get(kind, 0) + count
        if event.round and (event.message is not None or event.fault is None):
            self.text = message.text

    def pause(self, event: TurnPaused, calls: tuple[ToolCall, ...]) -> AskResult:
        """Return the result of an ask whose turn waits. Prepare the fields for the continuation of the turn."""
        ask, turn = event.ask_so_far, event.turn_so_far
        self.attempts, self.finish, self.cut = ask.attempts, None, None
        return AskResult(
            self.text,
            "awaiting",
            self.binding,
            (*ask.attempts, Attempt(self.binding, "awaiting")),
            ask.rounds,
            ask.usage + turn.usage,
            dropped=ask.dropped,
            pending_calls=calls,
            turn=event.turn,
        )

    def end_turn(self, event: TurnEnded) -> AskResult | None:
        """Record the end of a turn. Return the ask's result, or None if another turn of the ask follows."""
        if event.status == "interrupted":
            self.attempts += (Attempt(self.binding, "interrupted", event.reason),)
            return interrupted_result(self.binding, event.reason, event.turn)
        ended = Attempt(self.binding, event.status, event.reason, event.cause, event.wait)
        self.attempts += (*event.retried, ended)
        if event.status == "handed_over":
            return None
        status: AskStatus = event.status
        return AskResult(
            self.text,
            status,
            self.binding,
            self.attempts,
            self.rounds,
            self.usage,
            event.reason,
            self.finish,
            self.cut,
            tuple(self.left_out.items()),
            turn=event.turn,
        )


class OpenBatch(Struct):
    """The calls of the model's last message, and their outcomes.

    Args:
        calls: The calls by id, with the arguments with which they run.
        ends: The outcome of each call; None while the call is open.
        repeated: Number of calls that repeat an earlier call.
    """

    calls: dict[CallId, ToolCall] = {}
    ends: dict[CallId, CallOutcome | None] = {}
    repeated: int = 0

    @staticmethod
    def of(calls: Iterable[ToolCall]) -> "OpenBatch":
        """Return a batch of these calls, all of them open."""
        by_id = {call.id: call for call in calls}
        return OpenBatch(by_id, dict.fromkeys(by_id))

    def update_arguments(self, event: Scheduled) -> None:
        """Update the arguments of a call if they were repaired when it was scheduled."""
        call = self.calls.get(event.call_id)
        if call is not None and event.repaired:
            self.calls[event.call_id] = call.as_scheduled(event.arguments)

    def close_call(self, event: Completion | Cancelled) -> tuple[CallEnd, ...]:
        """Record the end of a call. After the last open call, return the outcomes of all calls; otherwise return ().

        A late result changes nothing.
        """
        if self.ends.get(event.call_id, "gone") is not None:
            return ()
        end, reason = (None, event.reason) if isinstance(event, Cancelled) else (event, None)
        self.ends[event.call_id] = outcome_of(end, reason)
        self.repeated += is_repeated(event)
        if None in self.ends.values():
            return ()
        return tuple([CallEnd(call_id, outcome) for call_id, outcome in self.ends.items() if outcome])


class Publisher:
    """Converts the log of one session to stream events. A publisher has state, so each reader needs its own.

    Args:
        seq: The number of the log event after which publishing begins.
        turn: The number of the last turn up to this event.
        round_number: The number of the last round, if publishing begins in a paused turn.
        ask: The ask that is open after this event.
        batch: The calls of the last message up to this event.
    """

    seq: int

    def __init__(
        self,
        seq: int = 0,
        turn: int = 0,
        round_number: int = 0,
        ask: AskResultBuilder | None = None,
        batch: OpenBatch | None = None,
    ) -> None:
        self.seq, self._turn, self._round = seq, turn, round_number
        self._ask = ask or AskResultBuilder()
        self._suspended: AskResultBuilder | None = None
        self._batch = batch or OpenBatch()

    @property
    def totals(self) -> AskResultBuilder:
        """The builder of the open ask's result, with the totals so far. If no ask is open, all fields are defaults."""
        return self._ask

    @property
    def is_aside(self) -> bool:
        """True if the open turn only compacts the history and belongs to no ask."""
        return self._suspended is not None

    def publish(self, event: LogEvent) -> tuple[SessionEvent, ...]:
        """Return the stream events for the next event of the log."""
        self.seq += 1
        if isinstance(event, CallEvent):
            return self._publish_call_event(event)
        if isinstance(event, AskEvent):
            return self._publish_ask_event(event)
        if isinstance(event, SwitchEvent):
            return (self._switch_event(event),)
        return (self._session_event(event),)

    def _publish_call_event(self, event: CallEvent) -> tuple[SessionEvent, ...]:
        place = self.seq, self._turn, self._round
        match event:
            case Scheduled():
                self._batch.update_arguments(event)
                repaired = (*place, event.call_id, event.tool, event.repaired)
                return (CallRepairedEvent(*repaired),) if event.repaired else _NOTHING
            case Started():
                return _NOTHING
            case Returned() | Failed() | Denied() | Refused() | Cancelled():
                results = self._batch.close_call(event)
                return (ToolResultsEvent(*place, results, self._batch.repeated),) if results else _NOTHING
            case _:
                assert_never(event)

    def _publish_ask_event(self, event: AskEvent) -> tuple[SessionEvent, ...]:
        seq, turn = self.seq, self._turn
        match event:
            case events.AskStarted():
                self._ask = AskResultBuilder()
                key = "" if event.key is None else event.key.name
                return (AskStartedEvent(seq, turn + 1, unpack(event.message), key),)
            case events.FormatRequested():
                return (FormatRequestedEvent(seq, turn, unpack(event.message)),)
            case events.TurnStarted():
                return self._publish_turn_start(event)
            case events.RequestSent():
                return self._publish_request(event)
            case RoundEnded():
                return self._publish_round(event)
            case events.SubagentUsage():
                return _NOTHING
            case events.EpochBegan():
                return (LaneRewrittenEvent(seq, turn, event.binding, event.reason, event.detail),)
            case events.ApprovalAsked() | events.ApprovalDecided():
                return self._publish_approval(event)
            case TurnPaused():
                return self._publish_pause(event)
            case events.TurnResumed():
                return (TurnResumedEvent(seq, turn),)
            case TurnEnded():
                return self._publish_turn_end(event)
            case _:
                assert_never(event)

    def _switch_event(self, event: SwitchEvent) -> SessionEvent:
        place = self.seq, self._turn, event.target
        match event:
            case events.SwitchQueued():
                return SwitchQueuedEvent(*place)
            case events.SwitchSuperseded():
                return SwitchSupersededEvent(*place, event.replaced_by)
            case events.SwitchApplied():
                return SwitchAppliedEvent(*place)
            case events.SwitchFailed():
                return SwitchFailedEvent(*place, event.error)
            case _:
                assert_never(event)

    def _session_event(self, event: _RemainingEvent) -> SessionEvent:
        seq, turn = self.seq, self._turn
        match event:
            case events.Opened():
                return SessionOpenedEvent(seq, event.target)
            case events.Configured():
                return ConfiguredEvent(seq, turn, event.preamble)
            case events.ResultsTrimmed():
                return ResultsTrimmedEvent(seq, turn, len(event.results))
            case events.Compacted():
                return CompactedEvent(seq, turn, unpack(event.summary), event.stop - event.start)
            case events.Rewound():
                return RewoundEvent(seq, turn, event.turn)
            case events.EventsLost():
                return EventsLostEvent(seq, turn, event.first, event.last)
            case events.Closed():
                return SessionClosedEvent(seq, turn, event.reason)
            case _:
                assert_never(event)

    def _publish_turn_start(self, event: events.TurnStarted) -> tuple[SessionEvent, ...]:
        if not event.ask:
            self._ask, self._suspended = AskResultBuilder(), self._ask
        self._turn, self._ask.binding = event.turn, event.binding
        started = TurnStartedEvent(self.seq, event.turn, event.binding)
        if not self._ask.is_handed_over:
            return (started,)
        return (FailoverEvent(self.seq, event.turn, event.binding.backend), started)

    def _publish_request(self, event: events.RequestSent) -> tuple[SessionEvent, ...]:
        self._round = event.round
        self._ask.record_request(event.turn, event.round)
        omitted = tuple([omission.name for omission in event.omitted])
        place = self.seq, event.turn, event.round, event.binding
        return (RequestSentEvent(*place, event.tools_off, omitted),)

    def _publish_round(self, event: RoundEnded) -> tuple[SessionEvent, ...]:
        packed, binding = event.message, self._ask.binding
        message = Message("assistant", (), event.turn, binding) if packed is None else unpack(packed)
        self._ask.record_answer(event, message)
        self._batch = OpenBatch.of(message.calls)
        place, calls = (self.seq, event.turn, event.round), message.calls
        last = calls[-1] if calls else None
        return (
            MessageEvent(
                *place,
                message,
                event.usage,
                event.fault or "",
                event.incomplete,
                dict(event.dropped),
                more=bool(calls),
            ),
            *[ToolCallEvent(*place, call.id, call.name, call.arguments, call is not last) for call in calls],
        )

    def _publish_approval(
        self, event: events.ApprovalAsked | events.ApprovalDecided
    ) -> tuple[SessionEvent, ...]:
        place, pending = (self.seq, self._turn, self._round), self._pending_call(event)
        if isinstance(event, events.ApprovalDecided):
            return (ApprovalDecidedEvent(*place, event.verdict, pending),)
        return () if pending is None else (ApprovalRequestedEvent(*place, pending),)

    def _pending_call(self, event: events.ApprovalAsked | events.ApprovalDecided) -> PendingCall | None:
        call = self._batch.calls.get(event.call_id)
        return None if call is None else PendingCall(call, "approval", event.digest)

    def _publish_pause(self, event: TurnPaused) -> tuple[SessionEvent, ...]:
        awaited = (
            *[AwaitedCall(call_id, "external") for call_id in event.external],
            *[AwaitedCall(call_id, "approval") for call_id in event.approvals],
        )
        ids = {each.call_id for each in awaited}
        calls = tuple([call for call in self._batch.calls.values() if call.id in ids])
        result = self._ask.pause(event, calls)
        return (TurnPausedEvent(self.seq, event.turn, self._round, awaited), terminal_event(result, self.seq))

    def _publish_turn_end(self, event: TurnEnded) -> tuple[SessionEvent, ...]:
        result, seq = self._ask.end_turn(event), self.seq
        place = seq, event.turn, event.status, event.cause, event.repaired
        if result is None:
            return (TurnEndedEvent(*place),)
        if self._suspended is not None:
            self._ask, self._suspended = self._suspended, None
        elif event.ends_ask:
            self._ask = AskResultBuilder()
        return (TurnEndedEvent(*place, more=True), terminal_event(result, seq))
