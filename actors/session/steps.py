"""Carry out the steps of a turn with the help of the renderer, the provider, the scheduler and the ledger.

`actors.core.turn.turn` yields the next step, and `actors.session.driver` passes the step to `TurnSteps.carry_out`. An
`AskInFlight` holds the values that the turns of an ask share.

Every event is durable before its effect. The user's message is logged before the request is built, the request before
its first byte is sent, and the model's message before its calls run.
"""

from collections.abc import Awaitable, Set
from typing import Literal, assert_never

from msgspec.structs import replace

from actors.adapters.failure import ACTIONS, Failure
from actors.core.lanes.lane import Rendered, refusal_report
from actors.core.log.call_events import Reason
from actors.core.log.events import EpochBegan, EpochReason, RoundEnded
from actors.core.settings.asking import forced_instruction
from actors.core.settings.values import ToolChoiceSetting
from actors.core.transcript.diagnostics import Refusal, Report
from actors.core.turn import steps
from actors.core.turn.answers import content_cut, interrupted_message
from actors.core.turn.guards import TurnGuard
from actors.core.turn.output import as_text, instruction
from actors.core.turn.steps import CloseStep, Outcome
from actors.core.turn.turn import Bounds
from actors.core.values.content import Message, ToolCall
from actors.core.values.identity import Binding
from actors.core.values.packed import pack
from actors.core.values.progress import Attempt, Cause, RefusedRequest
from actors.core.values.stream import Usage
from actors.errors import KernelError
from actors.ledger.ledger_actor import DurableLedger
from actors.provider.attempts import AbortedAnswer, Answer, BrokenAnswer, Generated
from actors.provider.backend import ResolvedBackend
from actors.renderer.renderer_actor import Invalidate, Render
from actors.scheduler.scheduler_actor import CloseCalls, RunBatch, StopBatch
from actors.scheduler.views import NO_VIEW, TurnView
from actors.session.compactor import Compactor
from actors.session.requests import RequestPlan, TurnRequests

NO_USAGE = Usage()


class TurnSteps:
    """The steps of one turn, carried out by the session's actors.

    Args:
        requests: Renders and sends the requests of the turn.
        bounds: The limits of the turn.
    """

    def __init__(self, requests: TurnRequests, bounds: Bounds) -> None:
        ask = requests.ask
        self._ask, self._refs, self._log, self._sink = ask, ask.refs, ask.log, ask.sink
        self._requests, self._number = requests, requests.turn
        self.backend: ResolvedBackend = requests.backend
        """The backend that receives the turn's requests. A change of tools within the turn replaces this value."""
        self._plan = RequestPlan(0)  # the plan of this round's request
        self._rendered: Rendered | None = None
        self._declined: tuple[bytes, str] | None = None  # the last rejected transcript, and the reason
        self._round = 0
        self._was_limited = self._has_answered = False
        self._refusals = 0  # number of rejected parameters in this round
        # The history and the ledger at the start of the turn.
        self._history, self._ledger = ask.log.state.history, NO_VIEW.ledger
        self._bounds, self._known = bounds, NO_VIEW.ledger
        self._guard = self._new_guard()

    @property
    def rendered_size(self) -> int:
        """The size of the last rendered transcript in bytes; 0 if the turn has rendered no transcript."""
        return 0 if self._rendered is None else self._rendered.lane.size

    @property
    def binding(self) -> Binding:
        """The binding that serves the turn."""
        return self.backend.binding

    def replace_backend(self, backend: ResolvedBackend) -> None:
        """Send the next requests to `backend`, which has the same binding but different tools."""
        self.backend = self._requests.backend = backend

    async def resume(self, round_number: int) -> None:
        """Restore the history and the ledger from the start of a paused turn.

        `round_number` is the number of the turn's last round.
        """
        history, self._round, self._has_answered = self._history, round_number, True
        length = history.length
        # The history at the start of the turn excludes the turn's own messages.
        while length and history[length - 1].turn == self._number:
            length -= 1
        self._history = history.upto(length)
        self._known = await self._ask.ledger.query()
        self._ledger = await self._refs.ledger.ask(DurableLedger())
        self._guard = self._new_guard()

    def _new_guard(self) -> TurnGuard:
        """Return a guard that detects turns without progress, starting at the first message of this turn."""
        return TurnGuard(self._history.length, self._bounds.max_tool_corrections, self._bounds.on_repeat)

    def is_stuck(self) -> bool:
        """Return True if repeated calls have turned off the tools of the turn.

        All calls of the turn must have ended.
        """
        if not self._guard.is_stopping:
            return False
        history = self._log.state.history
        self._guard.count_messages(history, self._ask.ledger.latest, history.length)
        return self._guard.is_stuck

    def carry_out(self, step: steps.ExecutableStep) -> Awaitable[Outcome]:
        """Carry out one step and return its outcome."""
        match step:
            case steps.RenderStep():
                return self._render(step)
            case steps.RewriteStep():
                return self._rewrite(step)
            case steps.GenerateStep(round=number):
                return self._generate(number)
            case steps.ShrinkStep(is_repeated=is_repeated):
                return self._compact(is_repeated)
            case steps.BatchStep():
                return self._run_batch(step)
            case steps.CheckStep(message=message):
                return self._check_answer(message)
            case steps.InstructStep(instruction=instruction):
                return self._add_instruction(instruction)
            case _:
                assert_never(step)

    async def close(self, step: CloseStep) -> None:
        """Close the calls that will not run, and the calls that the turn no longer waits for."""
        await self._close_calls(step.unrun, "never_started")
        await self._close_calls(step.awaited, "cancelled")

    async def _close_calls(self, calls: tuple[ToolCall, ...], reason: Reason) -> None:
        """Close the calls and record the reason. Do nothing if there are no calls."""
        if calls:
            ids = tuple([call.id for call in calls])
            closed = await self._refs.scheduler.ask(CloseCalls(ids, reason))
            self._ask.ledger.keep_newer(closed.snapshot)

    async def _render(self, step: steps.RenderStep) -> Outcome:
        """Render the request, check it against the dialect's rules, and log it."""
        binding, tally, asked = self.backend.binding, self._ask.tally, self._log.state.asked
        self._round = step.round
        if step.repeat_reason:
            tally.retried += (
                Attempt(binding, "retried", step.repeat_reason, Cause("model_fault"), tally.wait),
            )
        choice = self._tool_choice(tools_off=step.tools_off)
        before = self.backend.omissions(choice, asked)
        names = {omission.name for omission in before}
        omitted = (*before, *(each for each in step.omitted if each.name not in names))
        self._plan = RequestPlan(step.round, choice, asked, omitted, step.tools_off)
        self._refusals = len(step.omitted)
        rendered = await self._requests.prepare(
            self._plan, lambda: self._log.state.history, self._is_declined
        )
        self._known = self._requests.rendered_ledger
        if step.round == 1:
            self._ledger = self._known
        if rendered.report.faults:
            self._rendered = rendered
            fault = rendered.report.faults[0]
            return self._record_refusal("judge", str(fault), rendered.report, fault.rule)
        if self._declined is not None and self._is_declined(rendered):
            return steps.TranscriptRefused(self._declined[1])  # the same transcript would be rejected again
        self._rendered = rendered
        if step.tools_off and not self._was_limited:
            self._was_limited = True
            self.backend.counts.tool_loop_max_iterations += 1
        return steps.Ready()

    def _is_declined(self, rendered: Rendered) -> bool:
        """Return True if this transcript was already rejected in this turn."""
        return self._declined is not None and b"".join(rendered._segments) == self._declined[0]

    async def _rewrite(self, step: steps.RewriteStep) -> Outcome:
        """Begin an epoch with notes in place of attachments, without old reasoning, or with tool calls as text."""
        binding = self.backend.binding
        epoch = 1 + await self._current_epoch()
        reason: EpochReason = "refusal" if step.plain else "thinking"
        event = EpochBegan(binding, epoch, reason, step.plain, step.reason)
        if step.media:
            assert self._rendered is not None
            is_plain = self._rendered.lane._state.plain
            event = EpochBegan(binding, epoch, "media", is_plain, step.reason, step.media)
        epoch_start = len(self._log.state.history)
        await self._log.write(event)
        await self._refs.renderer.send(Invalidate(event, epoch_start))
        return steps.Ready()

    async def _current_epoch(self) -> int:
        """Return the number of the lane's epoch.

        Rendering determines the number, so the history is rendered if this turn has not rendered a request yet.
        """
        if self._rendered is not None:
            return self._rendered.lane._state.epoch
        render = Render(self.backend.binding, self._log.state.history, self._ask.ledger.latest)
        rendered = await self._refs.renderer.ask(render)
        return rendered.lane._state.epoch

    def _tool_choice(self, *, tools_off: bool) -> ToolChoiceSetting | None:
        """Return the tool choice of a request.

        A forced tool choice applies only until the first answer; otherwise the turn could not end.
        """
        if tools_off:
            return "none"
        asked = self._log.state.asked
        if asked is None or self._has_answered or self._ask.has_forced_call:
            return None
        return asked.tool_choice

    async def _generate(self, round_number: int) -> Outcome:
        """Send the request of this round, and log the answer."""
        assert self._rendered is not None
        backend = self.backend
        request = self._requests.build(self._plan, self._rendered)
        self._ask.tally.record_losses(self._rendered.report, request)
        try:
            generated = await self._requests.send(self._plan, request, self._sink)
        except KernelError as error:
            return steps.RequestFailed(f"The provider's actor did not answer: {error}")
        match generated:
            case Answer(message=message):
                message = self._answer_message(message)
                await self._defer_round_end(round_number, message, generated)
                resolver, size = (
                    self._ask.resolver,
                    self._rendered.lane.size + self._ask.resolver.request_head_size,
                )
                resolver.calibrations[backend.binding].record_report(size, generated.usage)
                return steps.Answered(message, generated.usage, self._ask.tally.cut)
            case AbortedAnswer():
                kept = await self._write_interruption(round_number, generated, "cancelled")
                return steps.Stopped(kept, generated.usage)
            case BrokenAnswer():
                return await self._after_broken_answer(round_number, generated)
            case _:
                assert_never(generated)

    def _answer_message(self, message: Message) -> Message:
        """Return the message of an answer, as the history stores it.

        If the answer has no content, the message has no blocks.
        """
        if self._ask.output is not None:
            message = as_text(message)
        if self._ask.tally.cut is None:
            self._ask.tally.cut = content_cut(message, has_tools=bool(self.backend.settings.tools))
        is_empty = self._ask.tally.cut == "empty"
        self._has_answered |= self._ask.tally.cut not in ("empty", "unparsed")
        return Message(message.role, (), message.turn, message.origin) if is_empty else message

    async def _compact(self, is_repeated: bool) -> Outcome:
        """Compact the history, because the request was too long.

        `is_repeated` is True if an earlier compaction was not enough.
        """
        before = self._log.state.history.length
        made = await Compactor(self._requests).compact_after_overflow(is_repeated=is_repeated)
        self._guard.shift_position(before - self._log.state.history.length)
        return steps.CompactionEnded(bool(made.messages or made.results), made.error, made.usage)

    async def _check_answer(self, message: Message) -> Outcome:
        """Parse an answer as the type that the caller requested."""
        checked = self._ask.read_answer(message.text, self._bounds.repair)
        self.backend.counts.answers_repaired += bool(self._ask.tally.answer_repairs)
        return checked

    async def _add_instruction(self, text: str) -> Outcome:
        """Add an instruction for the model, for example a description of the errors in its answer."""
        self._ask.add_instruction(text)
        return steps.Ready()

    async def _after_broken_answer(self, round_number: int, broken: BrokenAnswer) -> Outcome:
        """Return the outcome of a failed request, and log the partial answer if there is one."""
        failure = self._name_refused_tool(broken.failure)
        broken = replace(broken, failure=failure)
        cause = Cause(failure.kind, failure.status)
        if (left_out := self._find_omission(broken)) is not None:
            return left_out
        # No parameter or attachment can be omitted, so the failure is treated as one of another kind.
        if failure.action == "leave_out" and not broken.visible:
            kind = failure.parameter.otherwise if failure.parameter else "transcript"
            failure, cause = replace(failure, kind=kind, action=ACTIONS[kind]), Cause(kind, failure.status)
        if failure.action == "our_bug":
            self.backend.counts.tool_api_400_total += 1
            assert self._rendered is not None
            report = refusal_report(self._rendered, failure.message, failure.rule)
            return self._record_refusal("provider", failure.message, report, failure.rule, cause)
        message = await self._write_interruption(round_number, broken, failure.message)
        return steps.RequestFailed(
            failure.message,
            visible=broken.visible,
            message=message,
            usage=broken.usage,
            can_fail_over=failure.action != "give_up",
            cause=cause,
            too_long=failure.action == "compact" and message is None,
        )

    def _name_refused_tool(self, failure: Failure) -> Failure:
        """Add the tool and the schema key to a failure's message, if the provider rejected a tool's schema."""
        if failure.status not in (400, 422) or failure.kind not in ("transcript", "parameter", "config"):
            return failure
        from actors.adapters.refusals import name_refused_tool  # imported lazily, as rejections are rare

        assert self._rendered is not None
        request = self._requests.build(self._plan, self._rendered)
        return replace(failure, message=name_refused_tool(failure.message, request))

    def _find_omission(self, broken: BrokenAnswer) -> steps.ParameterRefused | steps.MediaRefused | None:
        """Return the rejected parameters or attachments that the next request omits.

        `None` means that the request cannot omit them.
        """
        failure, state, rendered = broken.failure, self._log.state, self._rendered
        assert rendered is not None
        if failure.action != "leave_out" or broken.visible:
            return None
        if failure.kind == "parameter":
            return self._parameters_to_omit(failure, rendered)
        start = state.asked_at if self._round == 1 else state.history.length - 1
        return self._requests.media_to_omit(self._plan, rendered, failure, start)

    def _parameters_to_omit(self, failure: Failure, rendered: Rendered) -> steps.ParameterRefused | None:
        """Return the rejected parameters that the next request omits.

        `None` means that the request cannot omit them.
        """
        omitted = self._requests.parameters_to_omit(self._plan, rendered, failure, self._refusals)
        if not omitted:
            return None
        return steps.ParameterRefused(
            omitted, self._add_replacement_instruction({omission.name for omission in omitted})
        )

    def _add_replacement_instruction(self, omitted: Set[str]) -> ToolChoiceSetting | None:
        """Add an instruction that replaces a rejected output format or tool choice.

        Return the forced tool choice that was rejected, or None.
        """
        asked, ask = self._log.state.asked, self._ask
        if asked is None:
            return None
        if "output" in omitted and asked.output is not None and not ask.is_instructed:
            ask.is_instructed = True
            ask.add_instruction(instruction(asked.output))
        choice = self._plan.choice
        forced = choice if "tool_choice" in omitted and choice not in ("auto", "none") else None
        if forced is not None and not ask.is_forced:
            ask.is_forced = True
            ask.add_instruction(forced_instruction(forced))
        return forced

    def _record_refusal(
        self,
        by: Literal["judge", "provider"],
        why: str,
        report: Report,
        rule: str | None,
        cause: Cause | None = None,
    ) -> steps.TranscriptRefused:
        """Record that the judge or the provider rejected the transcript, and return the outcome for the turn.

        Args:
            by: `judge` if the transcript violates a rule of its dialect and was not sent; otherwise `provider`.
            why: The reason.
            report: The report of the render.
            rule: Id of the violated rule, if it is known.
            cause: The cause of the provider's failure.
        """
        from actors.core.rulebook import REASONING  # imported lazily, as rejections are rare

        assert self._rendered is not None
        self._declined = b"".join(self._rendered._segments), why
        request = self._requests.build(self._plan, self._rendered)
        session, binding = self._log.state.session, self.backend.binding
        self._ask.resolver.record_refusal(Refusal(session, binding, by, why, request.body, report))
        self._ask.tally.refusals += (RefusedRequest(binding, "transcript", why),)
        return steps.TranscriptRefused(why, rule in REASONING, cause)

    async def _write_interruption(
        self, round_number: int, broken: BrokenAnswer | AbortedAnswer, why: str
    ) -> Message | None:
        """Log a partial answer, marked as interrupted. Return its message, or None if no message arrived.

        `why` is the reason for the interruption.
        """
        kept = broken.message
        if kept is None and not (broken.calls or broken.left_out or broken.usage != NO_USAGE):
            return None
        nothing = Message("assistant", (), self._number, self.backend.binding)
        message = nothing if kept is None else interrupted_message(kept)
        await self._defer_round_end(round_number, message, broken, why)
        return message if kept is not None else None

    async def _defer_round_end(
        self, round_number: int, message: Message, generated: Generated, fault: str | None = None
    ) -> None:
        """Hold the event that ends the round.

        The event is logged together with the round's calls, or with the end of the turn.
        """
        finish, cut = self._ask.tally.finish, self._ask.tally.cut
        packed, left_out = pack(message) if message.blocks else None, generated.left_out
        self.backend.counts.count_calls(message)
        event = RoundEnded(
            self._number, round_number, packed, generated.usage, finish, fault, generated.calls, left_out, cut
        )
        self._log.hold(event)

    def _turn_view(self) -> TurnView:
        """Return the information about the turn that tools may read."""
        put = self._sink.put if self._sink.is_watched else None
        return TurnView(self._number, self._round, self._history, self._ledger, put)

    async def _run_batch(self, step: steps.BatchStep) -> Outcome:
        """Run a batch of tool calls."""
        scheduler = self._refs.scheduler
        self._ask.set_stop(lambda context: context.send(scheduler, StopBatch()))
        try:
            history = self._log.state.history
            self._guard.count_messages(history, self._known, history.length - 1)
            policy = self._guard.policy(step.calls)
            batch = RunBatch(
                step.calls,
                self._ask.variables,
                self._turn_view(),
                step.approved,
                step.approved,
                policy,
                self._bounds.repair,
                counts=self.backend.counts,
            )
            ended = await scheduler.ask(batch)
        finally:
            self._ask.clear_stop()
        if ended.snapshot is not None:
            self._ask.ledger.keep_newer(ended.snapshot)
        self._ask.tally.repaired += ended.repaired
        for delegated in ended.delegated:
            self._log.hold(delegated)
        if not (ended.external or ended.approvals):
            return steps.BatchOutcome(ended.refused, stuck=self.is_stuck())
        return steps.BatchOutcome(ended.refused, ended.external, ended.approvals)
