"""Run a tool call that the host requests (`Session.call_tool`), in a separate turn without a model.

The log then contains the call as if a model had made it: a user message, a round with one call, and the result. Later
requests can therefore show the call to any provider.
"""

from actors.core.log.events import AskStarted, RoundEnded, TurnStarted, TurnStatus
from actors.core.schemas.repair import RepairMode
from actors.core.turn.steps import CloseStep
from actors.core.values.content import Message, ToolCall, ToolResult
from actors.core.values.identity import RUNTIME, mint
from actors.core.values.packed import Packed, pack
from actors.ledger.ledger_actor import DurableLedger
from actors.scheduler.scheduler_actor import RunBatch, StopBatch
from actors.scheduler.views import TurnView
from actors.session.inflight import AskInFlight
from actors.session.pending import HostCall
from actors.session.turn_log import TurnLog


async def run_host_call(
    ask: AskInFlight, turn_log: TurnLog, message: Packed, request: HostCall, repair: RepairMode
) -> None:
    """Run one tool call for the host program in a separate turn, and store its result in the request.

    Args:
        ask: The ask to which the call belongs in the log.
        turn_log: Writes the start and the end of the turn.
        message: The user message of this ask.
        request: The tool and its arguments.
        repair: The rule for repairing invalid arguments.
    """
    state = ask.log.state
    number, turn = state.asks + 1, state.turns + 1
    call = ToolCall(mint(state.calls + 1), request.name, json=request.arguments)
    ask.log.hold(AskStarted(number, message))
    turn_log.hold_start(TurnStarted(turn, number, RUNTIME))
    ledger, put = await ask.refs.ledger.ask(DurableLedger()), ask.sink.put
    view = TurnView(turn, 1, ask.log.state.history, ledger, put if ask.sink.is_watched else None)
    said = Message("assistant", (call,), turn)
    ask.log.hold(RoundEnded(turn, 1, pack(said), calls=1))
    batch = RunBatch((call,), ask.variables, view, repair=repair, approved=True)
    ask.set_stop(lambda context: context.send(ask.refs.scheduler, StopBatch()))
    try:
        ended = await ask.refs.scheduler.ask(batch)
    finally:
        ask.clear_stop()
    for delegated in ended.delegated:
        ask.log.hold(delegated)
    assert ended.snapshot is not None
    ask.ledger.keep_newer(ended.snapshot)
    known = ask.ledger.latest.get(call.id)
    assert known is not None
    request.result = known.completion or ToolResult(call.id, error=known.reason)
    status: TurnStatus = "cancelled" if ask.cancelled else "complete"
    await turn_log.write_end(RUNTIME, CloseStep(status, ""), ends_ask=True)
