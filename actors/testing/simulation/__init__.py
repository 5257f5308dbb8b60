"""Simulation: the whole runtime in virtual time, everything that happens decided by one seed.

    report = simulate(17)
    assert not report.problems, report

Sessions talk to strict servers of several dialects at once. Switches, cancels, callers that go away, faults of the
providers, tools of every bad kind and crashes of actors come when the seed says so. Invariants are checked at every
event that is written and at every request that a server sees, and at the end each session is rebuilt from its log. The
same seed gives the same run, to the last byte, in every process.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from actors.testing.simulation import loop
from actors.testing.simulation.judge import counted, judged
from actors.testing.simulation.plan import Mode, Odds, SimulationPlan, planned
from actors.testing.simulation.play import Player
from actors.testing.simulation.world import TARGETS, TOOLS, World

__all__ = ["Mode", "Odds", "SimulationPlan", "SimulationReport", "simulate"]

LONGEST = 7 * 24 * 3600.0
"""Virtual seconds that a run may take."""


@dataclass(frozen=True, slots=True)
class SimulationReport:
    """What came of one run.

    Args:
        plan: What was played.
        problems: A line for each time an invariant was broken, its name first.
        digest: Over all bodies and logs: the same for the same plan, in every process.
        counts: How often what happened.
    """

    plan: SimulationPlan
    problems: tuple[str, ...]
    digest: str
    counts: dict[str, int] = field(default_factory=dict)


def simulate(
    seed: int = 0,
    *,
    sessions: int = 50,
    turns: int = 10,
    mode: Mode = "safety",
    odds: Odds | None = None,
    only: Collection[str] | None = None,
) -> SimulationReport:
    """Run the runtime in virtual time, as a seed decides, and say which invariants did not hold.

    Args:
        seed: Decides everything.
        sessions: How many there are at once.
        turns: Asks of each.
        mode: `safety` has faults to the end; in `liveness` they stop, and then every session must answer.
        odds: How often what goes wrong.
        only: Names of the parts of the plan that are played; all by default.

    Raises:
        ConfigError: trio is not installed.
    """
    plan = planned(seed, sessions, turns, TARGETS, TOOLS, mode, odds or Odds())
    return played(plan if only is None else plan.only(only))


def played(plan: SimulationPlan) -> SimulationReport:
    """Play a plan."""
    world = World(plan)
    counts: dict[str, int] = {}

    async def main() -> None:
        async with world.runtime() as runtime:
            player = Player(world, runtime)
            await player.play()
            await judged(world, runtime)
            await counted(world, runtime)
            counts.update(player.counts)

    try:
        loop.run(plan.seed, main, LONGEST)
    except Exception as error:
        world.problems.add("nothing is raised", f"{type(error).__name__}: {error}")
    counts |= {"requests": sum(world.network.requests.values()), "faults": world.faults}
    return SimulationReport(plan, tuple(world.problems.lines), world.digest.hexdigest(), counts)
