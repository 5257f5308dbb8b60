"""The runtime in virtual time: every invariant holds for every seed, and the same seed gives the same run.

The long form: `python -m tests.commands.test_simulation --count 10000 --workers 2`; `tests.simulation.command`
describes it.
"""

import os
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import anyio
import pytest
from msgspec import structs

import actors.testing
from actors.core.log import events
from actors.core.log.events import LogEvent
from actors.core.stats.stats import (
    BackendStats,
    BudgetStats,
    Durations,
    JournalStats,
    ModelStats,
    RuntimeStats,
    Stalls,
    ToolCounts,
)
from actors.core.values.content import Message, Text
from actors.core.values.packed import pack
from actors.core.values.stream import Usage
from actors.journal.storage import Entry
from actors.runtime.runtime import Runtime
from actors.testing import Odds, Say, SimulationReport
from actors.testing.simulation import Mode, SimulationPlan, loop, play_plan, shrink
from actors.testing.simulation.model import Model
from actors.testing.simulation.observer import Observer, SimulatedJournal
from actors.testing.simulation.plan import PlanInputs, PlannedAction, PlannedAsk, SessionPlan, make_plan
from actors.testing.simulation.world import TARGETS, World
from actors.tools import tool
from tests.commands.at_scale import extent
from tests.simulation import simulate
from tests.simulation.checks import RuntimeChecks
from tests.simulation.command import main
from tests.simulation.recount import EXCUSED, OF_A_BACKEND, OF_ALL, Recount, names_of, stats_differences

ELSEWHERE = "from tests.simulation import simulate; print(simulate(3, sessions=4, turns=3).digest)"
NOTHING = Odds(fault=0, cancel=0, abandon=0, crash=0, busy=0, model_error=0)


@cache
def sample(mode: Mode, seed: int) -> SimulationReport:
    return simulate(seed, sessions=16, turns=6, mode=mode, odds=OFTEN)


MODES: tuple[Mode, ...] = ("safety", "liveness")
FEW: tuple[tuple[Mode, int], ...] = ("safety", 11), ("safety", 13), ("liveness", 18)
"""Runs that together exercise every feature."""
RUNS = extent(FEW, (*FEW, *product(MODES, range(11))))
OFTEN = Odds(
    fault=0.06,
    cancel=0.5,
    abandon=0.15,
    compact=0.2,
    rewind=0.2,
    output=0.15,
    call_tool=0.1,
    settings=0.2,
    budget=0.5,
    tenant=0.5,
    configure=0.12,
)
FEATURES = (
    "sessions_that_slept",
    "turns_that_slept",
    "turns_taken_back",
    "configured",
    "answers_with_form",
    "answers_corrected",
    "answers_without_form",
    "answers_without_content",
    "edited_approvals",
    "parts_in_requests",
    "parts_noted",
    "writers",
    "writers_that_waited",
    "program_calls",
    "asks_with_settings",
    "round_limits",
    "token_limits",
    "time_limits",
    "budgets",
    "budgets_used_up",
    "sessions_of_a_tenant",
    "shared_budgets_used_up",
    "subagents_that_answered",
    "subagents_with_form",
    "subagents_that_were_ended",
    "handed_over",
    "calls_in_threads",
    "threads_that_were_late",
    "toolsets_opened",
    "toolsets_refused",
    "toolsets_changed",
    "offered_anew",
    "toolset_calls",
    "summaries_in_asks",
    "requests_too_long",
    "too_long_tried_again",
    "result_media_sent",
    "result_media_noted",
)


@pytest.mark.parametrize(("mode", "seed"), RUNS)
@pytest.mark.requirement("PROMISE-1", "PROMISE-2", "PROMISE-5", "PROMISE-7", "PROMISE-8")
def test_every_invariant_holds_under_faults(mode: Mode, seed: int) -> None:
    report = sample(mode, seed)
    assert report.problems == (), str(report)
    assert report.counts["requests"] > 96
    for what in ("faults", "switches", "cancelled", "abandoned", "calls", "awaiting", "compacted"):
        assert report.counts[what] > 0, what


def test_the_simulation_runs_exercise_every_feature() -> None:
    met = sum((Counter(sample(mode, seed).counts) for mode, seed in RUNS), Counter())
    assert [feature for feature in FEATURES if not met[feature]] == []


def test_the_simulated_model_finds_no_ask_in_a_summary_without_user_messages() -> None:
    model = Model(SimulationPlan(0, "safety", PlanInputs(0, 0, Odds()), ()), {})
    model.read_request(b'{"messages": ["[The program ran the tool work.]", "Write that summary now"]}')
    (said,) = model.current_answer().parts
    assert (model.ask_name, model.summarises) == (None, True)
    assert isinstance(said, Say)
    model.read_request(f'{{"messages": ["{said.text}", "Write that summary now"]}}'.encode())
    assert model.ask_name is None


def test_answers_that_often_break_off_do_not_repeat_text_already_shown() -> None:
    sessions = extent(16, 40)
    report = simulate(1, sessions=sessions, turns=6, odds=replace(NOTHING, fault=0.25))
    assert report.problems == ()
    assert report.counts["faults"] > 2.5 * sessions
    assert report.counts["complete"] > 3.5 * sessions


def test_a_seed_gives_the_same_run_in_every_process() -> None:
    here = simulate(3, sessions=4, turns=3)
    assert simulate(3, sessions=4, turns=3) == here
    environ = {**os.environ, "PYTHONHASHSEED": "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"}
    there = subprocess.run([sys.executable, "-c", ELSEWHERE], env=environ, capture_output=True, check=True)
    assert there.stdout.decode().strip() == here.digest
    assert simulate(4, sessions=4, turns=3).digest != here.digest


def test_an_observer_does_not_change_a_run() -> None:
    checked, plain = simulate(3, sessions=4, turns=3), actors.testing.simulate(3, sessions=4, turns=3)
    assert plain.problems == checked.problems == ()
    assert plain.digest == checked.digest
    assert plain.counts.items() <= checked.counts.items()
    assert plain.line == checked.line


def test_an_observer_sees_each_event_before_it_is_in_the_log() -> None:
    class Recorder(Observer):
        def __init__(self, world: World) -> None:
            self.world = world
            self.seen: dict[str, list[LogEvent]] = {}
            self.logs: dict[str, list[LogEvent]] = {}
            observers.append(self)

        def on_event(self, session: str, event: LogEvent) -> None:
            assert event not in self.world.journal.read(session)[len(self.seen.get(session, ())) :]
            self.seen.setdefault(session, []).append(event)

        async def finish(self, runtime: Runtime) -> None:
            self.logs = {name: list(self.world.journal.read(name)) for name in self.seen}

    observers: list[Recorder] = []
    report = play_plan(make_plan(1, 2, 2, TARGETS, (), "safety", NOTHING), observe=Recorder)
    assert report.problems == ()
    (recorder,) = observers
    assert recorder.logs == recorder.seen != {}


def test_the_simulated_journal_finds_ended_turns_and_the_session_of_a_task() -> None:
    journal = SimulatedJournal(Observer())
    fence = journal.claim("s1").fence
    ends = [events.TurnEnded(turn, "complete") for turn in (1, 2, 3)]
    task = events.AskStarted(1, pack(Message("user", (Text("[task 1.1.r0c0] Do it."),))))
    journal.append([Entry("s1", fence, (*ends, task, events.Rewound(1)))])
    assert journal.ended_turns("s1") == [1]
    assert journal.session_of("1.1.r0c0") == "s1"
    assert journal.ended_turns("s2") == ()


def test_every_stats_figure_is_recounted_or_excluded_with_a_reason() -> None:
    assert sorted(names_of()) == sorted([*OF_A_BACKEND, *OF_ALL, *EXCUSED])
    assert all(EXCUSED.values())


@pytest.mark.parametrize("name", [*OF_A_BACKEND, *OF_ALL])
def test_each_wrong_stats_figure_is_reported(name: str) -> None:
    plan = SimulationPlan(0, "safety", PlanInputs(0, 0, Odds()), ())
    tools = ToolCounts(**{name.removeprefix("tools."): 1}) if name.startswith("tools.") else ToolCounts()
    own: dict[str, Any] = {name: 1} if name in BackendStats.__struct_fields__ else {}
    here = structs.replace(BackendStats(tools), **own)
    whole: dict[str, Any] = {"sessions": 0, "refused": 0, "quarantined": {}, "journal": JournalStats()}
    if name == "models.requests":
        model = ModelStats({"200": 1}, Usage(), None, Durations(), Durations())
        here = structs.replace(here, models={"gpt": model})
    elif name in ("asks_waiting", "asking", "threads_waiting"):
        whole[name] = 1
    elif name in whole:
        whole[name] = {"work": 1} if name == "quarantined" else 1
    elif name.startswith("budgets."):
        used: dict[str, Any] = {name.removeprefix("budgets."): 1}
        whole["budgets"] = {"tenants.shared": BudgetStats(**used)}
    elif name in OF_ALL:
        held: dict[str, Any] = {name.removeprefix("journal."): 1}
        whole["journal"] = JournalStats(**held)
    stats = RuntimeStats({"mistral": here}, active=0, memory=0, slow_handlers=0, stalls=Stalls(), **whole)
    world = World(plan)
    checks = RuntimeChecks(world)
    (line,) = stats_differences(stats, Recount(world, checks.witness, checks.features))
    assert line.startswith(f"{name} of {'mistral' if name in OF_A_BACKEND else 'all'}: 1, and 0")


def test_a_sleep_takes_its_virtual_time_and_can_be_cancelled() -> None:
    async def main() -> list[tuple[str, float]]:
        woke = list[tuple[str, float]]()

        async def sleeper(name: str, seconds: float) -> None:
            await anyio.sleep(seconds)
            woke.append((name, anyio.current_time()))

        async with anyio.create_task_group() as tasks:
            for name, seconds in (("last", 3.0), ("first", 1.0), ("at once", 0.0), ("second", 2.0)):
                tasks.start_soon(sleeper, name, seconds)
            with anyio.move_on_after(2.5) as scope:
                await anyio.sleep(1000)
            assert scope.cancelled_caught
            woke.append(("cancelled", anyio.current_time()))
        return woke

    expected = [("at once", 0.0), ("first", 1.0), ("second", 2.0), ("cancelled", 2.5), ("last", 3.0)]
    assert loop.run(1, main, 1e4) == expected
    with pytest.raises(TimeoutError, match="has not ended after 60"):
        loop.run(1, anyio.sleep_forever, 60)


def test_every_ask_completes_in_a_simulation_without_faults() -> None:
    report = simulate(1, sessions=4, turns=4, odds=NOTHING)
    assert report.problems == ()
    assert report.counts["complete"] == 16


def test_a_simulation_calls_custom_tools_and_finds_their_errors() -> None:
    here: set[str] = set()
    met = list[int]()

    @tool
    async def book(hotel: str) -> str:
        """Book a hotel."""
        here.add(hotel)
        await anyio.sleep(0.5)
        met.append(len(here))
        return hotel

    assert simulate(1, sessions=5, turns=4, tools=[book]).problems == ()
    assert len(met) > 3


def test_a_simulation_calls_sync_tools_in_the_event_loop() -> None:
    where = set[int]()

    @tool
    def plain(hotel: str) -> str:
        """Return the place where the tool runs."""
        where.add(threading.get_ident())
        return hotel

    report = simulate(1, sessions=5, turns=4, tools=[plain])
    assert report.problems == ()
    assert where == {threading.get_ident()}
    assert simulate(1, sessions=5, turns=4, tools=[plain]) == report


@pytest.mark.requirement("U-06")
def test_a_simulated_model_that_reads_error_messages_needs_one_correction_per_fault() -> None:
    wrong = Odds(fault=0, cancel=0, abandon=0, crash=0, busy=0, model_error=0.5)
    report = simulate(3, sessions=extent(6, 10), turns=5, odds=wrong)
    counts = report.counts
    assert report.problems == ()
    assert counts["invalid_with_feedback"] == counts["rounds_with_feedback"] > 10
    assert counts["invalid_without_feedback"] > 1.3 * counts["rounds_without_feedback"] > 10


def test_the_printed_line_of_a_simulation_report_replays_the_run() -> None:
    report = simulate(2, sessions=4, turns=3, odds=Odds(fault=0.3))
    again = eval(report.line, {"simulate": simulate, "Odds": Odds})
    assert again == report
    part = simulate(2, sessions=4, turns=3, only=[name for name in report._plan.names if name[0] == "1"])
    assert part.counts["asks"] < report.counts["asks"]
    assert eval(part.line, {"simulate": simulate}) == part


def test_a_failing_plan_is_shrunk_to_its_cause() -> None:
    actions = tuple(PlannedAction(f"{{}}.m{at}", "switch", at) for at in range(3))
    session_plans = tuple(
        SessionPlan(number, "either", True, tuple(_ask(f"{number}.{turn}", actions) for turn in range(6)))
        for number in range(9)
    )
    whole = SimulationPlan(0, "safety", PlanInputs(9, 6, Odds()), session_plans)
    needed = {"4.2", "4.2.m1", "7.5", "7.5.m2"}
    tried: list[int] = []

    def fails(plan: SimulationPlan) -> bool:
        tried.append(len(plan.names))
        return needed <= set(plan.names)

    assert set(shrink(whole, fails, 500).names) == needed
    assert len(tried) < 120
    tried.clear()
    assert needed <= set(shrink(whole, fails, 5).names)
    assert len(tried) <= 5


def _ask(name: str, actions: tuple[PlannedAction, ...]) -> PlannedAsk:
    own = tuple(PlannedAction(action.name.format(name), action.kind, action.after) for action in actions)
    return PlannedAsk(name, 1.0, False, (), (), own)


if __name__ == "__main__":
    sys.exit(main())
