"""Define the values that the turns of an ask in flight share, and the totals of the ask so far.

The session keeps a copy of its ledger: the newest snapshot that it received from the ledger actor. Every reply of the
ledger actor contains a snapshot, so a turn renders its requests without a query. An event that bypasses the session,
such as a late result, makes the snapshot outdated. The ledger then rejects the seal and replies with a newer snapshot.
"""

from collections.abc import Callable, Iterator
from contextvars import Context as Variables
from functools import partial
from typing import Any, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from actors.adapters.request import Request
from actors.core.ledger import Ledger
from actors.core.log.events import FormatRequested, RequestSent, TurnPaused
from actors.core.policy.routing import Pool, SkippedMember
from actors.core.schemas.repair import Repair, RepairMode
from actors.core.session.publishing import AskResultBuilder
from actors.core.session.state import SessionState
from actors.core.settings.asking import StoredAskSettings
from actors.core.settings.spending import sum_costs
from actors.core.stream_events.ask_events import AskResult, MemberSkippedEvent, PendingCall
from actors.core.stream_events.events import Sink
from actors.core.transcript.diagnostics import Report
from actors.core.turn import steps
from actors.core.turn.output import correction, describe_errors
from actors.core.turn.steps import Checked, CloseStep, Outcome
from actors.core.values.content import Message, Text
from actors.core.values.identity import Binding
from actors.core.values.packed import pack
from actors.core.values.progress import LEAVING, AskProgress, Attempt, Cause, RefusedRequest
from actors.core.values.stream import Cut, Usage
from actors.journal.commands import JournalCommand
from actors.journal.log import Generation, LogWriter
from actors.kernel import Context, Ref
from actors.kernel.receiver import call_with_variables
from actors.ledger.ledger_actor import LedgerCommand, LedgerSnapshot, Recorded, SealResults, Snapshot
from actors.provider.attempts import Answer, Generated
from actors.provider.budgets import Demand, Share
from actors.provider.resolver import Resolver, expected_tokens, used_up_limit
from actors.renderer.renderer_actor import RendererCommand
from actors.scheduler.scheduler_actor import SchedulerCommand
from actors.session.configuration import ActiveConfig
from actors.session.output import Output, output_of_schema

Stop: TypeAlias = Callable[[Context[Any]], None]  # Any: any actor may call this
"""Stops the running step. Called in a handler of the actor that cancels the ask."""


class SessionLedger:
    """A session's copy of its ledger. After a crash, a new instance starts with the ledger that the log contains."""

    __slots__ = ("_ref", "snapshot")

    def __init__(self, ref: Ref[LedgerCommand], ledger: Ledger) -> None:
        self._ref = ref
        self.snapshot: LedgerSnapshot = LedgerSnapshot(ledger)

    @property
    def latest(self) -> Ledger:
        """The newest ledger that the session has received."""
        return self.snapshot.ledger

    def keep_newer(self, snapshot: LedgerSnapshot) -> None:
        """Keep a snapshot if it is newer than the current snapshot."""
        if snapshot.version > self.snapshot.version:
            self.snapshot = snapshot

    async def query(self) -> Ledger:
        """Query the current ledger, including events that are still being written."""
        self.keep_newer(await self._ref.ask(Snapshot()))
        return self.latest

    async def seal(self, event: RequestSent, snapshot: LedgerSnapshot) -> bool:
        """Log that a request is about to be sent, and seal its synthetic results.

        Return False and log nothing if the ledger has changed since `snapshot`.
        """
        answer = await self._ref.ask(SealResults(event, snapshot.version))
        if isinstance(answer, Recorded):
            self.keep_newer(answer.snapshot)
            return True
        self.keep_newer(answer)
        return False


class SessionRefs(Struct, frozen=True):
    """Addresses of the actors to which a session sends commands."""

    scheduler: Ref[SchedulerCommand]
    renderer: Ref[RendererCommand]
    ledger: Ref[LedgerCommand]
    journal: Ref[JournalCommand]


class AskTotals(Struct):
    """The totals of an ask over all its turns.

    Args:
        attempts: The ended turns of the ask and their retried requests, in order.
        usage: Tokens of the ended turns.
        rounds: Number of rounds.
        text: The last text of the model.
        finish, cut: The finish reason of the last answer, and the reason why that answer is incomplete.
        left_out: Number of items in the answers that the history does not contain, by kind.
        retried: The retried requests of the current turn.
        wait: Seconds of delay before the last request of the turn, if that request was a retry.
        output: The answer as a value of the requested type.
        cost: Cost of the ended turns; None if a price is missing.
        tokens: Tokens of all rounds, including the current turn.
        seconds: Duration of the ask in seconds, excluding pauses and the current turn.
        report: The render report of the last request.
        lost: The settings that requests of the current turn omitted because the dialect lacks them.
        omitted: The parameters that were omitted because a provider rejected them.
        refusals: The rejected requests, in order.
        skipped: The pool members that were not used.
        repaired, answer_repairs: Repairs of malformed tool calls, and of the answer.
        malformed: Number of answers that violated the output schema.
    """

    attempts: tuple[Attempt, ...] = ()
    usage: Usage = field(default_factory=Usage)
    rounds: int = 0
    text: str = ""
    finish: str | None = None
    cut: Cut | None = None
    left_out: dict[str, int] = {}
    retried: tuple[Attempt, ...] = ()
    wait: float = 0.0
    output: object = None
    cost: float | None = 0.0
    tokens: int = 0
    seconds: float = 0.0
    report: Report | None = None
    lost: tuple[str, ...] = ()
    omitted: tuple[str, ...] = ()
    refusals: tuple[RefusedRequest, ...] = ()
    skipped: tuple[SkippedMember, ...] = ()
    _reported_skips: int = 0
    repaired: tuple[Repair, ...] = ()
    answer_repairs: tuple[Repair, ...] = ()
    malformed: int = 0
    _last: tuple[int, int] = (0, 0)

    def record_skipped(self, pool: Pool) -> Pool:
        """Record the members of a pool that were skipped, and return the pool unchanged."""
        self.skipped += tuple(each for each in pool.skipped if each not in self.skipped)
        return pool

    def unreported_skips(self, turn: int) -> Iterator[MemberSkippedEvent]:
        """Yield an event for each skipped pool member that this ask has not reported yet."""
        new, self._reported_skips = self.skipped[self._reported_skips :], len(self.skipped)
        for each in new:
            yield MemberSkippedEvent(turn, each.member, each.reason)

    def record_request(self, turn: int, round_number: int) -> None:
        """Count the round of a request, and clear the finish reason of the previous answer.

        A request that is repeated in the same turn and round counts once.
        """
        self.finish, self.cut = None, None
        if self._last != (turn, round_number):  # a retry in a new epoch counts as the same round
            self._last = turn, round_number
            self.rounds += 1

    def record_losses(self, report: Report, request: Request) -> None:
        """Record the render report and the losses of a request.

        The recorded report also counts parameters that were rejected earlier in the ask as losses.
        """
        self.omitted = tuple(dict.fromkeys((*self.omitted, *request.omitted)))
        self.lost = tuple(dict.fromkeys((*self.lost, *request.losses)))
        known = dict(report.losses)
        refused = tuple([(name, 1) for name in self.omitted if name not in known])
        self.report = replace(report, losses=(*report.losses, *refused)) if refused else report

    def record_round(self, generated: Generated, binding: Binding) -> None:
        """Record the tokens, retries and finish reason of a round that has ended.

        The finish reason of the last round becomes the finish reason of the ask.
        """
        self.tokens += generated.usage.input_tokens + generated.usage.output_tokens
        self.wait = generated.wait
        for tried in generated.tried:
            failure = tried.failure
            cause = Cause(failure.kind, failure.status)
            self.retried += (Attempt(binding, "retried", failure.message, cause, tried.wait),)
        if isinstance(generated, Answer):
            self.finish, self.cut = generated.finish, generated.cut
        for kind, count in generated.left_out:
            self.left_out[kind] = self.left_out.get(kind, 0) + count

    def record_turn_end(self, step: CloseStep, cost: float | None) -> None:
        """Add a turn that has ended. `cost` is the cost of the turn's usage, or None if the price is unknown."""
        self.usage += step.usage
        self.malformed = step.malformed
        if step.usage != Usage():
            self.cost = sum_costs((self.cost, cost))
        self.text = step.message.text if step.message is not None else self.text

    def progress(self, tried: list[str]) -> AskProgress:
        """Return the totals to log when a turn pauses. `tried` contains the pool members that served the ask."""
        left_out = tuple(self.left_out.items())
        attempts = self.attempts + self.retried
        return AskProgress(
            attempts, self.rounds, self.usage, left_out, tuple(tried), self.cost, self.seconds, self.refusals
        )

    @staticmethod
    def from_pause(pause: TurnPaused, text: str) -> "AskTotals":
        """Restore the totals of an ask from the log event of its pause. `text` is the last text of the paused turn."""
        progress = pause.ask_so_far
        left_out = dict(progress.dropped)
        used = progress.usage + pause.turn_so_far.usage
        return AskTotals(
            progress.attempts,
            progress.usage,
            progress.rounds,
            text,
            left_out=left_out,
            cost=progress.cost,
            tokens=used.input_tokens + used.output_tokens,
            seconds=progress.seconds,
            refusals=progress.refusals,
        )

    @staticmethod
    def from_log(totals: AskResultBuilder, resolver: Resolver) -> "AskTotals":
        """Return the totals with which an interrupted ask continues.

        Values that the log does not contain start at their defaults.
        """
        cost = sum_costs(
            [resolver.cost(binding, usage) for binding, usage in totals.usage_by_binding.items()]
        )
        used = totals.usage
        return AskTotals(
            totals.attempts,
            used,
            totals.rounds,
            totals.text,
            left_out=dict(totals.left_out),
            cost=cost,
            tokens=used.input_tokens + used.output_tokens,
        )

    def result(self, served_by: Binding, ended: CloseStep, state: SessionState) -> AskResult:
        """Return the result of the ask. `ended` is the step that ended the ask's last turn."""
        status = ended.status
        assert status in ("complete", "cancelled", "failed")
        left_out = tuple(self.left_out.items())
        return AskResult(
            self.text,
            status,
            served_by,
            self.attempts,
            self.rounds,
            self.usage,
            ended.reason,
            self.finish,
            self.cut,
            left_out,
            output=self.output,
            cost=None if self.usage == Usage() else self.cost,
            report=self.report,
            losses={} if self.report is None else dict(self.report.losses) | dict.fromkeys(self.lost, 1),
            refusals=self.refusals,
            skipped=self.skipped,
            repaired=self.repaired + self.answer_repairs,
            turn=state.turns,
            turn_before=state.turn_before,
        )


class AskInFlight(Struct):
    """The values that all turns of one ask share.

    Args:
        log: Writes the session's own events.
        refs: Addresses of the session's actors.
        ledger: The session's copy of its ledger.
        generation: The state that the session's actors share until they crash.
        active_config: The session's system prompt, tools and resolver.
        sink: Receives the events of the ask.
        variables: Context variables that the ask's tools see.
        tally: The totals of the ask so far.
        cancelled: True if the ask was cancelled or stopped by a limit.
        halt_reason: The reason why a deadline or a limit stopped the ask; empty if none did.
        halt_cause: The kind of limit that stopped the ask, as the cause of the failure.
        is_leaving: True if the ask was cancelled because the host is releasing the session.
        output: The type of the answer.
        is_instructed: True if the history contains an instruction with the output schema.
        is_forced: True if the history contains an instruction to call the forced tool.
        has_forced_call: True if the model has called the forced tool in an earlier turn of the ask.
        pending_calls: The calls that the turn waits for, set when the log contains the pause.
        share: The part of the shared budgets that the current turn uses.
    """

    log: LogWriter
    refs: SessionRefs
    ledger: SessionLedger
    generation: Generation
    active_config: ActiveConfig
    sink: Sink
    variables: Variables
    tally: AskTotals = field(default_factory=AskTotals)
    cancelled: bool = False
    halt_reason: str = ""
    halt_cause: Cause | None = None
    is_leaving: bool = False
    output: Output[Any] | None = None  # Any: the answer may have any type
    is_instructed: bool = False
    is_forced: bool = False
    has_forced_call: bool = False
    pending_calls: tuple[PendingCall, ...] = ()
    share: Share | None = None
    _stop: Stop | None = None

    @property
    def resolver(self) -> Resolver:
        """The resolver that finds the backend of a target."""
        return self.active_config.resolver

    def share_budgets(self) -> Share:
        """Return a context manager that counts the requests of the next turn in the shared budgets."""
        state = self.log.state
        self.share = Share(*self.active_config.budgets(state.tenant, state.target))
        return self.share

    async def reserve_budget(self, binding: Binding) -> str | None:
        """Reserve the estimated tokens and cost of the next request in the shared budgets.

        If necessary, wait until other sessions release a part of a shared budget. If a budget is used up, return a
        message; otherwise return None.
        """
        why, share = used_up_limit(self.resolver, self.log.state), self.share
        if why is not None or share is None or share.is_empty:
            return why
        tokens = expected_tokens(self.resolver, self.log.state, self.ledger.latest, binding)
        answer = self.resolver.calibrations[binding].answer
        demand = Demand(tokens + answer, self.resolver.cost(binding, Usage(tokens, answer)) or 0.0)
        # A cancellation ends the wait for the budget.
        self.set_stop(lambda _: share.recheck())
        try:
            return await share.admit(demand, lambda: self.cancelled)
        finally:
            self.clear_stop()

    def count_usage(self, binding: Binding, usage: Usage, *, is_round: bool) -> None:
        """Count the usage of a finished request in the shared budgets.

        The session's own budget is not counted here, because it is computed from the log.
        """
        if self.share is not None:
            self.share.record_usage(binding, usage, is_round=is_round)

    def cancel(self, context: Context[Any]) -> None:  # Any: any actor may call this
        """Stop the running step, so that the ask ends with every call closed.

        `context` is the context of the actor whose handler calls this method.
        """
        self.cancelled = True
        if self._stop is not None:
            self._stop(context)

    def halt(self, context: Context[Any], why: str) -> None:  # Any: any actor may call this
        """Stop the running step, like `cancel`, and make the ask fail with the reason `why`."""
        if not self.cancelled:
            self.halt_reason, self.halt_cause = why, Cause("time")
            self.cancel(context)

    def restore_output(
        self, output_type: Output[Any] | None, ask_settings: StoredAskSettings | None
    ) -> None:  # Any: the answer may have any type
        """Restore the type of the answer after a pause.

        After a restart, `output_type` is None, and the type is restored from the schema in the ask's settings.
        """
        if ask_settings is not None and ask_settings.output is not None:
            self.output, self.is_instructed = output_type or output_of_schema(ask_settings.output), True

    def read_answer(self, text: str, repair: RepairMode) -> Checked:
        """Parse an answer as the requested type.

        If this succeeds, store the value and the repairs in the totals. Otherwise, the returned value contains the
        errors.
        """
        assert self.output is not None
        made = call_with_variables(self.variables, partial(self.output.parse, text, repair))
        if isinstance(made, str):
            return Checked(error_summary=made)
        if isinstance(made, list):
            return Checked(correction(made), describe_errors(made))
        self.tally.output, self.tally.answer_repairs = made
        return Checked()

    def add_instruction(self, text: str) -> None:
        """Add an instruction for the model. The instruction is logged together with the next request."""
        state = self.log.state
        self.log.hold(FormatRequested(state.asks, pack(Message("user", (Text(text),), state.turns))))

    def with_halt_reason(self, step: CloseStep) -> CloseStep:
        """Return the last step of a turn, with the reason why the turn was stopped.

        The reason is added if a deadline or a limit stopped the turn, or if the host is releasing the session.
        """
        if step.status != "cancelled":
            return step
        if self.halt_reason:
            return replace(step, status="failed", reason=self.halt_reason, cause=self.halt_cause)
        return replace(step, cause=LEAVING) if self.is_leaving else step

    def set_stop(self, stop: Stop) -> None:
        """Set the function that stops the current step if the ask is cancelled."""
        self._stop = stop

    def clear_stop(self) -> None:
        """Remove the stop function of a step that has ended. A cancellation then takes effect after the next step."""
        self._stop = None


def stopped_outcome(outcome: Outcome) -> steps.Stopped:
    """Replace the outcome of a step whose ask was cancelled. The model's message is kept, but its calls do not run."""
    if isinstance(outcome, steps.Answered | steps.RequestFailed | steps.CompactionEnded):
        return steps.Stopped(outcome.message, outcome.usage)
    if isinstance(outcome, steps.Stopped):
        return outcome
    if isinstance(outcome, steps.BatchOutcome):
        return steps.Stopped(awaited=(*outcome.external, *outcome.approvals))
    return steps.Stopped()
