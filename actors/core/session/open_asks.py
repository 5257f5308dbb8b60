"""Derive the state of an unfinished ask from the log: its start, its pending calls, and the recovery of its turn.

In:  the events of a log, and the state that results from them.
Out: a `Publisher` that begins at the first event of the ask; the calls of a paused turn that still wait, the approved
     calls, which run when no call waits any more, and the `awaiting` result of the ask; or, for a log that ends inside
     a turn, the started calls that may run again, with the arguments of their first run.

`actors.journal.session_events` reads on from a sequence number. A `Publisher` needs no events before the ask, so
continuing near the end of a long log costs no more than near its start.

The session actor and the turn driver ask for pending calls when a turn waits for external results or approvals. The
session's state contains everything about a paused turn, so the session's actors may be stopped while the turn waits.

The runtime decides about recovery when it resumes or forks a session. A call that started may have taken effect. It
runs again only if its `Started` event declares it repeatable, and at most `STARTS` times, because the call itself may
be the cause of the crash.
"""

from collections import Counter
from collections.abc import Sequence

from actors.core.data.record import replace
from actors.core.ledger import Ledger, is_repeated
from actors.core.log.call_events import Cancelled, Started
from actors.core.log.events import (
    ApprovalDecided,
    AskStarted,
    Closed,
    LogEvent,
    Opened,
    RequestSent,
    TurnEnded,
    TurnStarted,
)
from actors.core.session.publishing import AskResultBuilder, OpenBatch, Publisher, outcome_of
from actors.core.session.state import Pause, SessionState
from actors.core.stream_events.ask_events import AskResult, PendingCall
from actors.core.values.content import ToolCall
from actors.core.values.identity import Binding, CallId, content_digest
from actors.core.values.progress import AskProgress, Attempt
from actors.core.values.stream import Usage

LATE = (
    "no turn waits for these calls any more; new results are kept and sent to the model with the next message"
)
FORKED = "the session was forked during the ask"
STARTS = 3
"""Maximum number of times that a call may start, including its first run."""


class AskStartSearch:
    """A backward search through a log for the start of an ask. `is_found` becomes True when the search is complete."""

    is_found: bool

    def __init__(self) -> None:
        self._seq = self._turn = 0
        self._has_ask = self.is_found = False

    def search(self, after: int, events: Sequence[LogEvent]) -> None:
        """Search one page of the log. The first event of the page has the number `after` + 1.

        Pass the last page first, then the page before it, and so on.
        """
        for seq, event in zip(range(after + len(events), after, -1), reversed(events), strict=True):
            if not self._has_ask:
                self._has_ask, self._seq = isinstance(event, AskStarted), seq - 1
            elif isinstance(event, TurnStarted | TurnEnded):
                self._turn, self.is_found = event.turn, True
                return

    def publisher(self) -> Publisher:
        """Return a publisher that begins at the ask that was found, or at the start of the log if none was found."""
        return Publisher(self._seq, self._turn) if self._has_ask else Publisher()


def digest(call: ToolCall) -> str:
    """Return a digest of a call's tool name and arguments, as 16 hexadecimal digits."""
    return content_digest(call.name.encode() + b"\0" + call.json)[:16]


def pending_calls(state: SessionState, ledger: Ledger) -> tuple[PendingCall, ...]:
    """Return the paused turn's calls that still lack a result or a decision, in call order."""
    if (pause := state.pause) is None:
        return ()
    external, decided = pause.awaited.external, {each.call_id for each in pause.decisions}
    waited = {*external, *pause.awaited.approvals} - decided
    return tuple(
        [
            PendingCall(call, "external" if call.id in external else "approval", digest(call))
            for call in _calls_as_scheduled(state, ledger)
            if call.id in waited and _is_open(ledger, call.id)
        ]
    )


def approved_calls(state: SessionState, ledger: Ledger) -> tuple[ToolCall, ...]:
    """Return the approved calls that have not run, in call order, with the arguments that the approval set."""
    if (pause := state.pause) is None:
        return ()
    allowed = {each.call_id: each for each in pause.decisions if each.verdict == "allow"}
    return tuple(
        [
            with_edits(call, allowed[call.id])
            for call in _calls_as_scheduled(state, ledger)
            if call.id in allowed and _is_open(ledger, call.id)
        ]
    )


def with_edits(call: ToolCall, decision: ApprovalDecided) -> ToolCall:
    """Return the call with the arguments that the decision sets.

    A decision without arguments leaves the call unchanged.
    """
    return call if decision.arguments is None else call.with_arguments(decision.arguments)


def paused_result(state: SessionState, calls: tuple[PendingCall, ...]) -> AskResult:
    """Return the `awaiting` result of an ask whose turn waits for these calls."""
    pause, binding = state.pause, state.bound
    assert isinstance(pause, Pause)
    assert isinstance(binding, Binding)
    turn, ask = pause.awaited.turn_so_far, pause.awaited.ask_so_far
    return AskResult(
        state.history[-1].text,
        "awaiting",
        binding,
        (*ask.attempts, Attempt(binding, "awaiting")),
        ask.rounds,
        ask.usage + turn.usage,
        dropped=ask.dropped,
        pending_calls=tuple([each.call for each in calls]),
        refusals=ask.refusals,
        turn=state.turns,
    )


def publisher_at(state: SessionState, ledger: Ledger, round_number: int = 0) -> Publisher:
    """Return a publisher of stream events that continues at the end of a log.

    The publisher behaves as if it had read the complete log.

    Args:
        state: The session's state at the log's end.
        ledger: The ledger at the log's end.
        round_number: Number of the turn's last round. Ignored for a paused turn, whose state contains the number.
    """
    progress = AskProgress()
    if (pause := state.pause) is not None:
        progress, round_number = pause.awaited.ask_so_far, pause.awaited.turn_so_far.rounds
    calls = _calls_as_scheduled(state, ledger) if state.history.length else ()
    batch, known = OpenBatch.of(calls), [ledger.get(call.id) for call in calls]
    for item in known:
        if item is not None and item.status != "pending":
            batch.ends[item.call_id] = outcome_of(item.end, item.cancelled)
            batch.repeated += is_repeated(item.end)
    ask = AskResultBuilder(state.bound or Binding("none", ""), progress.attempts, progress.rounds)
    return Publisher(0, state.turns, round_number, ask, batch)


def late_result(state: SessionState) -> AskResult:
    """Return the `late` result for a caller whose results or decisions arrive after the turn stopped waiting."""
    return AskResult("", "late", state.bound or Binding("none", ""), (), 0, Usage(), LATE, turn=state.turns)


def _last_calls(state: SessionState) -> tuple[ToolCall, ...]:
    return state.history[-1].calls


def _calls_as_scheduled(state: SessionState, ledger: Ledger) -> tuple[ToolCall, ...]:
    """Return the calls of the last message. Arguments that were repaired for scheduling replace the model's."""
    known = [(call, ledger.get(call.id)) for call in _last_calls(state)]
    return tuple(
        [
            call if item is None or item.arguments is None else call.as_scheduled(item.arguments)
            for call, item in known
        ]
    )


def _is_open(ledger: Ledger, call_id: CallId) -> bool:
    known = ledger.get(call_id)
    return known is None or known.status == "pending"


def needs_recovery(state: SessionState) -> bool:
    """Return True if the log ends with work to finish: an open turn that waits for no caller, or a deferred switch."""
    if state.pause is not None:
        return not pending_calls(state, state.ledger)
    return state.bound is not None or state.held is not None


def repeatable_calls(state: SessionState, events: Sequence[LogEvent]) -> tuple[ToolCall, ...]:
    """Return the calls that started, have no completion and may run again, in call order."""
    if state.bound is None or state.pause is not None or not state.history.length:
        return ()
    begun = Counter([event.call_id for event in events if isinstance(event, Started)])
    decided = {event.call_id: event for event in events if isinstance(event, ApprovalDecided)}
    return tuple(
        [
            with_edits(call, decided[call.id]) if call.id in decided else call
            for call in state.history[-1].calls
            if 0 < begun[call.id] < STARTS and _may_run_again(state, call.id)
        ]
    )


def last_round(events: Sequence[LogEvent]) -> int:
    """Return the number of the last round in which the last turn sent a request; 0 if the turn has sent none."""
    for event in reversed(events):
        if isinstance(event, RequestSent):
            return event.round
        if isinstance(event, TurnStarted):
            break
    return 0


def fork_log(events: Sequence[LogEvent], session: str, key: str) -> tuple[LogEvent, ...]:
    """Return the log of a new session that continues from these events of another session.

    The new session cannot receive results of calls in flight, so an open turn ends as interrupted and none of its calls
    runs again. A turn that waits for pending calls stays paused.
    """
    first, *rest = events
    assert isinstance(first, Opened)
    log = (
        replace(first, session=session, key=key, parent_key=""),
        *(each for each in rest if type(each) is not Closed),
    )
    state = SessionState()
    for event in log:
        state = state.apply(event)
    if state.bound is None or (state.pause is not None and pending_calls(state, state.ledger)):
        return log
    return (*log, *_closing_events(state), TurnEnded(state.turns, "interrupted", FORKED))


def _closing_events(state: SessionState) -> list[Cancelled]:
    """Return the events that close every open call of a forked log."""
    calls = state.history[-1].calls if state.history.length else ()
    ends = [Cancelled(call.id, "never_started") for call in calls if call.id not in state.ledger]
    for known in state.ledger.interactions():
        if known.status == "pending":
            ends.append(Cancelled(known.call_id, "outcome_unknown" if known.started else "never_started"))
    return ends


def _may_run_again(state: SessionState, call_id: CallId) -> bool:
    known = state.ledger.get(call_id)
    return known is not None and known.status == "pending" and known.effects != "once"
