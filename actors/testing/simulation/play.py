"""Execute a plan: the caller of each session asks, switches, cancels, leaves, and waits for the end."""

from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from random import Random
from typing import Any

import anyio
from anyio.abc import TaskGroup

from actors.core.data.jsonio import JsonValue
from actors.core.stream_events.events import (
    CompleteEvent,
    ErrorEvent,
    MessageEvent,
    ResyncEvent,
    SessionEvent,
    TextEvent,
)
from actors.core.stream_events.results import AskResult
from actors.errors import (
    ActorsError,
    ConfigError,
    OverBudget,
    QueueFull,
    SessionClosed,
    SessionError,
    ToolsetFailed,
)
from actors.kernel import Command, Ref
from actors.runtime.handle import Session
from actors.runtime.runtime import Runtime
from actors.testing.simulation.outsider import Outsider
from actors.testing.simulation.plan import EXTRAS, MANNERS, Ask, Move, Talk
from actors.testing.simulation.saying import Said, message_of, prompt, words
from actors.testing.simulation.world import World

SETTLING = 36_000.0
"""Virtual seconds within which every session becomes quiescent."""
QUIET = 1000.0
"""Virtual seconds after which no retry delay and no circuit breaker is active."""
LAST_ASKS = 3
PROMPT = 1.0
"""Seconds within which a cancel closes every call: twice the grace period."""
SLEEPING = 0.12
"""Probability that a quiescent session is hibernated before an ask or before input for its turn."""
CROWD = 3
"""Number of concurrent asks: some are queued, and one exceeds the queue."""


class UnknownCommand(Command, frozen=True):
    """A command that no actor accepts, so its receiver crashes."""


class Reader:
    """A reader of a stream, which compares the deltas of each round with its complete message."""

    def __init__(self) -> None:
        self._text: dict[tuple[int, int], str] = {}
        self._missed = False

    def agrees(self, event: SessionEvent) -> bool:
        """Process an event; return False if it contradicts earlier events. Missed deltas prevent the comparison."""
        match event:
            case TextEvent(text=text, turn=turn, round=number):
                self._text[turn, number] = self._text.get((turn, number), "") + text
            case ResyncEvent():
                self._missed = True
            case MessageEvent(turn=turn, round=number, message=message):
                return self._missed or message.text.startswith(self._text.get((turn, number), ""))
            case _:
                pass
        return True


class Player:
    """Executes a plan in a runtime."""

    def __init__(self, world: World, runtime: Runtime) -> None:
        self._world = world
        self._runtime = runtime
        self.counts: Counter[str] = Counter()
        self._outside: dict[str, Outsider] = {}
        world.journal.on_wait = self._waits

    async def play(self) -> None:
        """Execute the plan; return when every session is quiescent."""
        async with anyio.create_task_group() as outside:
            await self._play_talks(outside)

    async def _play_talks(self, outside: TaskGroup) -> None:
        async with anyio.create_task_group() as tasks:
            for talk in self._world.plan.talks:
                tasks.start_soon(self._talk, talk, outside)
        if self._world.plan.mode == "liveness":
            self._world.faultless = True
        async with anyio.create_task_group() as tasks:
            for talk in self._world.plan.talks:
                tasks.start_soon(self._rest, talk)

    async def _talk(self, talk: Talk, outside: TaskGroup) -> None:
        """Have a session's caller do all it does. Every third is asked for approvals, those of others go outside."""
        approve = self._world.toolbox.approve if talk.number % 3 == 0 else None
        tools, names = self._world.kit(talk.id, "toolset" if talk.number % 7 == 3 else "all tools")
        system = prompt(talk.id) if talk.number // len(EXTRAS) % 2 else None
        self._world.observer.opening(talk.id, names)
        session = await self._runtime.open(
            talk.target,
            id=talk.id,
            tools=tools,
            system=system,
            approve=approve,
            budget=talk.budget,
            tenant=talk.tenant,
        )
        random = Random(f"{self._world.plan.seed}/{talk.id}/outside")  # noqa: S311  as in the plan
        outsider = self._outside[talk.id] = Outsider(
            session,
            random,
            self._world.problems,
            partial(self._record_result, session),
            partial(self._sleep, session),
        )
        outside.start_soon(outsider.run)
        for ask in talk.asks:
            await anyio.sleep(ask.pause)
            self._sleep(session, ask.name)
            with suppress(SessionClosed):  # it crashed too often
                await self._ask(session, ask)

    def _sleep(self, session: Session, occasion: str) -> None:
        """Hibernate a quiescent session at random; callers must not notice a difference."""
        chance = Random(f"{self._world.plan.seed}/{session.id}/{occasion}").random()  # noqa: S311  as in the plan
        lifecycle, before = session._lifecycle, (session.target, session.busy, session.pending)
        if chance >= SLEEPING or not lifecycle.passivate() or lifecycle.is_over:
            return
        lifecycle.evict()
        self.counts["sessions_that_slept"] += 1
        self.counts["turns_that_slept"] += session.busy
        if (session.target, session.busy, session.pending) != before or lifecycle.holding.total:
            self._world.problems.add("a session that sleeps is as it was", f"{session.id}: {occasion}")

    async def _ask(self, session: Session, ask: Ask) -> None:
        say = partial(self._listen if ask.streamed else self._ask_plainly, session, message_of(ask))
        if not ask.moves:
            await self._count_error(say, session)
            return
        caller = anyio.CancelScope()
        async with anyio.create_task_group() as tasks:
            for move in ask.moves:
                tasks.start_soon(self._move, session, move, caller)
            with caller:
                await self._count_error(say, session)
        self.counts["abandoned"] += caller.cancelled_caught

    async def _ask_plainly(self, session: Session, ask: Said) -> None:
        self._came(
            session, ask.name, await session.ask(ask.words, output=ask.output, check=False, **ask.settings)
        )

    async def _listen(self, session: Session, ask: Said) -> None:
        """Read the events of an ask and check that exactly one is terminal, and that it is the last."""
        last, terminal, reader, name = None, 0, Reader(), ask.name
        async with session.stream(ask.words, output=ask.output, **ask.settings) as events:
            async for last in events:
                terminal += isinstance(last, CompleteEvent | ErrorEvent)
                if not reader.agrees(last):
                    self._world.problems.add("what is shown is what is said, once", f"{session.id}: {name}")
        if terminal != 1 or not isinstance(last, CompleteEvent | ErrorEvent):
            self._world.problems.add("a stream ends with one terminal event", f"{session.id}: {name}")
        else:
            self._came(session, name, last.result)

    def _waits(self, session: str) -> None:
        if (outsider := self._outside.get(session)) is not None:
            outsider.start_checks()

    def _record_result(self, session: Session, name: str, result: AskResult) -> None:
        self.counts[result.status] += 1
        self._world.observer.ask_result(session.id, name, result, is_caller=False)

    def _came(self, session: Session, name: str, result: AskResult) -> None:
        self.counts[result.status] += 1
        self._world.observer.ask_result(session.id, name, result, is_caller=True)

    async def _cancel(self, session: Session) -> None:
        """Cancel, and check that every call is closed within the grace period."""
        began = anyio.current_time()
        await session.cancel()
        if session.id not in self._world.crashed and (took := anyio.current_time() - began) > PROMPT:
            self._world.problems.add("a cancel is prompt", f"{session.id}: {took:.1f} s")

    async def _compact(self, session: Session) -> None:
        self.counts["compacted"] += (await session.compact()).messages > 0

    async def _rewind(self, session: Session, move: Move) -> None:
        """Take back turns that have ended; when it is done, another rewind may have taken them before, or a summary."""
        ended = self._world.journal.ended_turns(session.id)
        back = len(ended) if move.target == "all" else int(move.target)
        with suppress(ConfigError):
            self.counts["turns_taken_back"] += (
                await session.rewind(ended[-1 - back] if back < len(ended) else 0) > 0
            )

    async def _move(self, session: Session, move: Move, caller: anyio.CancelScope) -> None:
        await anyio.sleep(move.after)
        self.counts[move.kind] += 1
        match move.kind:
            case "switch":
                await self._count_error(partial(session.switch, move.target), session)
            case "cancel":
                await self._count_error(partial(self._cancel, session), session)
            case "abandon":
                caller.cancel()
            case "crash":
                with suppress(ActorsError):  # it has none
                    await self._crash(session, move.target)
            case "compact":
                await self._count_error(partial(self._compact, session), session)
            case "rewind":
                await self._count_error(partial(self._rewind, session, move), session)
            case "configure":
                await self._count_error(partial(self._configure, session, move), session)
            case "call_tool":
                await self._count_error(partial(self._run_tool, session, move), session)
            case "busy":
                await self._crowd(session, move.name)

    async def _run_tool(self, session: Session, move: Move) -> None:
        manner = MANNERS[len(MANNERS) - 1 - int(move.after) % len(MANNERS)]
        arguments: dict[str, JsonValue] = {
            "key": move.name,
            "manner": manner,
            "seconds": round(move.after, 3),
        }
        result = await session.call_tool(move.target, arguments)
        self._world.observer.program_call(session.id, move.name, result)

    async def _configure(self, session: Session, move: Move) -> None:
        """Configure another system prompt, other tools, or both."""
        change: dict[str, Any] = {}  # Any: fields of `configure`
        wants: dict[str, object] = {}
        if move.target in ("system", "no system", "both"):
            wants["system"] = change["system"] = None if move.target == "no system" else prompt(move.name)
        if move.target.endswith(("tools", "both", "toolset")):
            kit = "some tools" if move.target == "both" else move.target
            change["tools"], wants["tools"] = self._world.kit(session.id, kit)
        outcome = await session.configure(**change)
        self._world.observer.configured(session.id, outcome, wants)

    async def _crash(self, session: Session, which: str) -> None:
        self._world.crashed.add(session.id)
        refs = session._refs
        actors: dict[str, Ref[Any]] = {  # Any: no actor takes the command, that is the point
            "session": session._session,
            "scheduler": refs.scheduler,
            "ledger": refs.ledger,
            "renderer": refs.renderer,
        }
        await actors[which].send(UnknownCommand())

    async def _crowd(self, session: Session, name: str) -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(CROWD):
                ask = f"{name.partition('.m')[0]}9{number}"  # as a number too it is no other's
                tasks.start_soon(
                    self._count_error, partial(self._ask_plainly, session, Said(ask, words(ask))), session
                )

    async def _count_error(
        self, action: Callable[[], Any], session: Session
    ) -> None:  # Any: something to await
        """Run an action and count its error by kind, if it is rejected."""
        try:
            await action()
        except (QueueFull, SessionClosed, SessionError, ToolsetFailed) as error:
            self.counts[type(error).__name__] += 1
            if isinstance(error, OverBudget):
                self._world.observer.over_budget(session.id)

    async def _rest(self, talk: Talk) -> None:
        """Wait until a session is quiescent; in liveness mode, then require an answer."""
        with self._leaving(talk.id), suppress(SessionClosed):
            session = self._runtime.session(talk.id)
            with anyio.move_on_after(SETTLING) as patience:
                while session.busy:
                    self._waits(talk.id)  # a crash may have hidden for a moment that it does
                    await anyio.sleep(1)
                self._outside[talk.id].scope.cancel()
                if self._world.faultless and talk.budget is None and not talk.tenant:
                    await self._last(session, talk)
            if patience.cancelled_caught:
                self._world.problems.add("every session comes to rest", session.id)

    @contextmanager
    def _leaving(self, name: str) -> Generator[None]:
        try:
            yield
        finally:
            self._outside[name].scope.cancel()

    async def _last(self, session: Session, talk: Talk) -> None:
        """Ask until there is an answer, because a circuit breaker may admit only one request at first."""
        why = ""
        for number in range(LAST_ASKS):
            await anyio.sleep(QUIET)
            result = await session.ask(words(f"{talk.number}.999{number}"), check=False)
            if result.status == "complete":
                return
            why = result.error
        self._world.problems.add("without faults every session answers", f"{session.id}: {why}")
