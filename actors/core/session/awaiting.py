"""What a turn waits for: which of its calls have neither a result nor a decision, and which were approved of.

In:  the state of a session whose turn waits, and its ledger.
Out: the calls that are awaited still; those that are to be run when none is; how the ask stands.

Nothing else is kept of a turn that waits, so it does not matter whether its session had actors all the while.
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
    "no turn waited for this any more; what is new in it is kept, and the model is told with the next message"
)


def digest(call: ToolCall) -> str:
    """Return what names a call's tool and arguments: 16 hexadecimal digits."""
    return content_name(call.name.encode() + b"\0" + call.json)[:16]


def pending(state: SessionState, ledger: Ledger) -> tuple[PendingCall, ...]:
    """Return the calls that the turn waits for still, in call order."""
    if (pause := state.pause) is None:
        return ()
    external, decided = pause.awaited.external, {each.call_id for each in pause.decisions}
    waited = {*external, *pause.awaited.approvals} - decided
    return tuple(
        [
            PendingCall(call, "external" if call.id in external else "approval", digest(call))
            for call in _scheduled(state, ledger)
            if call.id in waited and _is_open(ledger, call.id)
        ]
    )


def approved(state: SessionState, ledger: Ledger) -> tuple[ToolCall, ...]:
    """Return the calls that somebody approved of and that have not run, with the arguments they are to run with."""
    if (pause := state.pause) is None:
        return ()
    allowed = {each.call_id: each for each in pause.decisions if each.verdict == "allow"}
    return tuple(
        [
            edited(call, allowed[call.id])
            for call in _scheduled(state, ledger)
            if call.id in allowed and _is_open(ledger, call.id)
        ]
    )


def edited(call: ToolCall, decision: ApprovalDecided) -> ToolCall:
    """Return a call with the arguments of the decision, if that has any."""
    return call if decision.arguments is None else call.with_arguments(decision.arguments)


def so_far(state: SessionState, calls: tuple[PendingCall, ...]) -> AskResult:
    """Return how an ask stands whose turn waits for these calls."""
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


def publisher_at(state: SessionState, ledger: Ledger, number: int = 0) -> Publisher:
    """Return a publisher that continues in the open turn at the log's end, as one that has read the whole log would.

    `number`: the last round of the turn, unless the turn waits for its caller: then the state has it.
    """
    progress = AskProgress()
    if (pause := state.pause) is not None:
        progress, number = pause.awaited.ask_so_far, pause.awaited.turn_so_far.rounds
    calls = _scheduled(state, ledger) if state.history.length else ()
    batch, known = OpenBatch.of(calls), [ledger.get(call.id) for call in calls]
    for item in known:
        if item is not None and item.status != "pending":
            batch.ends[item.call_id] = outcome_of(item.end, item.cancelled)
            batch.repeated += is_repeated(item.end)
    ask = AskFold(state.bound or Binding("none", ""), list(progress.attempts), progress.rounds)
    return Publisher(0, state.turns, number, ask, batch)


def late(state: SessionState) -> AskResult:
    """Return the result for a caller whose results or decisions no turn waits for."""
    return AskResult("", "late", state.bound or Binding("none", ""), (), 0, Usage(), LATE, turn=state.turns)


def _calls(state: SessionState) -> tuple[ToolCall, ...]:
    return state.history[-1].calls


def _scheduled(state: SessionState, ledger: Ledger) -> tuple[ToolCall, ...]:
    """Return those calls with the arguments that they were scheduled with, which may be repaired."""
    known = [(call, ledger.get(call.id)) for call in _calls(state)]
    return tuple(
        [
            call if item is None or item.arguments is None else call.as_scheduled(item.arguments)
            for call, item in known
        ]
    )


def _is_open(ledger: Ledger, call_id: CallId) -> bool:
    known = ledger.get(call_id)
    return known is None or known.status == "pending"
