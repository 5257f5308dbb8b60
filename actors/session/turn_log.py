"""Log when a turn starts, pauses and ends, and measure how long the turn runs.

The turn driver and separate turns (`actors.session.separate_turns`) use this module. When the last event of an ask is
durable, the result of the ask is stored for its caller. `ServedTurn` is the outcome of a turn whose end is not logged
yet.
"""

import anyio
from msgspec import Struct
from msgspec.structs import replace

from actors.core.log.events import ApprovalAsked, TurnEnded, TurnPaused, TurnStarted, TurnStatus
from actors.core.session.open_asks import digest, paused_result, pending_calls
from actors.core.turn.steps import AwaitStep, CloseStep
from actors.core.values.identity import Binding
from actors.core.values.progress import Attempt
from actors.session.inflight import AskInFlight
from actors.session.pending import PendingAsks


class TurnLog:
    """Writes the starts, pauses and ends of an ask's turns.

    Args:
        ask: The values that the turns of the ask share.
        pending: Receives the result of the ask once the ask's last event is durable.
    """

    __slots__ = ("_ask", "_began", "_pending")

    def __init__(self, ask: AskInFlight, pending: PendingAsks) -> None:
        self._ask, self._pending = ask, pending
        self._began = 0.0

    def start_clock(self) -> None:
        """Start measuring the time of a turn that begins or resumes."""
        self._began = anyio.current_time()

    def hold_start(self, turn_started: TurnStarted) -> None:
        """Start the clock of a turn. Its event `turn_started` is written together with the next event."""
        self.start_clock()

        def on_durable(_: int) -> None:
            if self._ask.sink.is_watched:
                for event in self._ask.tally.unreported_skips(turn_started.turn):
                    self._ask.sink.put(event)

        self._ask.log.hold(turn_started, on_durable)

    async def write_pause(self, step: AwaitStep, tried: list[str]) -> None:
        """Log that the turn waits for results or decisions. `tried` lists the pool members that served the ask."""
        log = self._ask.log
        for call in step.approvals:
            log.hold(ApprovalAsked(call.id, call.name, digest(call)))
        external, approvals = (
            tuple([call.id for call in calls]) for calls in (step.external, step.approvals)
        )
        self._add_turn_time()
        ledger = await self._ask.ledger.query()
        progress = self._ask.tally.progress(tried)
        event = TurnPaused(
            log.state.turns, external, approvals, step.so_far, progress, self._budgeted_seconds()
        )

        def on_durable(seq: int) -> None:
            self._ask.pending_calls = pending_calls(log.state, ledger)
            self._pending.store_result(paused_result(log.state, self._ask.pending_calls), seq)

        await log.write(event, on_durable)

    async def write_end(self, binding: Binding, ended: CloseStep, *, ends_ask: bool) -> None:
        """Log the end of a turn. `ends_ask` is True if the ask ends with this turn."""
        status: TurnStatus = ended.status if ends_ask else "handed_over"
        self._add_turn_time()
        tally = self._ask.tally
        retried, wait = tally.retried, tally.wait
        tally.attempts += (*retried, Attempt(binding, status, ended.reason, ended.cause, wait))
        turn, slips = self._ask.log.state.turns, tally.answer_repairs
        event = TurnEnded(
            turn, status, ended.reason, ended.cause, retried, wait, self._budgeted_seconds(), slips
        )

        def on_durable(seq: int) -> None:
            if ends_ask:
                self._pending.store_result(tally.result(binding, ended, self._ask.log.state), seq)

        await self._ask.log.write(event, on_durable)

    def _budgeted_seconds(self) -> float:
        """Return the seconds since the turn began or resumed; 0 if no budget limits the session's time."""
        budget = self._ask.log.state.budget
        return 0.0 if budget is None or budget.seconds is None else self._elapsed_seconds

    def _add_turn_time(self) -> None:
        """Add the duration of the turn to the duration of the ask, if the ask has a timeout."""
        asked = self._ask.log.state.asked
        if asked is not None and asked.timeout is not None:
            self._ask.tally.seconds += self._elapsed_seconds

    @property
    def _elapsed_seconds(self) -> float:
        """Seconds since the turn began or resumed."""
        return anyio.current_time() - self._began


class ServedTurn(Struct, frozen=True):
    """The outcome of a turn.

    Args:
        binding: The binding that served the turn.
        step: The last step of the turn.
        sent_bytes: Size of the turn's last transcript, in bytes.
    """

    binding: Binding
    step: CloseStep | AwaitStep
    sent_bytes: int = 0


def with_endpoint_change(step: CloseStep | AwaitStep, old: Binding, new: Binding) -> CloseStep | AwaitStep:
    """Return the last step of a resumed turn, with a note if the base URL has changed.

    If the URL changed during the pause and the turn failed, the step's reason names both URLs.
    """
    if isinstance(step, CloseStep) and step.status == "failed" and old.endpoint != new.endpoint:
        moved = f"the turn began at {old.endpoint} in dialect {new.dialect!r} and continued at {new.endpoint}"
        return replace(step, reason=f"{step.reason} ({moved})")
    return step
