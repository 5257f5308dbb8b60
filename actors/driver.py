"""Driving an ask: the child of a session that drives `actors.core.turn` with the real actors.

An ask is one turn, or several after failover. A turn is asked what it needs (render, generate, run this
batch, close) and told what came of it; `actors.steps` does each of those. The view of a turn (binding, settings,
tools) is frozen when it begins.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import anyio

from actors.backend import ResolvedBackend
from actors.choosing import MemberChoice, Warmth
from actors.core import turn as turns
from actors.core.asking import Asked
from actors.core.content import Message, Text
from actors.core.events import Bound, Submitted, SwitchApplied, TurnEnded, TurnStatus
from actors.core.feed import TurnResult, switched
from actors.core.identity import Binding
from actors.core.output import instruction
from actors.core.packed import Packed, pack, unpack
from actors.core.progress import Attempt
from actors.core.publishing import begun, submitted
from actors.core.routing import Pool, settled
from actors.core.spending import why_over
from actors.core.turn import Bounds, CloseStep, Outcome
from actors.errors import ConfigError
from actors.inflight import AskInFlight
from actors.steps import TurnSteps


@dataclass(slots=True)
class TurnDriver:
    """Drives one ask.

    Args:
        ask: What its turns share.
        bounds: How long a turn may go on.
        warmth: Where the session was sent what, and when; shared by its asks.
        ended: Called with how the ask came out, and the number of its last event, when that is durable.
    """

    ask: AskInFlight
    bounds: Bounds
    warmth: Warmth
    ended: Callable[[TurnResult, int], None]
    _began: float = 0.0

    async def run(self, message: Packed, asked: Asked | None) -> None:
        """Drive the ask to its end. How it came out is told by `ended`."""
        number = self.ask.log.state.asks + 1
        pool = self._pool(self.ask.log.state.target)
        choice = MemberChoice(self.ask.resolver, self.warmth, self.ask.log.state.session, number)
        member = await choice.first(pool)
        message = self._with_form(member, message, asked)
        event = Submitted(number, message, asked)
        self.ask.log.hold(event, partial(self._told, event, self.ask.log.state.turns + 1))
        tried: list[str] = []
        while True:
            binding, ended, sent = await self._served(member, number)
            choice.sent(pool, member, sent)
            tried.append(member)
            pool, following = await self._next(pool, choice, tried, ended)
            await self._end(binding, ended, last=following is None)
            if following is None:
                return
            member = following

    def _with_form(self, member: str, message: Packed, asked: Asked | None) -> Packed:
        """Return the user's message with what tells the model the form of its answer, where words have to."""
        if asked is None or asked.output is None:
            return message
        try:
            self.ask.is_instructed = self.ask.resolver.backend(member).needs_words(asked)
        except ConfigError:  # it will be told to whoever serves in its place
            return message
        if not self.ask.is_instructed:
            return message
        said = unpack(message)
        return pack(
            Message(said.speaker, (*said.blocks, Text(instruction(asked.output))), said.turn, said.origin)
        )

    def _instruct(self, backend: ResolvedBackend) -> None:
        """Tell a backend that serves after another the form of the answer, if words have to and nobody did."""
        asked = self.ask.log.state.asked
        if asked is None or asked.output is None or self.ask.is_instructed or not backend.needs_words(asked):
            return
        self.ask.is_instructed = True
        self.ask.instruct(instruction(asked.output))

    async def _end(self, binding: Binding, ended: CloseStep, *, last: bool) -> None:
        """Write that a turn ended, the ask's last or one before it."""
        status: TurnStatus = ended.status if last else "handed_over"
        tally = self.ask.tally
        retried, wait = tuple(tally.retried), tally.wait
        tally.attempts += (*retried, Attempt(binding, status, ended.why, ended.cause, wait))
        tell = self.ask.telling("turn_ended", status, more=last)

        def told(seq: int) -> None:
            tell(seq)
            if last:
                self.ended(self.ask.tally.result(binding, ended), seq)

        turn = self.ask.log.state.turns
        budget = self.ask.log.state.budget
        counted = budget is not None and budget.seconds is not None
        seconds = anyio.current_time() - self._began if counted else 0.0
        await self.ask.log.write(
            TurnEnded(turn, status, ended.why, ended.cause, retried, wait, seconds), told
        )

    async def _next(
        self, pool: Pool, choice: MemberChoice, tried: list[str], ended: CloseStep
    ) -> tuple[Pool, str | None]:
        """Return who continues the ask after a failed turn: a held switch first, else the pool's next."""
        if ended.status != "failed" or not ended.elsewhere or self.ask.cancelled:
            return pool, None
        if ended.visible and not pool.failover_after_output:
            return pool, None
        if (held := self.ask.log.state.held) is not None:
            event = settled(held, self.ask.resolver.pool)
            self.ask.sink.put(switched(event, await self.ask.log.write(event), self.ask.log.state.turns))
            if isinstance(event, SwitchApplied):
                pool = self._pool(held)
                return pool, next((name for name in pool.members if name not in tried), None)
        return pool, await choice.following(pool, tried, visible=ended.visible)

    def _pool(self, target: str) -> Pool:
        """Return a target's pool; of a target that cannot be used any more, one that fails when it is served."""
        try:
            return self.ask.resolver.pool(target)
        except ConfigError:
            return Pool(target, (target,))

    async def _served(self, member: str, ask: int) -> tuple[Binding, CloseStep, int]:
        """Drive one turn on a pool's member; return the bytes it sent last, too. Its end is not yet written."""
        number = self.ask.log.state.turns + 1
        self.ask.tally.wait = 0.0
        self.ask.tally.retried.clear()
        try:
            backend = self.ask.resolver.backend(member)
            provider = self.ask.resolver.provider(member, backend.binding)
        except ConfigError as error:  # it could be used when the session was opened: a key is gone since
            binding = Binding(member, "")
            self._bind(Bound(number, ask, binding))
            return binding, CloseStep("failed", str(error), elsewhere=True), 0
        binding = backend.binding
        self._bind(Bound(number, ask, binding))
        self._instruct(backend)
        steps = TurnSteps(self.ask, backend, provider, number)
        return binding, await self._turn(steps), steps.sent

    def _told(self, event: Submitted, turn: int, seq: int) -> None:
        if self.ask.sink.is_watched:
            self.ask.sink.put(submitted(event, turn, seq))

    def _bind(self, bound: Bound) -> None:
        """Hold a turn's first event; one that continues an ask is told as a failover too."""
        is_failover, self._began = bool(self.ask.tally.attempts), anyio.current_time()

        def told(seq: int) -> None:
            if self.ask.sink.is_watched:
                for event in begun(bound, seq, is_failover=is_failover):
                    self.ask.sink.put(event)

        self.ask.log.hold(bound, told)

    async def _turn(self, served: TurnSteps) -> CloseStep:
        conversation = turns.turn(_bounded(self.bounds, self.ask.log.state.asked))
        step = next(conversation)
        while not isinstance(step, CloseStep):
            outcome = turns.Stopped() if self._is_over(step) else await served.do(step)
            if self.ask.cancelled and not isinstance(outcome, turns.Stopped):
                outcome = _stopped(outcome)
            step = conversation.send(outcome)
        step = self.ask.ended(step)
        await served.close(step)
        binding = self.ask.log.state.bound
        self.ask.tally.closed(step, None if binding is None else self.ask.resolver.cost(binding, step.usage))
        return step

    def _is_over(self, step: turns.Step) -> bool:
        """Say whether the turn ends before this step: cancelled, or, before a request, with a budget used up."""
        if isinstance(step, turns.RenderStep) and not self.ask.cancelled:
            state, used, why = self.ask.log.state, self.ask.tally.tokens, None
            most = None if state.asked is None else state.asked.tokens
            if state.budget is not None and state.used is not None:
                why = why_over(state.budget, state.used, self.ask.resolver.cost)
            if most is not None and used >= most:
                why = f"the ask used {used} tokens of the {most} that its setting tokens allows"
            if why is not None:
                self.ask.cancelled, self.ask.halted = True, why
        return self.ask.cancelled


def _bounded(bounds: Bounds, asked: Asked | None) -> Bounds:
    """Return how long a turn may go on. One that may call no tools has one round."""
    if asked is None:
        return bounds
    rounds = 1 if asked.tool_choice == "none" else asked.rounds or bounds.rounds
    corrections = bounds.corrections if asked.corrections is None else asked.corrections
    return Bounds(rounds, corrections, asked.output is not None)


def _stopped(outcome: Outcome) -> turns.Stopped:
    """Return what a step came to in a turn that was cancelled meanwhile: what it brought is kept, not run."""
    if isinstance(outcome, turns.Answered | turns.Broke):
        return turns.Stopped(outcome.message, outcome.usage)
    return turns.Stopped()
