"""Execute a plan: the caller of each session asks, switches, cancels, abandons asks, and waits for the end."""

from collections import Counter
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from random import Random
from typing import Any

import anyio
from anyio.abc import TaskGroup

from actors.core.data.jsonio import JsonValue
from actors.core.stream_events.ask_events import AskResult, CompleteEvent, ErrorEvent
from actors.core.stream_events.events import ResyncEvent, SessionEvent
from actors.core.stream_events.round_events import MessageEvent, TextEvent
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
from actors.testing.simulation.call_resolver import CallResolver
from actors.testing.simulation.model import PlannedMessage, ask_text, planned_message, prompt
from actors.testing.simulation.plan import EXTRAS, MANNERS, PlannedAction, PlannedAsk, SessionPlan
from actors.testing.simulation.world import World

MAX_SETTLE_SECONDS = 36_000.0
"""Virtual seconds within which every session must become idle."""
RECOVERY_SECONDS = 1000.0
"""Virtual seconds after which no retry delay and no circuit breaker is active any more."""
LAST_ASKS = 3
MAX_CANCEL_SECONDS = 1.0
"""Seconds within which a cancel must close every call: twice the grace period."""
HIBERNATION_PROBABILITY = 0.12
"""Probability that an idle session hibernates before an ask, or before results and approvals are sent."""
CONCURRENT_ASKS = 3
"""Number of concurrent asks, chosen so that some are queued and one exceeds the queue."""


class UnknownCommand(Command, frozen=True):
    """A command that no actor knows, so its receiver crashes."""


class Reader:
    """A reader of a stream that compares the deltas of each round with the complete message."""

    def __init__(self) -> None:
        self._text: dict[tuple[int, int], str] = {}
        self._missed = False

    def agrees(self, event: SessionEvent) -> bool:
        """Process an event. Return False if a complete message differs from the deltas before it.

        If deltas were missed, no difference can be detected, so the result is True.
        """
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
    """The callers of all sessions, which execute a plan in a runtime."""

    def __init__(self, world: World, runtime: Runtime) -> None:
        self._world = world
        self._runtime = runtime
        self.counts: Counter[str] = Counter()
        self._resolvers: dict[str, CallResolver] = {}
        world.journal.on_wait = self._start_checks

    async def play(self) -> None:
        """Execute the plan. Return when every session is idle."""
        async with anyio.create_task_group() as background_tasks:
            await self._play_sessions(background_tasks)

    async def _play_sessions(self, background_tasks: TaskGroup) -> None:
        async with anyio.create_task_group() as tasks:
            for session_plan in self._world.plan.session_plans:
                tasks.start_soon(self._play_session, session_plan, background_tasks)
        if self._world.plan.mode == "liveness":
            self._world.faultless = True
        async with anyio.create_task_group() as tasks:
            for session_plan in self._world.plan.session_plans:
                tasks.start_soon(self._wait_until_idle, session_plan)

    async def _play_session(self, session_plan: SessionPlan, background_tasks: TaskGroup) -> None:
        """Execute the plan of one session.

        Every third session has a function that decides on approvals; in the other sessions, a `CallResolver` decides.
        """
        approve = self._world.toolbox.approve if session_plan.number % 3 == 0 else None
        tools, names = self._world.tools_for(
            session_plan.id, "toolset" if session_plan.number % 7 == 3 else "all tools"
        )
        system = prompt(session_plan.id) if session_plan.number // len(EXTRAS) % 2 else None
        self._world.observer.on_opening(session_plan.id, names)
        session = await self._runtime.open(
            session_plan.target,
            id=session_plan.id,
            tools=tools,
            system=system,
            approve=approve,
            budget=session_plan.budget,
            tenant=session_plan.tenant,
        )
        random = Random(f"{self._world.plan.seed}/{session_plan.id}/outside")  # noqa: S311  must be reproducible
        outsider = self._resolvers[session_plan.id] = CallResolver(
            session,
            random,
            self._world.problems,
            partial(self._record_result, session),
            partial(self._maybe_hibernate, session),
        )
        background_tasks.start_soon(outsider.run)
        for ask in session_plan.asks:
            await anyio.sleep(ask.pause)
            self._maybe_hibernate(session, ask.name)
            with suppress(SessionClosed):  # the session has crashed too often
                await self._run_ask(session, ask)

    def _maybe_hibernate(self, session: Session, occasion: str) -> None:
        """Hibernate an idle session at random. Check that its public properties do not change."""
        chance = Random(f"{self._world.plan.seed}/{session.id}/{occasion}").random()  # noqa: S311  must be reproducible
        lifecycle, before = session._lifecycle, (session.target, session.busy, session.pending)
        if chance >= HIBERNATION_PROBABILITY or not lifecycle.passivate() or lifecycle.is_over:
            return
        lifecycle.evict()
        self.counts["sessions_that_slept"] += 1
        self.counts["turns_that_slept"] += session.busy
        if (session.target, session.busy, session.pending) != before or lifecycle.memory_use.total:
            self._world.problems.add("hibernation does not change a session", f"{session.id}: {occasion}")

    async def _run_ask(self, session: Session, ask: PlannedAsk) -> None:
        say = partial(
            self._stream_ask if ask.streamed else self._ask_without_stream, session, planned_message(ask)
        )
        if not ask.actions:
            await self._count_error(say, session)
            return
        caller = anyio.CancelScope()
        async with anyio.create_task_group() as tasks:
            for action in ask.actions:
                tasks.start_soon(self._take_action, session, action, caller)
            with caller:
                await self._count_error(say, session)
        self.counts["abandoned"] += caller.cancelled_caught

    async def _ask_without_stream(self, session: Session, ask: PlannedMessage) -> None:
        self._record_caller_result(
            session, ask.name, await session.ask(ask.message, output=ask.output, check=False, **ask.settings)
        )

    async def _stream_ask(self, session: Session, ask: PlannedMessage) -> None:
        """Read the events of an ask. Check that only the last event is terminal."""
        last, terminal, reader, name = None, 0, Reader(), ask.name
        async with session.stream(ask.message, output=ask.output, **ask.settings) as events:
            async for last in events:
                terminal += isinstance(last, CompleteEvent | ErrorEvent)
                if not reader.agrees(last):
                    self._world.problems.add("deltas equal the complete message", f"{session.id}: {name}")
        if terminal != 1 or not isinstance(last, CompleteEvent | ErrorEvent):
            self._world.problems.add("a stream ends with one terminal event", f"{session.id}: {name}")
        else:
            self._record_caller_result(session, name, last.result)

    def _start_checks(self, session: str) -> None:
        if (outsider := self._resolvers.get(session)) is not None:
            outsider.start_checks()

    def _record_result(self, session: Session, ask_name: str, result: AskResult) -> None:
        self.counts[result.status] += 1
        self._world.observer.on_ask_result(session.id, ask_name, result, is_caller=False)

    def _record_caller_result(self, session: Session, ask_name: str, result: AskResult) -> None:
        self.counts[result.status] += 1
        self._world.observer.on_ask_result(session.id, ask_name, result, is_caller=True)

    async def _cancel_session(self, session: Session) -> None:
        """Cancel the session, and check that every call is closed within the grace period."""
        began = anyio.current_time()
        await session.cancel()
        if (
            session.id not in self._world.crashed
            and (took := anyio.current_time() - began) > MAX_CANCEL_SECONDS
        ):
            self._world.problems.add("a cancel is prompt", f"{session.id}: {took:.1f} s")

    async def _compact_session(self, session: Session) -> None:
        self.counts["compacted"] += (await session.compact()).messages > 0

    async def _rewind_session(self, session: Session, action: PlannedAction) -> None:
        """Rewind turns that have ended. The rewind may fail if another rewind or a summary has removed the turns."""
        ended = self._world.journal.ended_turns(session.id)
        back = len(ended) if action.target == "all" else int(action.target)
        with suppress(ConfigError):
            self.counts["turns_taken_back"] += (
                await session.rewind(ended[-1 - back] if back < len(ended) else 0) > 0
            )

    async def _take_action(self, session: Session, action: PlannedAction, caller: anyio.CancelScope) -> None:
        await anyio.sleep(action.after)
        self.counts[action.kind] += 1
        match action.kind:
            case "switch":
                await self._count_error(partial(session.switch, action.target), session)
            case "cancel":
                await self._count_error(partial(self._cancel_session, session), session)
            case "abandon":
                caller.cancel()
            case "crash":
                with suppress(ActorsError):  # the session has no actors while it hibernates
                    await self._crash_actor(session, action.target)
            case "compact":
                await self._count_error(partial(self._compact_session, session), session)
            case "rewind":
                await self._count_error(partial(self._rewind_session, session, action), session)
            case "configure":
                await self._count_error(partial(self._configure, session, action), session)
            case "call_tool":
                await self._count_error(partial(self._run_tool, session, action), session)
            case "busy":
                await self._ask_concurrently(session, action.name)

    async def _run_tool(self, session: Session, action: PlannedAction) -> None:
        manner = MANNERS[len(MANNERS) - 1 - int(action.after) % len(MANNERS)]
        arguments: dict[str, JsonValue] = {
            "key": action.name,
            "manner": manner,
            "seconds": round(action.after, 3),
        }
        result = await session.call_tool(action.target, arguments)
        self._world.observer.on_program_call(session.id, action.name, result)

    async def _configure(self, session: Session, action: PlannedAction) -> None:
        """Change the system prompt, the tools, or both."""
        change: dict[str, Any] = {}  # Any: the arguments of `configure` have different types
        wants: dict[str, object] = {}
        if action.target in ("system", "no system", "both"):
            wants["system"] = change["system"] = None if action.target == "no system" else prompt(action.name)
        if action.target.endswith(("tools", "both", "toolset")):
            kit = "some tools" if action.target == "both" else action.target
            change["tools"], wants["tools"] = self._world.tools_for(session.id, kit)
        outcome = await session.configure(**change)
        self._world.observer.on_configured(session.id, outcome, wants)

    async def _crash_actor(self, session: Session, actor: str) -> None:
        """Crash an actor of the session: `session`, `scheduler`, `ledger` or `renderer`."""
        self._world.crashed.add(session.id)
        refs = session._refs
        actors: dict[str, Ref[Any]] = {  # Any: the command must have a type that no actor accepts
            "session": session._session,
            "scheduler": refs.scheduler,
            "ledger": refs.ledger,
            "renderer": refs.renderer,
        }
        await actors[actor].send(UnknownCommand())

    async def _ask_concurrently(self, session: Session, action_name: str) -> None:
        """Send several asks at once, so that one of them is rejected because the queue is full."""
        async with anyio.create_task_group() as tasks:
            for number in range(CONCURRENT_ASKS):
                # The names for ask `3.7` are `3.790`, `3.791` and so on, which the plan does not contain.
                ask = f"{action_name.partition('.m')[0]}9{number}"
                tasks.start_soon(
                    self._count_error,
                    partial(self._ask_without_stream, session, PlannedMessage(ask, ask_text(ask))),
                    session,
                )

    async def _count_error(
        self,
        action: Callable[[], Awaitable[object]],
        session: Session,
    ) -> None:
        """Run an action. If the session rejects it, count the error by its type."""
        try:
            await action()
        except (QueueFull, SessionClosed, SessionError, ToolsetFailed) as error:
            self.counts[type(error).__name__] += 1
            if isinstance(error, OverBudget):
                self._world.observer.on_over_budget(session.id)

    async def _wait_until_idle(self, session_plan: SessionPlan) -> None:
        """Wait until a session is idle. In liveness mode, the session must then answer an ask."""
        with self._stop_resolver(session_plan.id), suppress(SessionClosed):
            session = self._runtime.session(session_plan.id)
            with anyio.move_on_after(MAX_SETTLE_SECONDS) as limit:
                while session.busy:
                    self._start_checks(
                        session_plan.id
                    )  # an earlier notification may have been lost in a crash
                    await anyio.sleep(1)
                self._resolvers[session_plan.id].scope.cancel()
                if self._world.faultless and session_plan.budget is None and not session_plan.tenant:
                    await self._require_answer(session, session_plan)
            if limit.cancelled_caught:
                self._world.problems.add("every session becomes idle", session.id)

    @contextmanager
    def _stop_resolver(self, session_id: str) -> Generator[None]:
        """Stop the call resolver of a session when the block ends."""
        try:
            yield
        finally:
            self._resolvers[session_id].scope.cancel()

    async def _require_answer(self, session: Session, session_plan: SessionPlan) -> None:
        """Ask several times until there is an answer, because a circuit breaker may admit only one request at first."""
        why = ""
        for number in range(LAST_ASKS):
            await anyio.sleep(RECOVERY_SECONDS)
            result = await session.ask(ask_text(f"{session_plan.number}.999{number}"), check=False)
            if result.status == "complete":
                return
            why = result.error
        self._world.problems.add("without faults every session answers", f"{session.id}: {why}")
