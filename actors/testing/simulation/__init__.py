"""Simulate the complete runtime in virtual time. A single seed decides everything that happens.

    report = simulate(17)
    assert not report.problems, report

Sessions talk to strict servers of several dialects concurrently. The seed decides when sessions switch, when callers
cancel or stop waiting, when providers fail, when tools misbehave and when actors crash. The simulation checks
everything that callers, tools and providers observe. Runs with the same seed are identical to the last byte, in every
process. The report contains a line of Python that reproduces the run.

A failing plan is shrunk with delta debugging (Zeller and Hildebrandt), which removes sessions first, then asks, then
parts of asks, at first in halves, then in smaller and smaller groups. A removal is kept if the plan still breaks the
same invariant. Each removal changes the order of all steps, so the shrunk plan may fail for a different but related
reason. Like every run, the run of the shrunk plan is deterministic.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, get_args

from actors.core.log.codec import encode_event
from actors.errors import ConfigError
from actors.runtime.runtime import Runtime
from actors.testing.simulation import loop
from actors.testing.simulation.loop import inline_threads
from actors.testing.simulation.observer import Observer
from actors.testing.simulation.plan import Mode, Odds, SimulationPlan, make_plan
from actors.testing.simulation.play import Player
from actors.testing.simulation.world import TARGETS, Tools, World
from actors.tools import Tool

__all__ = ["Mode", "Odds", "SimulationPlan", "SimulationReport", "checked_plan", "simulate"]

Observe: TypeAlias = Callable[[World], Observer]
"""A function that returns the observer of a world."""
MAX_VIRTUAL_SECONDS = 7 * 24 * 3600.0
"""Time limit of a simulation, in virtual seconds."""
Fails: TypeAlias = Callable[[SimulationPlan], bool]
Unit: TypeAlias = tuple[str, ...]
"""The names of parts that are removed together."""


@dataclass(frozen=True, slots=True)
class SimulationReport:
    """The result of one simulation.

    Args:
        problems: One line per broken invariant. Each line begins with the name of the invariant.
        digest: A digest of all request bodies and logs. Equal plans give equal digests in every process.
        counts: Counts of events by name. For models that use error messages to correct their calls,
            `invalid_with_feedback` counts answers with wrong calls, and `rounds_with_feedback` counts rounds whose
            first answer had wrong calls. For models that ignore error messages, `invalid_without_feedback` and
            `rounds_without_feedback` count the same.
    """

    _plan: SimulationPlan
    problems: tuple[str, ...]
    digest: str
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    _tools: Tools = field(default=(), repr=False)
    _observe: Observe | None = field(default=None, repr=False)

    @property
    def line(self) -> str:
        """One line of Python that reproduces this report. Your own tools appear by name."""
        plan, inputs = self._plan, self._plan.inputs
        sizes = f"sessions={inputs.sessions}, turns={inputs.turns}, mode={plan.mode!r}"
        odds = "" if inputs.odds == Odds() else f", odds={inputs.odds}"
        only = "" if plan.is_complete else f", only={' '.join(plan.names)!r}.split()"
        tools = f", tools=[{', '.join(inputs.tools)}]" if inputs.tools else ""
        return f"simulate({plan.seed}, {sizes}{odds}{tools}{only})"

    def shrunk(self, tries: int = 200) -> "SimulationReport":
        """Return the report of a smaller plan that breaks the same invariant. At most `tries` simulations are run."""
        if not self.problems:
            return self
        invariant = self.problems[0].partition(":")[0]

        def fails(plan: SimulationPlan) -> bool:
            problems = play_plan(plan, self._tools, self._observe).problems
            return any(line.startswith(f"{invariant}:") for line in problems)

        return play_plan(shrink(self._plan, fails, tries), self._tools, self._observe)

    def __str__(self) -> str:
        told = [self.line, *self.problems[:10], *(f"{name}: {self.counts[name]}" for name in self.counts)]
        return "\n".join(told)


def play_plan(plan: SimulationPlan, tools: Tools = (), observe: Observe | None = None) -> SimulationReport:
    """Execute a plan and return the report. `observe` returns the observer of a world."""
    return replace(play_in_world(World(plan, tools, observe), tools), _observe=observe)


def play_in_world(world: World, tools: Tools = ()) -> SimulationReport:
    """Execute the plan of an existing world and return the report."""
    plan = world.plan
    players: list[Player] = []

    async def main() -> None:
        threads = inline_threads(world.random, world.toolbox.running)
        async with threads, world.create_runtime() as runtime:
            players.append(Player(world, runtime))
            await players[0].play()
            _digest_logs(world, runtime)
            await world.observer.finish(runtime)
        world.toolsets.check_closed()

    try:
        loop.run(plan.seed, main, MAX_VIRTUAL_SECONDS)
    except Exception as error:
        world.problems.add("the simulation raises no error", f"{type(error).__name__}: {error}")
    counts = {name: count for player in players for name, count in sorted(player.counts.items())}
    lines, digest = tuple(world.problems.lines), world.digest.hexdigest()
    return SimulationReport(plan, lines, digest, counts | _counts(world), tools)


def _digest_logs(world: World, runtime: Runtime) -> None:
    for session in tuple(runtime.sessions):
        for event in world.journal.read(session):
            world.digest.update(encode_event(event))


def _counts(world: World) -> dict[str, int]:
    seen, corrections = world.journal.counts, world.model.corrections
    heeding, guessing = corrections[True], corrections[False]
    return {
        "asks": seen["AskStarted"],
        "turns": seen["TurnStarted"],
        "rounds": seen["RequestSent"],
        "requests": sum(world.network.requests.values()),
        "calls": seen["Scheduled"],
        "switches": seen["SwitchApplied"],
        "faults": world.faults,
        "requests_too_long": world.too_long,
        "invalid_with_feedback": heeding.invalid,
        "rounds_with_feedback": heeding.rounds,
        "invalid_without_feedback": guessing.invalid,
        "rounds_without_feedback": guessing.rounds,
        **world.toolsets.counts,
        **world.observer.counts,
    }


def simulate(
    seed: int = 0,
    *,
    sessions: int = 50,
    turns: int = 10,
    mode: Mode = "safety",
    odds: Odds | None = None,
    tools: Sequence[Tool[..., Any]] = (),  # Any: tool signatures differ
    only: Collection[str] | None = None,
) -> SimulationReport:
    """Run the runtime in virtual time and report the invariants that were broken.

    Args:
        seed: Decides everything that happens.
        sessions: Number of concurrent sessions.
        turns: Asks per session.
        mode: With `safety`, faults happen until the end. With `liveness`, faults stop, and then every session must
            answer.
        odds: Probabilities of faults and other events.
        tools: Your own tools. The models call them too, with arguments generated from their schemas. These tools may
            wait only in the event loop (`anyio.sleep`). A sync tool runs in the event loop instead of a thread, in a
            single step, at a time that the seed decides.
        only: The names of the parts of the generated plan to run. `SimulationReport.shrunk` reports such names. By
            default, all parts run.

    Raises:
        ConfigError: trio is not installed, the mode is unknown, or a number is below 1.
    """
    return play_plan(checked_plan(seed, sessions, turns, mode, odds, tools, only), tools)


def checked_plan(
    seed: int,
    sessions: int,
    turns: int,
    mode: Mode,
    odds: Odds | None,
    tools: Sequence[Tool[..., Any]],  # Any: tool signatures differ
    only: Collection[str] | None,
) -> SimulationPlan:
    """Validate the arguments of `simulate` and return the plan.

    Raises:
        ConfigError: The mode is unknown, or a number is below 1.
    """
    if mode not in get_args(Mode):
        raise ConfigError(f"mode= must be 'safety' or 'liveness', not {mode!r}")
    for name, count in (("sessions", sessions), ("turns", turns)):
        if count < 1:
            raise ConfigError(f"{name}= must be an integer of at least 1, not {count}")
    names = [each.name for each in tools]
    plan = make_plan(seed, sessions, turns, TARGETS, names, mode, odds or Odds())
    return plan if only is None else plan.only(only)


def shrink(plan: SimulationPlan, fails: Fails, tries: int) -> SimulationPlan:
    """Return a smaller plan that still fails. `fails` is called at most `tries` times."""
    left = Shrinker(plan, fails, tries)
    for units in (_session_units, _ask_units, _part_units):
        left.remove_units(units)
    return left.plan


class Shrinker:
    """Shrinks a failing plan, and counts the remaining attempts."""

    def __init__(self, plan: SimulationPlan, fails: Fails, tries: int) -> None:
        self.plan: SimulationPlan = plan
        self._fails = fails
        self._tries = tries

    def remove_units(self, units: Callable[[SimulationPlan], list[Unit]]) -> None:
        """Remove units from the plan until none can be removed without losing the failure, or no attempts remain.

        `units` returns the removable units of a plan. A unit is a group of parts that are removed together.
        """
        kept, pieces = units(self.plan), 2
        fixed = set(self.plan.names).difference(*kept)
        while kept and self._tries > 0:
            pieces = min(pieces, len(kept))
            smaller = self._without_one_group(kept, pieces, fixed)
            if smaller is not None:
                kept, pieces = smaller, max(2, pieces - 1)
            elif pieces == len(kept):
                return
            else:
                pieces *= 2

    def _without_one_group(self, kept: list[Unit], pieces: int, fixed: Collection[str]) -> list[Unit] | None:
        """Split the units into `pieces` groups, and return the units without one group.

        Return None if the failure needs every group. `fixed` contains the names of parts that always stay in the plan.
        """
        size = -(-len(kept) // pieces)
        for at in range(0, len(kept), size):
            rest = kept[:at] + kept[at + size :]
            if self._still_fails_with({*fixed, *(name for unit in rest for name in unit)}):
                return rest
        return None

    def _still_fails_with(self, names: Collection[str]) -> bool:
        """Reduce the plan to the parts with these names. If the reduced plan still fails, keep it and return True."""
        self._tries -= 1
        if self._tries < 0 or not self._fails(smaller := self.plan.only(names)):
            return False
        self.plan = smaller
        return True


def _session_units(plan: SimulationPlan) -> list[Unit]:
    return _group_names(plan.names, lambda name: name.split(".")[0])


def _ask_units(plan: SimulationPlan) -> list[Unit]:
    return _group_names(plan.names, lambda name: ".".join(name.split(".")[:2]))


def _part_units(plan: SimulationPlan) -> list[Unit]:
    return [(name,) for name in plan.names if name.count(".") > 1]


def _group_names(names: Sequence[str], key: Callable[[str], str]) -> list[Unit]:
    units: dict[str, list[str]] = {}
    for name in names:
        units.setdefault(key(name), []).append(name)
    return [tuple(unit) for unit in units.values()]
