"""Check a simulation: the content of its logs and requests, and the state of its runtime at the end.

`Witness` checks the logs, `invariants` the features, `judge` the end of the run.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager

from actors.core.log.events import LogEvent
from actors.core.stream_events.ask_events import AskResult, SwitchOutcome
from actors.core.values.content import ToolResult
from actors.runtime.runtime import Runtime
from actors.strict.rules.base import Json
from actors.testing.simulation.observer import Observer
from actors.testing.simulation.world import World
from tests.simulation import judge
from tests.simulation.invariants import FeatureInvariants
from tests.simulation.recount import Recount, stats_differences
from tests.simulation.witness import Witness


class RuntimeChecks(Observer):
    """The checks of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._problems = world.problems
        self.witness = Witness(world.problems, world.members)
        self.features = FeatureInvariants(
            self.witness, world.members, world.own_tools, world.model.feature_of
        )

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of uses of each feature."""
        return {**self.witness.counts, **self.features.counts}

    def on_event(self, session: str, event: LogEvent) -> None:
        self.witness.event(session, event)

    def on_request(self, session: str, backend: str, ask: str, body: bytes) -> None:
        self.witness.request(session, backend, body)
        self.features.request(session, ask, body)

    def on_request_too_long(self, session: str) -> None:
        self.features.too_long.record_refusal(session)

    def on_tool_start(self, session: str, key: str, arguments: Mapping[str, Json]) -> None:
        self.witness.check_start(session, key)
        self.features.arguments.check_start(session, key, arguments)

    def watch_write(self, session: str, key: str, resource: str) -> AbstractContextManager[None]:
        return self.features.order.writing(session, key, resource)

    def on_opening(self, session: str, tools: tuple[str, ...]) -> None:
        self.features.configured.record_tools(session, tools)

    def on_configured(self, session: str, outcome: SwitchOutcome, changes: Mapping[str, object]) -> None:
        self.features.configured.record_configuration(session, outcome, **changes)

    def on_program_call(self, session: str, key: str, result: ToolResult) -> None:
        self.features.program.check_result(session, key, result)

    def on_ask_result(self, session: str, ask: str, result: AskResult, *, is_caller: bool) -> None:
        self.features.check_result(session, ask, result)
        if not is_caller or result.status == "awaiting" or session in self._world.crashed:
            return
        if result.usage != self.witness.usage(session, ask):
            self._problems.add("usage is the sum of the rounds", f"{session}: {ask}")

    def on_over_budget(self, session: str) -> None:
        if not self.features.shared.record_refusal(session):
            self.features.budgets.check_refusal(session)

    async def finish(self, runtime: Runtime) -> None:
        await self._sessions(runtime)
        await judge.quiescent(self._world, self.witness, runtime)
        for line in stats_differences(runtime.stats(), Recount(self._world, self.witness, self.features)):
            self._problems.add("the stats match the observations", line)

    async def _sessions(self, runtime: Runtime) -> None:
        for name in tuple(runtime.sessions):
            await judge.compare(self._world, runtime, runtime.session(name))
        for key in self._world.toolbox.returned:
            if (session := self._world.session_of(key)) not in self._world.crashed:
                self.witness.check_return(session, key)
        shared = self.features.shared
        if not shared.sessions & self._world.crashed:  # a crash hides the requests that were in flight
            shared.judge()
        for refusal in runtime.refusals:
            if refusal.by == "judge":
                about = f"{refusal.session}, {refusal.binding.backend}: {refusal.reason[:200]}"
                self._problems.add("no request is rejected for its structure", about)
