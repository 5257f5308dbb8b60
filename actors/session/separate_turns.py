"""Run separate turns: a tool call that the host requests, and a compaction of the history.

A call that the host requests (`Session.call_tool`) runs in a turn without a model. The log then contains the call as if
a model had made it: a user message, a round with one call, and the result. Later requests can therefore show the call
to any provider.

A compaction runs before the next turn of an ask, or at the request of the host program. `actors.session.compactor`
shortens the history. This module decides when a compaction is needed and which backend writes the summary, and logs the
turn. The turn belongs to the ask that needs the compaction, or to no ask if the host program requested the compaction.
"""

from collections.abc import Awaitable, Callable

from actors.adapters.failure import TOO_LONG
from actors.core.history.compaction import TARGET_SHARE, CompactionResult
from actors.core.log.events import AskStarted, RoundEnded, TurnStarted, TurnStatus
from actors.core.schemas.repair import RepairMode
from actors.core.turn.steps import CloseStep
from actors.core.values.content import Message, ToolCall, ToolResult
from actors.core.values.identity import RUNTIME, Binding, mint
from actors.core.values.packed import Packed, pack
from actors.errors import ConfigError
from actors.ledger.ledger_actor import DurableLedger
from actors.provider.resolver import compaction_limit
from actors.scheduler.scheduler_actor import RunBatch, StopBatch
from actors.scheduler.views import TurnView
from actors.session.compactor import NOTHING_LEFT, Compactor
from actors.session.inflight import AskInFlight
from actors.session.pending import HostCall
from actors.session.requests import TurnRequests
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


class CompactionTurns:
    """Runs the turns that compact the history, for one ask or for one call of `Session.compact`.

    Args:
        ask: The values that the turns of the ask share.
        turn_log: Writes the starts and ends of turns.
    """

    __slots__ = ("_ask", "_has_compacted_elsewhere", "_turn_log")

    def __init__(self, ask: AskInFlight, turn_log: TurnLog) -> None:
        self._ask, self._turn_log = ask, turn_log
        self._has_compacted_elsewhere = False

    async def compact_if_full(self, member: str) -> None:
        """Compact the history in a separate turn, if the next request would nearly fill the member's context window."""
        ask, state = self._ask, self._ask.log.state
        try:
            binding = ask.resolver.backend(member).binding
        except ConfigError:  # the turn that follows reports this error
            return
        if ask.resolver.window(binding) is None or ask.cancelled:
            return
        known = ask.ledger.latest
        if (most := compaction_limit(ask.resolver, state, known, binding, state.asked_at)) is not None:
            tokens = round(most * TARGET_SHARE)
            await self.compact(
                member, lambda compactor: compactor.shrink_next_request(tokens), is_host_request=False
            )

    async def compact(
        self,
        member: str,
        shorten: Callable[[Compactor], Awaitable[CompactionResult]],
        *,
        is_host_request: bool,
    ) -> CompactionResult:
        """Compact the history in a separate turn, on the backend that writes summaries.

        Args:
            member: The pool member that writes the summary if no other backend is chosen.
            shorten: Called with the compactor; shortens the history.
            is_host_request: True if the host program requested the compaction, so that the turn belongs to no ask.
        """
        ask, state = self._ask, self._ask.log.state
        number, result, asks = state.turns + 1, CompactionResult(), 0 if is_host_request else state.asks
        ask.tally.wait = 0.0
        ask.tally.retried = ()
        try:
            writer = self._summary_backend(member)
            backend = ask.resolver.backend(writer)
            provider = ask.resolver.provider(writer, backend.binding)
        except ConfigError as error:
            self._turn_log.hold_start(TurnStarted(number, asks, Binding(member, "")))
            await self._turn_log.write_end(
                Binding(member, ""), CloseStep("failed", str(error)), ends_ask=is_host_request
            )
            return CompactionResult(error=str(error))
        self._turn_log.hold_start(TurnStarted(number, asks, backend.binding))
        compactor = Compactor(TurnRequests(ask, backend, provider, number))
        with self._ask.share_budgets():
            result = await shorten(compactor)
        why, cause = result.error, compactor.cause
        done = result.messages or result.results or why == NOTHING_LEFT
        status: TurnStatus = "cancelled" if ask.cancelled else "complete" if done else "failed"
        malformed = ask.tally.malformed  # unchanged, because this turn contains no answer to the ask
        step = ask.with_halt_reason(
            CloseStep(status, why, usage=result.usage, cause=cause, malformed=malformed)
        )
        ask.tally.record_turn_end(step, ask.resolver.cost(backend.binding, step.usage))
        await self._turn_log.write_end(backend.binding, step, ends_ask=is_host_request)
        return result

    def _summary_backend(self, member: str) -> str:
        """Return the name of the backend that writes summaries.

        If a summarizer is configured, return it. Otherwise, return the backend that answered last, because its cache
        contains the history. If this backend cannot be used, or no backend has answered yet, return `member`.
        """
        resolver, measured = self._ask.resolver, self._ask.log.state.measured
        if resolver.compaction.summarizer is not None or measured is None:
            return resolver.compaction.summarizer or member
        last = resolver.member(measured.binding)
        try:
            resolver.backend(last)
        except ConfigError:  # the backend answered in another process, with a different configuration
            return member
        return last

    def can_compact_elsewhere(self, ended: CloseStep, member: str) -> bool:
        """Return True if another backend may summarise a history that is too long for `member`.

        Return True at most once per ask.
        """
        cause = ended.cause
        if (
            cause is None
            or cause.kind not in TOO_LONG
            or ended.visible
            or self._ask.cancelled
            or self._has_compacted_elsewhere
        ):
            return False
        self._has_compacted_elsewhere = ended.status == "failed" and self._summary_backend(member) != member
        return self._has_compacted_elsewhere
