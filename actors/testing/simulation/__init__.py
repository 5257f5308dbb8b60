"""Simulate the complete runtime in virtual time. A single seed decides everything that happens.

    report = simulate(17)
    assert not report.problems, report

Sessions talk to strict servers of several dialects concurrently. The seed decides when sessions switch, when callers
cancel or stop waiting, when providers fail, when tools misbehave and when actors crash. The simulation checks
everything that callers, tools and providers observe. Runs with the same seed are identical to the last byte, in every
process.
"""

from collections.abc import Collection, Sequence
from typing import Any, get_args

from actors.errors import ConfigError
from actors.testing.simulation.plan import Mode, Odds, SimulationPlan, make_plan
from actors.testing.simulation.report import SimulationReport, play_plan
from actors.testing.simulation.world import TARGETS
from actors.tools import Tool

__all__ = ["Mode", "Odds", "SimulationPlan", "SimulationReport", "checked_plan", "simulate"]


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
