"""Driving an ask: the child of a session that drives `actors.core.turn` with the real actors.

An ask is one turn, or several after failover. A turn is asked what it needs (render, generate, run this
batch, close) and told what came of it; here each of those becomes a question to the actor that can do it.
The view of a turn (binding, settings, tools) is frozen when it begins.

Whatever happens is written before it is shown: the user's message before the request, the request and its
seals before its first byte, the model's message before its calls run.
"""

from collections.abc import Callable
from contextlib import suppress
from contextvars import Context as Variables
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias, assert_never

import anyio
from msgspec import Struct

from actors.adapters.adapter import Adapter, Prepared
from actors.adapters.request import Request, Settings
from actors.core import turn as turns
from actors.core.caching import lane_key
from actors.core.content import Message, Text
from actors.core.diagnostics import Refusal, Report
from actors.core.events import (
    Bound,
    EpochBegan,
    RequestSent,
    RoundEnded,
    Submitted,
    SwitchApplied,
    TurnEnded,
    TurnStatus,
)
from actors.core.feed import Attempt, Cause, Sent, Sink, StatusEvent, ToolCallEvent, TurnResult, switched
from actors.core.identity import Binding
from actors.core.lane import Rendered, blamed, seals
from actors.core.packed import Packed, pack
from actors.core.routing import Pool, after_failure, first, settled
from actors.core.rulebook import REASONING
from actors.core.stream import Cut, Usage
from actors.core.transcript import NO_FACTS
from actors.core.turn import Bounds, CloseStep, Outcome
from actors.errors import ConfigError, KernelError
from actors.journal import JournalCommand
from actors.kernel import Context, Ref
from actors.ledger import Known, LedgerCommand, SealResults, Snapshot
from actors.log import LogWriter
from actors.provider import Abort, ProviderCommand
from actors.renderer import Adopt, Invalidate, Render, RendererCommand
from actors.rounds import Aborted, Answer, Broken, Generate
from actors.scheduler import CloseCalls, RunBatch, SchedulerCommand, StopBatch

Stop: TypeAlias = Callable[[Context[Any]], None]  # Any: the actor that cancels an ask
"""Stops a step that is under way, from the handler of an actor."""

INTERRUPTED = "[This answer was interrupted.]"


@dataclass(slots=True)
class ResolvedBackend:
    """What requests to one backend are made with, for sessions with the same tools and system prompt."""

    binding: Binding
    adapter: Adapter
    settings: Settings
    _prepared: tuple[tuple[bool, frozenset[str]], Prepared] | None = None

    def request(self, rendered: Rendered, session: str, *, tools_off: bool = False) -> Request:
        """Return the request that sends what was rendered for a session."""
        facts = rendered.facts._replace(lane=lane_key(session, self.binding))
        asked = tools_off, NO_FACTS.tools if self.settings.tools else facts.tools
        if (
            self._prepared is None or self._prepared[0] != asked
        ):  # most requests are made with what the last was
            settings = replace(self.settings, tool_choice="none") if tools_off else self.settings
            self._prepared = asked, self.adapter.prepared(settings, facts.tools)
        return self._prepared[1].request(rendered.segments, facts)


class Resolver(Protocol):
    """What the runtime knows of targets, for one session."""

    def pool(self, target: str) -> Pool:
        """Return the pool of a target; a single backend is a pool of itself.

        Raises:
            ConfigError: There is no such target, or it cannot be used.
        """

    def backend(self, member: str) -> ResolvedBackend:
        """Return what requests to a pool's member are made with. Raises what `pool` raises."""

    def provider(self, member: str, binding: Binding) -> Ref[ProviderCommand]:
        """Return who sends requests to a pool's member. Raises what `pool` raises."""

    def refused(self, refusal: Refusal) -> None:
        """Count and keep a transcript that was refused for its structure: our bug, with its evidence."""


class SessionRefs(Struct, frozen=True):
    """The actors a session commands."""

    scheduler: Ref[SchedulerCommand]
    renderer: Ref[RendererCommand]
    ledger: Ref[LedgerCommand]
    journal: Ref[JournalCommand]


@dataclass(slots=True)
class TurnDriver:
    """Drives one ask.

    Args:
        log: Writes the session's own events.
        refs: The session's actors.
        resolver: What targets mean.
        bounds: How long a turn may go on.
        cooldowns: Until when backends are not asked again, by name; shared by the session's asks.
        sink: Where events go.
        variables: Context variables that the ask's tools see.
        ended: Called with how the ask came out, and the number of its last event, when that is durable.
    """

    log: LogWriter
    refs: SessionRefs
    resolver: Resolver
    bounds: Bounds
    cooldowns: dict[str, float]
    sink: Sink
    variables: Variables
    ended: Callable[[TurnResult, int], None]
    cancelled: bool = False
    _stop: Stop | None = None
    _attempts: list[Attempt] = field(default_factory=list)
    _usage: Usage = field(default_factory=Usage)
    _rounds: int = 0
    _text: str = ""
    _stopped: tuple[str | None, Cut | None] = (
        None,
        None,
    )  # the last answer: in whose word, and how it is cut
    _left_out: dict[str, int] = field(default_factory=dict)

    def cancel(self, context: Context[Any]) -> None:  # Any: the actor that cancels it
        """Stop what is under way, from a handler of `context`. The ask ends by itself, soon, with every call closed."""
        self.cancelled = True
        if self._stop is not None:
            self._stop(context)

    def tell(self, status: str, seq: int, detail: str = "") -> None:
        """Show that something happened beside the turn: a switch held, applied or superseded."""
        if self.sink.is_watched:
            self.sink.put(StatusEvent(status, seq, self.log.state.turns, detail=detail))

    async def run(self, message: Packed) -> None:
        """Drive the ask to its end. How it came out is told by `ended`."""
        number = self.log.state.asks + 1
        self.log.hold(Submitted(number, message), partial(self.tell, "submitted"))
        pool = self._pool(self.log.state.target)
        member = first(pool, number, self.cooldowns, anyio.current_time())
        tried: list[str] = []
        while True:
            binding, ended = await self._served(member, number)
            tried.append(member)
            pool, following = await self._next(pool, tried, ended)
            seq = await self._end(binding, ended, last=following is None)
            if following is None:
                return
            self.tell("failover", seq, following)
            member = following

    async def _end(self, binding: Binding, ended: CloseStep, *, last: bool) -> int:
        """Write that a turn ended, the ask's last or one before it."""
        status: TurnStatus = ended.status if last else "handed_over"
        self._attempts.append(Attempt(binding, status, ended.why, ended.cause))
        turn = self.log.state.turns

        def told(seq: int) -> None:
            self.tell("turn_ended", seq, status)
            if last:
                self.ended(self._result(binding, ended), seq)

        return await self.log.write(TurnEnded(turn, status, ended.why), told)

    def _result(self, served_by: Binding, ended: CloseStep) -> TurnResult:
        status = ended.status
        assert status in ("complete", "cancelled", "failed")
        return TurnResult(
            self._text,
            status,
            served_by,
            tuple(self._attempts),
            self._rounds,
            self._usage,
            ended.why,
            *self._stopped,
            tuple(self._left_out.items()),
        )

    def heard(self, generated: Answer | Broken | Aborted) -> None:
        """Take note of what a round brought: the last one says how the ask's answer ended."""
        self._stopped = _stop_of(generated)
        for kind, count in generated.left_out:
            self._left_out[kind] = self._left_out.get(kind, 0) + count

    async def _next(self, pool: Pool, tried: list[str], ended: CloseStep) -> tuple[Pool, str | None]:
        """Return who continues the ask after a failed turn: a held switch first, else the pool's next."""
        if ended.status != "failed" or not ended.elsewhere or self.cancelled:
            return pool, None
        self.cooldowns[tried[-1]] = anyio.current_time() + pool.cooldown
        if ended.visible and not pool.failover_after_output:
            return pool, None
        if (held := self.log.state.held) is not None:
            event = settled(held, self.resolver.pool)
            self.sink.put(switched(event, await self.log.write(event), self.log.state.turns))
            if isinstance(event, SwitchApplied):
                pool = self._pool(held)
                return pool, next((name for name in pool.members if name not in tried), None)
        return pool, after_failure(pool, tried, ended.visible)

    def _pool(self, target: str) -> Pool:
        """Return a target's pool; of a target that cannot be used any more, one that fails when it is served."""
        try:
            return self.resolver.pool(target)
        except ConfigError:
            return Pool(target, (target,))

    async def _served(self, member: str, ask: int) -> tuple[Binding, CloseStep]:
        """Drive one turn on a pool's member. Its end is not yet written."""
        number = self.log.state.turns + 1
        try:
            backend = self.resolver.backend(member)
            provider = self.resolver.provider(member, backend.binding)
        except ConfigError as error:  # it could be used when the session was opened: a key is gone since
            binding = Binding(member, "")
            self.log.hold(
                Bound(number, ask, binding), partial(self.tell, "turn_started", detail=str(binding))
            )
            return binding, CloseStep("failed", str(error), elsewhere=True)
        binding = backend.binding
        self.log.hold(Bound(number, ask, binding), partial(self.tell, "turn_started", detail=str(binding)))
        return binding, await self._turn(_TurnSteps(self, backend, provider, number))

    async def _turn(self, served: "_TurnSteps") -> CloseStep:
        conversation = turns.turn(self.bounds)
        step = next(conversation)
        while not isinstance(step, CloseStep):
            outcome = turns.Stopped() if self.cancelled else await served.do(step)
            if self.cancelled and not isinstance(outcome, turns.Stopped):
                outcome = _stopped(outcome)
            step = conversation.send(outcome)
        await served.close(step)
        self._usage += step.usage
        self._rounds += step.rounds
        self._text = step.message.text if step.message is not None else self._text
        return step

    def stoppable(self, stop: Stop) -> None:
        """Let a cancel call `stop` from now on."""
        self._stop = stop

    def finished(self) -> None:
        """Let a cancel wait for the step's end again."""
        self._stop = None


def _stop_of(generated: Answer | Broken | Aborted) -> tuple[str | None, Cut | None]:
    """Return why an answer stopped, and how it is cut; nothing for one that did not come to its end."""
    return (generated.finish, generated.cut) if isinstance(generated, Answer) else (None, None)


def _stopped(outcome: Outcome) -> turns.Stopped:
    """Return what a step came to in a turn that was cancelled meanwhile: what it brought is kept, not run."""
    if isinstance(outcome, turns.Answered | turns.Broke):
        return turns.Stopped(outcome.message, outcome.usage)
    return turns.Stopped()


class _TurnSteps:
    """The steps of one turn, done by the actors that can."""

    def __init__(
        self, driver: TurnDriver, backend: ResolvedBackend, provider: Ref[ProviderCommand], number: int
    ) -> None:
        self._driver = driver
        self._refs = driver.refs
        self._log = driver.log
        self._sink = driver.sink
        self._backend = backend
        self._provider = provider
        self._number = number
        self._rendered: Rendered | None = None
        self._declined: tuple[bytes, str] | None = None  # what was refused last, and why
        self._tools_off = False

    async def do(self, step: turns.Asking) -> Outcome:
        """Do one step and say what came of it."""
        match step:
            case turns.RenderStep():
                return await self._render(step)
            case turns.RewriteStep():
                return await self._rewrite(step)
            case turns.GenerateStep(round=number):
                return await self._generate(number)
            case turns.BatchStep():
                return await self._run(step)
            case _:
                assert_never(step)

    async def close(self, step: CloseStep) -> None:
        """Close the calls that will not be run."""
        if step.unrun:
            unrun = tuple(call.id for call in step.unrun)
            await self._refs.scheduler.ask(CloseCalls(unrun, "never_started", self._log.prelude()))

    async def _render(self, step: turns.RenderStep) -> Outcome:
        """Render, judge, and write that the request is sent; again whenever a result came in meanwhile."""
        binding = self._backend.binding
        self._tools_off = step.tools_off
        while True:
            known = await self._refs.ledger.ask(Snapshot())
            rendered = await self._refs.renderer.ask(Render(binding, self._log.state.history, known.ledger))
            if rendered.report.faults:
                self._rendered = rendered
                fault = rendered.report.faults[0]
                return turns.Unfit(
                    self._refused("judge", str(fault), rendered.report), fault.rule in REASONING
                )
            if self._declined is not None and b"".join(rendered.segments) == self._declined[0]:
                return turns.Unfit(self._declined[1])  # the same again would be refused again
            if await self._sealed(step.round, rendered, known):
                return turns.Ready()

    async def _sealed(self, number: int, rendered: Rendered, known: Known) -> bool:
        """Write that a request is sent, with what was held until now; say no if it was rendered too early."""
        binding, state = self._backend.binding, rendered.lane.state
        sealed = seals(rendered, known.ledger)
        sent = RequestSent(self._number, number, binding, state.epoch, state.cursor, sealed)
        prelude = self._log.prelude()
        seq = await self._refs.ledger.ask(SealResults(sent, known.version, prelude))
        if seq is None:
            self._log.restore(prelude)
            return False
        await self._refs.renderer.tell(Adopt(binding, rendered.lane))
        self._rendered = rendered
        self._show_request(number, rendered, seq)
        return True

    def _show_request(self, number: int, rendered: Rendered, seq: int) -> None:
        if self._sink.is_watched:
            lane, binding = rendered.lane, self._backend.binding
            sent = Sent(binding, lane.state.epoch, rendered.before, lane.size, rendered.report)
            self._sink.put(StatusEvent("request", seq, self._number, number, sent=sent))

    async def _rewrite(self, step: turns.RewriteStep) -> Outcome:
        """Begin an epoch: without the reasoning of the old one, or with the conservative render."""
        binding = self._backend.binding
        epoch = 1 + await self._epoch()
        event = EpochBegan(binding, epoch, "refusal" if step.plain else "thinking", plain=step.plain)
        epoch_start = len(self._log.state.history)
        seq = await self._log.write(event)
        await self._refs.renderer.tell(Invalidate(event, epoch_start))
        self._driver.tell("rewritten", seq, step.why)
        return turns.Ready()

    async def _epoch(self) -> int:
        if self._rendered is not None:
            return self._rendered.lane.state.epoch
        known = await self._refs.ledger.ask(Snapshot())
        render = Render(self._backend.binding, self._log.state.history, known.ledger)
        rendered = await self._refs.renderer.ask(render)
        return rendered.lane.state.epoch

    def _request(self, rendered: Rendered) -> Request:
        return self._backend.request(rendered, self._log.state.session, tools_off=self._tools_off)

    async def _generate(self, number: int) -> Outcome:
        """Send the request, and write what came of it."""
        assert self._rendered is not None
        backend, provider = self._backend, self._provider
        key = f"{self._log.state.session}/{self._number}/{number}"
        generate = Generate(
            key,
            self._request(self._rendered),
            backend.binding,
            self._log.state.calls + 1,
            self._number,
            number,
            self._sink if self._sink.is_watched else None,
        )
        self._driver.stoppable(lambda context: context.tell(provider, Abort(key)))
        try:
            generated = await provider.ask(generate)
        except KernelError as error:
            return turns.Broke(f"The provider's actor did not answer: {error}")
        except BaseException:  # this ask is being ended: nobody will read the round
            with suppress(KernelError):
                provider.tell_nowait(Abort(key))
            raise
        finally:
            self._driver.finished()
        self._driver.heard(generated)
        match generated:
            case Answer(message=message):
                await self._ended(number, message, generated)
                return turns.Answered(message, generated.usage)
            case Aborted():
                kept = await self._interrupted(number, generated, "cancelled")
                return turns.Stopped(kept, generated.usage)
            case Broken():
                return await self._broke(number, generated)
            case _:
                assert_never(generated)

    async def _broke(self, number: int, broken: Broken) -> Outcome:
        failure = broken.failure
        cause = Cause(failure.kind, failure.status)
        if failure.action == "our_bug":
            assert self._rendered is not None
            report = blamed(self._rendered, failure.message, failure.rule)
            why = self._refused("provider", failure.message, report)
            reasoning = failure.rule in REASONING
            return turns.Unfit(why, reasoning, cause)
        message = await self._interrupted(number, broken, failure.message)
        return turns.Broke(
            failure.message,
            visible=broken.visible,
            message=message,
            usage=broken.usage,
            elsewhere=failure.action != "give_up",
            cause=cause,
        )

    def _refused(self, by: Literal["judge", "provider"], why: str, report: Report) -> str:
        """Keep the evidence of a refusal; return its words."""
        assert self._rendered is not None
        self._declined = b"".join(self._rendered.segments), why
        request = self._request(self._rendered)
        session, binding = self._log.state.session, self._backend.binding
        self._driver.resolver.refused(Refusal(session, binding, by, why, request.body, report))
        return why

    async def _interrupted(self, number: int, broken: Broken | Aborted, why: str) -> Message | None:
        """Write what could be kept of an answer, marked; return it, or None if there is nothing."""
        kept = broken.message
        if kept is None and not broken.calls:
            return None
        if kept is None:
            message = Message("model", (), self._number, self._backend.binding)
        else:
            message = Message("model", (*kept.blocks, Text(INTERRUPTED)), kept.turn, kept.origin)
        await self._ended(number, message, broken, why)
        return message if kept is not None else None

    async def _ended(
        self, number: int, message: Message, generated: Answer | Broken | Aborted, fault: str | None = None
    ) -> None:
        """Have the round's message written, and shown, with what follows: its batch of calls, or the turn's end."""
        finish, cut = _stop_of(generated)
        packed, left_out = pack(message) if message.blocks else None, generated.left_out
        event = RoundEnded(
            self._number, number, packed, generated.usage, finish, fault, generated.calls, left_out
        )
        self._log.hold(event, partial(self._show, event, message, cut))

    def _show(self, event: RoundEnded, message: Message, cut: Cut | None, seq: int) -> None:
        if not self._sink.is_watched:
            return
        turn, number, put = event.turn, event.round, self._sink.put
        said = StatusEvent(
            "message", seq, turn, number, event.fault or "", message, cut=cut, left_out=event.left_out
        )
        put(said)
        for call in message.calls:
            put(ToolCallEvent(call.id, call.name, call.arguments, turn, number, seq))

    async def _run(self, step: turns.BatchStep) -> Outcome:
        """Run a batch, and show how its calls ended."""
        scheduler = self._refs.scheduler
        self._driver.stoppable(lambda context: context.tell(scheduler, StopBatch()))
        try:
            ended = await scheduler.ask(RunBatch(step.calls, self._driver.variables, self._log.prelude()))
        finally:
            self._driver.finished()
        self._sink.put(StatusEvent("tool_results", ended.seq, self._number, detail="", results=ended.ends))
        return turns.Ran(ended.refused)
