"""Publishing: what readers are shown of a session's log.

In:  the events of a log, from its first, one after the other.
Out: for each, the durable events of a stream: those that an ask's own reader is shown while it happens.

The match in `Publisher.published` is the one table from the log to the stream. A reader who comes late folds the log
with it, and sees what the first one saw. Of one thing the order differs: an ask's own stream ends with `complete` or
`error`, even if what it held (a switch, other tools) is settled behind them in the log.
"""

from typing import assert_never

from msgspec import Struct, field

from actors.core.ledger import is_repeated
from actors.core.log import events
from actors.core.log.events import (
    ApprovalDecided,
    Awaited,
    Bound,
    Cancelled,
    Completion,
    EpochBegan,
    Event,
    Instructed,
    RequestSent,
    RoundEnded,
    Submitted,
    TurnEnded,
)
from actors.core.session.state import SessionState
from actors.core.stream_events.feed import (
    AskStatus,
    CompleteEvent,
    ErrorEvent,
    PendingCall,
    SessionEvent,
    StatusEvent,
    ToolCallEvent,
    TurnResult,
    switched,
)
from actors.core.values.content import Message, ToolCall
from actors.core.values.identity import Binding, CallId
from actors.core.values.packed import unpack
from actors.core.values.progress import Attempt
from actors.core.values.stream import Cut, Usage

NOBODY = Binding("none", "")
NOT_RUN = ("never_started", "outcome_unknown")
"""Why calls were closed that no batch ran to its end: nothing is told of them as results."""

_NOTHING: tuple[SessionEvent, ...] = ()


def submitted(event: Submitted, turn: int, seq: int) -> StatusEvent:
    """Return what is shown of a user's message; `turn` is the one it begins."""
    return StatusEvent("submitted", seq, turn, message=unpack(event.message))


def instructed(event: Instructed, turn: int, seq: int) -> StatusEvent:
    """Return what is shown of words to the model on its answer."""
    return StatusEvent("instructed", seq, turn, message=unpack(event.message))


def settlement(
    event: events.Configured | events.SwitchApplied | events.SwitchFailed, seq: int, turn: int
) -> StatusEvent:
    """Return what is shown of what takes effect between asks: a switch, another system prompt, other tools."""
    if isinstance(event, events.Configured):
        return StatusEvent("configured", seq, turn, detail=event.preamble)
    return switched(event, seq, turn)


def shrunk(event: events.Shortened | events.Compacted, turn: int, seq: int) -> StatusEvent:
    """Return what is shown of a history that was made shorter."""
    if isinstance(event, events.Shortened):
        return StatusEvent("shortened", seq, turn, detail=f"{len(event.results)} results")
    detail = f"{event.stop - event.start} messages"
    return StatusEvent("compacted", seq, turn, detail=detail, message=unpack(event.summary))


def rewind_status(event: events.Rewound, turn: int, seq: int) -> StatusEvent:
    """Return what is shown of a history that was rewound, behind turn number `turn`."""
    return StatusEvent("rewound", seq, turn, detail=f"turn {event.turn}")


def begun(event: Bound, seq: int, *, is_failover: bool) -> tuple[SessionEvent, ...]:
    """Return what is shown of a turn that begins."""
    turn, binding = event.turn, event.binding
    started = StatusEvent("turn_started", seq, turn, detail=str(binding))
    if not is_failover:
        return (started,)
    return (StatusEvent("failover", seq, turn, detail=binding.backend, more=True), started)


def requested(event: RequestSent, seq: int) -> StatusEvent:
    """Return what is shown of a request before it is sent."""
    turn, number, binding = event.turn, event.round, event.binding
    omitted = tuple([omission.name for omission in event.omitted])
    return StatusEvent("request", seq, turn, number, str(binding), tools_off=event.tools_off, omitted=omitted)


def repaired(event: events.Scheduled, seq: int, turn: int, number: int) -> StatusEvent:
    """Return what is shown of a call whose arguments had a slip; `number` is that of its round."""
    return StatusEvent("call_repaired", seq, turn, number, event.tool, repaired=event.repaired)


def rewriting(event: EpochBegan) -> str:
    """Return the status that shows that a lane is rewritten."""
    return "media_replaced" if event.reason == "media" else "rewritten"


def awaited(event: Awaited, number: int, seq: int) -> StatusEvent:
    """Return what is shown of a turn that waits; `number` is that of its round. Behind it comes how the ask stands."""
    waits = tuple([(each, kind) for kind, ids in event.kinds for each in ids])
    return StatusEvent("awaiting", seq, event.turn, number, results=waits, more=True)


def brought(
    state: SessionState, ends: tuple[tuple[CallId, str], ...], repeated: int, seq: int
) -> StatusEvent:
    """Return what is shown of a batch whose last results were brought; `ends` is how each of its calls ended."""
    assert state.pause is not None
    place = seq, state.turns, state.pause.awaited.turn_so_far.rounds
    return StatusEvent("tool_results", *place, results=ends, repeated=repeated)


def decided(event: ApprovalDecided, call: ToolCall | None, turn: int, number: int, seq: int) -> StatusEvent:
    """Return what is shown of a decision about a call."""
    pending = None if call is None else PendingCall(call, "approval", event.digest)
    return StatusEvent("approval_decided", seq, turn, number, event.verdict, pending=pending)


def turn_ended(event: TurnEnded, seq: int, *, is_last: bool) -> StatusEvent:
    """Return what is shown of a turn's end; behind the last one of an ask comes how the ask came out."""
    status, slips = event.status, event.repaired
    return StatusEvent(
        "turn_ended", seq, event.turn, detail=status, more=is_last, repaired=slips, cause=event.cause
    )


def said(event: RoundEnded, message: Message, seq: int) -> tuple[SessionEvent, ...]:
    """Return what is shown of a model's message: it, and each of its calls."""
    turn, number, calls, fault = event.turn, event.round, message.calls, event.fault or ""
    last = calls[-1] if calls else None
    return (
        StatusEvent(
            "message",
            seq,
            turn,
            number,
            fault,
            message,
            cut=event.cut,
            left_out=event.left_out,
            more=bool(calls),
            usage=event.usage,
        ),
        *[
            ToolCallEvent(call.id, call.name, call.arguments, turn, number, seq, call is not last)
            for call in calls
        ],
    )


def terminal(result: TurnResult, seq: int) -> ErrorEvent | CompleteEvent:
    """Return the event that ends an ask's stream."""
    return (
        ErrorEvent(result, seq) if result.status in ("failed", "interrupted") else CompleteEvent(result, seq)
    )


def interrupted(bound: Binding | None, why: str, turn: int) -> TurnResult:
    """Return how an ask came out that a crash ended."""
    attempts = () if bound is None else (Attempt(bound, "interrupted", why),)
    return TurnResult("", "interrupted", bound or NOBODY, attempts, 0, Usage(), why, turn=turn)


class _AskSoFar(Struct):
    """What the log says of the ask that is under way."""

    binding: Binding = NOBODY
    attempts: list[Attempt] = field(default_factory=list)
    rounds: int = 0
    usage: Usage = field(default_factory=Usage)
    text: str = ""
    finish: str | None = None
    cut: Cut | None = None
    left_out: dict[str, int] = field(default_factory=dict)
    request: tuple[int, int] = (0, 0)  # turn and round of the last

    def requested(self, turn: int, number: int) -> None:
        self.finish = self.cut = None
        self.rounds += self.request != (turn, number)
        self.request = turn, number

    def answered(self, event: RoundEnded, message: Message) -> None:
        self.finish, self.cut = event.finish, event.cut
        self.usage += event.usage
        for kind, count in event.left_out:
            self.left_out[kind] = self.left_out.get(kind, 0) + count
        if event.round and (event.message is not None or event.fault is None):
            self.text = message.text

    def waits(self, event: Awaited, calls: tuple[ToolCall, ...]) -> TurnResult:
        """Take note of what a turn goes on from that waits; return how the ask stands."""
        ask, turn = event.ask_so_far, event.turn_so_far
        self.attempts, self.finish, self.cut = list(ask.attempts), None, None
        return TurnResult(
            self.text,
            "awaiting",
            self.binding,
            (*ask.attempts, Attempt(self.binding, "awaiting")),
            ask.rounds,
            ask.usage + turn.usage,
            left_out=ask.left_out,
            awaiting=calls,
            turn=event.turn,
        )

    def ended(self, event: TurnEnded) -> TurnResult | None:
        """Note how a turn ended; return how the ask came out, unless another turn follows."""
        if event.status == "interrupted":
            return interrupted(self.binding, event.why, event.turn)
        ended = Attempt(self.binding, event.status, event.why, event.cause, event.wait)
        self.attempts += (*event.retried, ended)
        if event.status == "handed_over":
            return None
        status: AskStatus = event.status
        return TurnResult(
            self.text,
            status,
            self.binding,
            tuple(self.attempts),
            self.rounds,
            self.usage,
            event.why,
            self.finish,
            self.cut,
            tuple(self.left_out.items()),
            turn=event.turn,
        )


class Publisher:
    """Folds one session's log. Mutable: it belongs to one reader.

    Args:
        seq: The number of the event before the first that it is given: 0, or that before an ask.
        turn: The number of the last turn until then.
    """

    def __init__(self, seq: int = 0, turn: int = 0) -> None:
        self.seq, self._turn = seq, turn
        self._round = 0
        self._asked = _AskSoFar()
        self._calls: dict[CallId, ToolCall] = {}  # those of the last message
        self._open: dict[CallId, str] = {}  # how each of them ended, empty for not yet
        self._repeated = 0

    def published(self, event: Event) -> tuple[SessionEvent, ...]:  # noqa: C901  a case for each event
        """Return what is shown of the log's next event."""
        self.seq += 1
        match event:
            case events.Opened(target=target):
                return self._status("opened", target)
            case Submitted():
                self._asked = _AskSoFar()
                return (submitted(event, self._turn + 1, self.seq),)
            case Instructed():
                return (instructed(event, self._turn, self.seq),)
            case Bound():
                return self._began(event)
            case events.RequestSent():
                self._round = event.round
                self._asked.requested(event.turn, event.round)
                return (requested(event, self.seq),)
            case RoundEnded():
                return self._said(event)
            case events.Scheduled(repaired=slips):
                self._schedule(event)
                return (repaired(event, self.seq, self._turn, self._round),) if slips else _NOTHING
            case events.Started() | events.Delegated():
                return _NOTHING
            case events.Returned() | events.Failed() | events.Denied() | events.Refused() | Cancelled():
                return self._closed(event)
            case events.EpochBegan(why=why):
                return self._status(rewriting(event), why)
            case events.ApprovalAsked(call_id=call_id, digest=digest):
                call = self._calls.get(call_id)
                pending = None if call is None else PendingCall(call, "approval", digest)
                return (StatusEvent("approval_asked", self.seq, self._turn, self._round, pending=pending),)
            case ApprovalDecided(call_id=call_id):
                return (decided(event, self._calls.get(call_id), self._turn, self._round, self.seq),)
            case Awaited():
                told = awaited(event, self._round, self.seq)
                waits = {call_id for call_id, _ in told.results}
                calls = tuple([call for call in self._calls.values() if call.id in waits])
                return (told, terminal(self._asked.waits(event, calls), self.seq))
            case events.Resumed():
                return self._status("resumed")
            case events.SwitchHeld(target=target):
                return self._status("switch_held", target)
            case events.SwitchSuperseded(target=target):
                return self._status("switch_superseded", target)
            case events.Configured() | events.SwitchApplied() | events.SwitchFailed():
                return (settlement(event, self.seq, self._turn),)
            case events.Shortened() | events.Compacted():
                return (shrunk(event, self._turn, self.seq),)
            case events.Rewound():
                return (rewind_status(event, self._turn, self.seq),)
            case TurnEnded():
                return self._turn_ended(event)
            case events.EventsLost(first=first, last=last):
                return self._status("events_lost", f"events {first} to {last}")
            case events.Closed(why=why):
                return self._status("closed", why)
            case _:
                assert_never(event)

    def _status(self, status: str, detail: str = "") -> tuple[SessionEvent, ...]:
        return (StatusEvent(status, self.seq, self._turn, detail=detail),)

    def _began(self, event: Bound) -> tuple[SessionEvent, ...]:
        self._turn, self._asked.binding = event.turn, event.binding
        return begun(event, self.seq, is_failover=bool(self._asked.attempts))

    def _said(self, event: RoundEnded) -> tuple[SessionEvent, ...]:
        packed = event.message
        message = Message("model", (), event.turn, self._asked.binding) if packed is None else unpack(packed)
        self._asked.answered(event, message)
        self._calls = {call.id: call for call in message.calls}
        self._open, self._repeated = dict.fromkeys(self._calls, ""), 0
        return said(event, message, self.seq)

    def _schedule(self, event: events.Scheduled) -> None:
        """Keep the arguments that a call was scheduled with, which may be repaired."""
        call = self._calls.get(event.call_id)
        if call is not None and event.repaired:
            self._calls[event.call_id] = call.as_scheduled(event.arguments)

    def _closed(self, event: Completion | Cancelled) -> tuple[SessionEvent, ...]:
        """Tell the results of a batch with the last of them. A result that comes late is in the ledger only."""
        if isinstance(event, Cancelled) and event.reason in NOT_RUN:
            self._open.clear()
        if self._open.get(event.call_id) != "":
            return _NOTHING
        self._open[event.call_id] = type(event).__name__.lower()
        self._repeated += is_repeated(event)
        if not all(self._open.values()):
            return _NOTHING
        results, place = tuple(self._open.items()), (self.seq, self._turn, self._round)
        return (StatusEvent("tool_results", *place, results=results, repeated=self._repeated),)

    def _turn_ended(self, event: TurnEnded) -> tuple[SessionEvent, ...]:
        result = self._asked.ended(event)
        told = turn_ended(event, self.seq, is_last=result is not None)
        self._asked = self._asked if result is None else _AskSoFar()
        return (told,) if result is None else (told, terminal(result, self.seq))
