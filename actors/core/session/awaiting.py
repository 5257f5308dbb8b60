"""Compute the pending and the approved calls of a paused turn, and the result that its ask returns meanwhile.

The session actor and the turn driver use this module when a turn waits for external results or approvals.

In:  the state of a session whose turn is paused, and its ledger.
Out: the calls that still wait; the approved calls, which run when no call waits any more; the `awaiting` result of the
     ask.

The session's state contains everything about a paused turn, so the session's actors may be stopped while the turn
waits.
"""

from actors.core.ledger import Ledger, is_repeated
from actors.core.log.events import ApprovalDecided
from actors.core.session.publishing import AskFold, OpenBatch, Publisher, outcome_of
from actors.core.session.state import Pause, SessionState
from actors.core.stream_events.results import AskResult, PendingCall
from actors.core.values.content import ToolCall
from actors.core.values.identity import Binding, CallId, content_name
from actors.core.values.progress import AskProgress, Attempt
from actors.core.values.stream import Usage

LATE = (
    "no turn waits for these calls any more; new results are kept and sent to the model with the next message"
)


def digest(call: ToolCall) -> str:
    """Return a digest of a call's tool name and arguments, as 16 hexadecimal digits."""
    return content_name(call.name.encode() + b"\0" + call.json)[:16]


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
        dropped=ask.left_out,
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
    ask = AskFold(state.bound or Binding("none", ""), list(progress.attempts), progress.rounds)
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
