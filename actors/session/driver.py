"""Drive the turns of an ask: carry out the steps of each turn, and decide which turn follows.

The session actor starts one driver as a child for each ask. An ask is one turn, or several after failover. A turn is a
generator (`actors.core.turn.turn`) that yields the next step, such as a request or a batch of calls, and receives the
outcome. `actors.session.steps` carries out the steps. The binding, settings and tools of a turn are fixed when the turn
begins.

If a backend has no setting for the output format or the forced tool of an ask, the driver instructs the model in words,
when the ask or one of its turns begins, and when an interrupted ask continues. `AskInFlight` records the instructions
that the history contains, so that no instruction is repeated.
"""

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from actors.core.log.events import AskKey, AskStarted, SwitchApplied, TurnResumed, TurnStarted, TurnStatus
from actors.core.policy.routing import Pool, resolve_switch
from actors.core.session.publishing import AskResultBuilder
from actors.core.session.state import SessionState
from actors.core.settings.asking import StoredAskSettings, forced_instruction
from actors.core.settings.values import ToolChoice, ToolChoiceSetting
from actors.core.turn import steps
from actors.core.turn import turn as turns
from actors.core.turn.output import instruction
from actors.core.turn.steps import AwaitStep, CloseStep, Outcome, Step
from actors.core.turn.turn import Bounds
from actors.core.values.content import Message, Text, ToolCall
from actors.core.values.identity import Binding
from actors.core.values.packed import Packed, pack, unpack
from actors.core.values.progress import Cause
from actors.errors import ConfigError
from actors.provider.backend import ResolvedBackend
from actors.provider.resolver import Affinity, MemberSelector
from actors.scheduler.scheduler_actor import CloseCalls
from actors.session.compactor import Compactor
from actors.session.inflight import AskInFlight, AskTotals, stopped_outcome
from actors.session.pending import HostCall, HostCompaction, PendingAsks
from actors.session.requests import TurnRequests
from actors.session.separate_turns import CompactionTurns, run_host_call
from actors.session.steps import TurnSteps
from actors.session.turn_changes import HandoverSteps, ToolChanges
from actors.session.turn_log import ServedTurn, TurnLog, with_endpoint_change
from actors.telemetry import logger

AGAIN: Final = "Your last answer was interrupted. Give the complete answer again."
"""The instruction to a model whose interrupted answer is in the history."""


@dataclass(slots=True)
class TurnDriver:
    """Runs the turns of one ask.

    Args:
        ask: The values that the turns of the ask share.
        bounds: The limits of a turn, such as the number of rounds.
        affinity: The pool members that the session prefers. All asks of the session share this value.
        pending: Receives the result of the ask once the ask's last event is durable.
    """

    ask: AskInFlight
    bounds: Bounds
    affinity: Affinity
    pending: PendingAsks
    _handovers: HandoverSteps = field(init=False)
    _changes: ToolChanges = field(init=False)
    _turn_log: TurnLog = field(init=False)
    _compactions: CompactionTurns = field(init=False)

    def __post_init__(self) -> None:
        self._handovers, self._changes = HandoverSteps(self.ask), ToolChanges(self.ask)
        self._turn_log = TurnLog(self.ask, self.pending)
        self._compactions = CompactionTurns(self.ask, self._turn_log)

    async def run(
        self, message: Packed, ask_settings: StoredAskSettings | None, key: AskKey | None = None
    ) -> None:
        """Drive the ask until it ends, or until its turn is paused."""
        log = self.ask.log
        number = log.state.asks + 1
        pool = self._pool(log.state.target)
        selector = self._member_selector(number)
        member = await selector.first_member(pool)
        message = add_output_instruction(self.ask, member, message, ask_settings)
        log.hold(AskStarted(number, message, ask_settings, key))
        await self._run_turns(pool, selector, member)

    async def continue_ask(self, totals: AskResultBuilder) -> None:
        """Continue the session's last ask after an interruption, in further turns until the ask ends.

        The user's message is in the history, and all calls are closed. If the history ends with a part of the answer,
        the model is asked for the complete answer.

        Args:
            totals: The fields of the ask's result so far, from the log.
        """
        state = self.ask.log.state
        self.ask.tally = AskTotals.from_log(totals, self.ask.resolver)
        find_instructions(self.ask)
        last = state.history[-1]
        if last.role == "assistant" and not last.calls:
            self.ask.add_instruction(AGAIN)
        with self._handovers:
            handed = await self._handovers.requested_handover()
            if handed is not None and not handed.reason and handed.target != state.target:
                await self._handovers.apply_handover(handed.target)
        pool, selector = self._pool(self.ask.log.state.target), self._member_selector(state.asks)
        await self._run_turns(pool, selector, await selector.first_member(pool))

    async def _run_turns(self, pool: Pool, selector: MemberSelector, member: str) -> None:
        """Drive the turns of the ask. The first turn runs on `member` of the pool."""
        await self._compactions.compact_if_full(member)
        with self._handovers:
            served = await self._serve_turn(member)
            await self._drive_turns(pool, selector, [member], served)

    async def run_call(self, message: Packed, request: HostCall) -> None:
        """Run one tool call for the host program in a separate turn, without a model."""
        await run_host_call(self.ask, self._turn_log, message, request, self.bounds.repair)

    async def resume(self, calls: tuple[ToolCall, ...]) -> None:
        """Continue a paused turn after its last result or decision arrived, or after the ask was cancelled.

        `calls` are the calls that have not ended. They run now, or are closed if the ask was cancelled.
        """
        state = self.ask.log.state
        pause, binding = state.pause, state.bound
        assert pause is not None
        assert binding is not None
        self.ask.tally = AskTotals.from_pause(pause.awaited, state.history[-1].text)
        self._turn_log.start_clock()
        resumed = TurnResumed(state.turns)
        # The log must show the resumption before any call runs. Otherwise, a crash could run the call twice.
        if calls and not self.ask.cancelled:
            await self.ask.log.write(resumed)
        else:
            self.ask.log.hold(resumed)
        tried = list(pause.awaited.ask_so_far.tried)
        await_step = AwaitStep(calls, so_far=pause.awaited.turn_so_far)
        pool, selector = self._pool(state.target), self._member_selector(state.asks)
        with self._handovers:
            served = await self._resume_turn(binding, tried[-1], await_step)
            await self._drive_turns(pool, selector, tried, served)

    def _member_selector(self, ask_number: int) -> MemberSelector:
        """Return an object that selects pool members for the ask with this number."""
        return MemberSelector(self.ask.resolver, self.affinity, ask_number)

    async def _drive_turns(
        self, pool: Pool, selector: MemberSelector, tried: list[str], served: ServedTurn
    ) -> None:
        """Log the end of a turn, and drive the following turns until the ask ends or a turn is paused.

        Args:
            pool: The pool of the session's target.
            selector: Selects the pool member for the next turn.
            tried: The members that served turns of this ask, the current one last.
            served: The outcome of the first turn.
        """
        self._record_prompt_size(selector, pool, tried[-1], served)
        while isinstance(served.step, CloseStep):
            pool, following = await self._choose_next(pool, selector, tried, served.step)
            # If the history is too long for this member, another backend summarises it, and this member tries again.
            is_again = following is None and self._compactions.can_compact_elsewhere(served.step, tried[-1])
            following = tried[-1] if is_again else following
            await self._turn_log.write_end(served.binding, served.step, ends_ask=following is None)
            if following is None:
                return
            if is_again:
                await self._compactions.compact(following, Compactor.summarise_all, is_host_request=False)
            else:
                self._log_failover(served, following)
                tried.append(following)
                await self._compactions.compact_if_full(following)
            served = await self._serve_turn(following)
            self._record_prompt_size(selector, pool, following, served)
        await self._turn_log.write_pause(served.step, tried)

    def _log_failover(self, served: ServedTurn, following: str) -> None:
        """Log that the pool member `following` continues the ask after a failed turn. Log nothing after a handoff."""
        if isinstance(served.step, CloseStep) and served.step.handover is None:
            logger.ask_failed_over(self.ask.log.state.session, served.binding, served.step.cause, following)

    def _record_prompt_size(
        self, selector: MemberSelector, pool: Pool, member: str, served: ServedTurn
    ) -> None:
        """Record the size of the turn's last transcript, to find the member with the most useful cache later."""
        selector.record_request(pool, member, served.sent_bytes)

    async def run_compaction(self, request: HostCompaction) -> None:
        """Compact the history in a separate turn, as requested by the host."""
        selector = self._member_selector(self.ask.log.state.asks)
        member = await selector.first_member(self._pool(self.ask.log.state.target))
        request.result = await self._compactions.compact(member, Compactor.compact, is_host_request=True)

    async def _choose_next(
        self, pool: Pool, selector: MemberSelector, tried: list[str], ended: CloseStep
    ) -> tuple[Pool, str | None]:
        """Return the pool and the member that continues the ask after a turn. The member is None if the ask ends.

        After a handoff, its target continues the ask. After a failure, the target of a pending switch continues, or the
        next member of the pool if there is no switch.

        Args:
            pool: The pool of the turn.
            selector: Selects a pool member.
            tried: The members that served turns of this ask. A handoff clears the list.
            ended: The last step of the turn.
        """
        selector.resolver = self.ask.resolver
        if ended.handover is not None:
            tried.clear()
            await self._handovers.apply_handover(ended.handover)
            pool, selector.resolver = self._pool(self.ask.log.state.target), self.ask.resolver
            return pool, await selector.first_member(pool)
        if ended.status != "failed" or not ended.can_fail_over or self.ask.cancelled:
            return pool, None
        if ended.visible and not pool.failover_after_output:
            return pool, None
        if ended.refused and not pool.failover_on_refusal:
            return pool, None
        if (held := self.ask.log.state.held) is not None:
            event = resolve_switch(held, self.ask.resolver.pool)
            await self.ask.log.write(event)
            if isinstance(event, SwitchApplied):
                pool = self._pool(held)
                return pool, next((name for name in pool.members if name not in tried), None)
        return pool, await selector.next_member(pool, tried, visible=ended.visible)

    def _pool(self, target: str) -> Pool:
        """Return the pool of a target. If the target is no longer usable, return a pool with only this target.

        A turn on this target then fails, and its error gives the reason.
        """
        try:
            pool = self.ask.resolver.pool(target, must_fit=False)
        except ConfigError:
            return Pool(target, (target,))
        return self.ask.tally.record_skipped(pool)

    async def _serve_turn(self, member: str) -> ServedTurn:
        """Drive one turn on a pool member. The caller must then log the end of the turn."""
        number, ask = self.ask.log.state.turns + 1, self.ask.log.state.asks
        self.ask.tally.wait = 0.0
        self.ask.tally.lost = ()
        self.ask.tally.retried = ()
        try:
            turn_steps = self._create_steps(member, number)
        except ConfigError as error:  # the member became invalid, for example because its key is gone
            binding = Binding(member, "")
            self._turn_log.hold_start(TurnStarted(number, ask, binding))
            return ServedTurn(binding, CloseStep("failed", str(error), can_fail_over=True))
        self._turn_log.hold_start(TurnStarted(number, ask, turn_steps.binding))
        add_missing_instruction(self.ask, turn_steps.backend)
        self.ask.has_forced_call = has_forced_call(self.ask.log.state)
        forced = None if self.ask.has_forced_call else instruct_forced_tool(self.ask, turn_steps.backend)
        bounds = self._turn_bounds()
        bounds = bounds if forced is None else replace(bounds, forced=forced)
        conversation = turns.turn(bounds, malformed=self.ask.tally.malformed)
        step = await self._run_steps(turn_steps, conversation, next(conversation))
        return ServedTurn(turn_steps.binding, step, turn_steps.rendered_size)

    async def _resume_turn(self, binding: Binding, member: str, await_step: AwaitStep) -> ServedTurn:
        """Drive the rest of a paused turn, in the dialect in which the turn began."""
        try:
            turn_steps = self._create_steps(member, self.ask.log.state.turns, binding.dialect)
        except ConfigError as error:  # the member became invalid during the pause
            if await_step.calls:
                ids = tuple([call.id for call in await_step.calls])
                closed = await self.ask.refs.scheduler.ask(CloseCalls(ids, "cancelled"))
                self.ask.ledger.keep_newer(closed.snapshot)
            status: TurnStatus = "cancelled" if self.ask.cancelled else "failed"
            return ServedTurn(binding, CloseStep(status, str(error), can_fail_over=True))
        await turn_steps.resume(await_step.so_far.rounds)
        conversation = turns.turn(self._turn_bounds(), await_step)
        next(conversation)
        stopped = self.ask.cancelled
        stuck = not (stopped or await_step.calls) and turn_steps.is_stuck()
        outcome = (
            steps.Stopped(awaited=await_step.calls)
            if stopped
            else steps.CallsResolved(await_step.calls, stuck)
        )
        step = await self._run_steps(turn_steps, conversation, conversation.send(outcome))
        return ServedTurn(
            binding, with_endpoint_change(step, binding, turn_steps.binding), turn_steps.rendered_size
        )

    def _create_steps(self, member: str, turn_number: int, dialect: str | None = None) -> TurnSteps:
        """Return the object that carries out the steps of turn `turn_number` on a pool member.

        Raises:
            ConfigError: The member cannot be used.
        """
        backend = self.ask.resolver.backend(member, dialect)
        provider = self.ask.resolver.provider(member, backend.binding)
        return TurnSteps(TurnRequests(self.ask, backend, provider, turn_number), self._turn_bounds())

    async def _run_steps(
        self, turn_steps: TurnSteps, conversation: Generator[Step, Outcome], step: Step
    ) -> CloseStep | AwaitStep:
        """Run the steps of a turn until the turn ends or is paused. Return that last step."""
        with self.ask.share_budgets():
            while not isinstance(step, CloseStep | AwaitStep):
                is_request = isinstance(step, steps.RenderStep)
                if self.ask.cancelled or (is_request and await self._must_end_turn(turn_steps.binding)):
                    outcome: Outcome = steps.Stopped()
                else:
                    outcome = await self._after_batch(turn_steps, step) or await turn_steps.carry_out(step)
                if isinstance(outcome, steps.Answered | steps.RequestFailed | steps.Stopped):
                    is_round = outcome.message is not None
                    self.ask.count_usage(turn_steps.binding, outcome.usage, is_round=is_round)
                if self.ask.cancelled:
                    outcome = stopped_outcome(outcome)
                step = conversation.send(outcome)
        if isinstance(step, CloseStep):
            step = self.ask.with_halt_reason(step)
            await turn_steps.close(step)
            self.ask.tally.record_turn_end(step, self.ask.resolver.cost(turn_steps.binding, step.usage))
        return step

    async def _after_batch(
        self, turn_steps: TurnSteps, step: Step
    ) -> steps.HandedOver | steps.Stopped | None:
        """Before the first request after a batch, apply a handoff that the batch requested, or changes of the tools.

        Return the outcome of `step` if no request must be sent. Return None if `step` must be carried out.
        """
        if not (isinstance(step, steps.RenderStep) and step.follows_batch):
            return None
        handed = await self._handovers.requested_handover()
        if (
            handed is None
            and not step.tools_off
            and await self._changes.declare_changes(turn_steps, step.round)
        ):
            add_missing_instruction(self.ask, turn_steps.backend)
        return handed or (steps.Stopped() if self.ask.cancelled else None)

    async def _must_end_turn(self, binding: Binding) -> bool:
        """Return True if the turn must end before its next request, because of a limit or a cancellation.

        If a limit is reached, record it in the ask as the reason for the failure.
        """
        state, used = self.ask.log.state, self.ask.tally.tokens
        most = None if state.asked is None else state.asked.token_limit
        why = await self.ask.reserve_budget(binding)
        if most is not None and used >= most:
            why = f"the ask used {used} tokens, but its token_limit is {most}"
        if why is not None:
            self.ask.cancelled, self.ask.halt_reason, self.ask.halt_cause = True, why, Cause("limit")
        return self.ask.cancelled

    def _turn_bounds(self) -> Bounds:
        """Return the limits of a turn: the session's limits, narrowed by the settings of the ask."""
        return self.bounds.for_ask(self.ask.log.state.asked)


def add_output_instruction(
    ask: AskInFlight, member: str, message: Packed, ask_settings: StoredAskSettings | None
) -> Packed:
    """Return the user's message, with an instruction about the output format if the backend of `member` needs one."""
    if ask_settings is None or ask_settings.output is None:
        return message
    try:
        ask.is_instructed = ask.resolver.backend(member).needs_output_instruction(ask_settings)
    except (
        ConfigError
    ):  # `add_missing_instruction` adds the instruction for the backend that replaces `member`
        return message
    if not ask.is_instructed:
        return message
    user_message = unpack(message)
    blocks = (*user_message.blocks, Text(instruction(ask_settings.output)))
    return pack(Message(user_message.role, blocks, user_message.turn, user_message.origin))


def add_missing_instruction(ask: AskInFlight, backend: ResolvedBackend) -> None:
    """After a failover, add the instruction about the output format if it is missing and the backend needs it."""
    asked = ask.log.state.asked
    if asked is None or asked.output is None or ask.is_instructed:
        return
    if backend.needs_output_instruction(asked):
        ask.is_instructed = True
        ask.add_instruction(instruction(asked.output))


def instruct_forced_tool(ask: AskInFlight, backend: ResolvedBackend) -> ToolChoiceSetting | None:
    """Instruct the model to call the forced tool, if the backend accepts no forced tool choice.

    Return the forced tool choice that the instruction replaces, or None.
    """
    choice = backend.instructed_tool_choice(ask.log.state.asked)
    if choice is not None and not ask.is_forced:
        ask.is_forced = True
        ask.add_instruction(forced_instruction(choice))
    return choice


def find_instructions(ask: AskInFlight) -> None:
    """Find the instructions that the interrupted turns of the ask have added, so that they are not repeated."""
    state = ask.log.state
    if (asked := state.asked) is None:
        return
    texts = [message.text for message in state.history.since(state.asked_at) if message.role == "user"]
    if asked.output is not None:
        ask.is_instructed = any(instruction(asked.output) in text for text in texts)
    if asked.tool_choice == "required" or isinstance(asked.tool_choice, ToolChoice):
        ask.is_forced = any(forced_instruction(asked.tool_choice) in text for text in texts)


def has_forced_call(state: SessionState) -> bool:
    """Return True if the model has already called the tool that the last ask forces."""
    choice = None if state.asked is None else state.asked.tool_choice
    if choice != "required" and not isinstance(choice, ToolChoice):
        return False
    calls = [call for message in state.history.since(state.asked_at) for call in message.calls]
    return any(choice in ("required", ToolChoice(call.name)) for call in calls)
