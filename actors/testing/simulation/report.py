"""Execute a plan and report the result, with a line of Python that reproduces it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from actors.core.log.codec import encode_event
from actors.runtime.runtime import Runtime
from actors.testing.simulation import loop
from actors.testing.simulation.inline_threads import inline_threads
from actors.testing.simulation.observer import Observer
from actors.testing.simulation.plan import Odds, SimulationPlan
from actors.testing.simulation.play import Player
from actors.testing.simulation.shrinking import shrink
from actors.testing.simulation.world import Tools, World

Observe: TypeAlias = Callable[[World], Observer]
"""A function that returns the observer of a world."""
LONGEST = 7 * 24 * 3600.0
"""Time limit of a simulation, in virtual seconds."""


@dataclass(frozen=True, slots=True)
class SimulationReport:
    """The result of one simulation.

    Args:
        problems: One line per broken invariant. Each line begins with the name of the invariant.
        digest: A digest of all request bodies and logs. Equal plans give equal digests in every process.
        counts: Counts of events by name. For models that read error messages, `invalid_with_feedback` counts answers
            with wrong calls, and `rounds_with_feedback` counts rounds that began with wrong calls. The names that end
            in `without_feedback` count the same for models that only guess their mistake.
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
        loop.run(plan.seed, main, LONGEST)
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
