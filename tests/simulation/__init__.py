"""Run simulations and check their logs, requests and actors against the promises of the runtime.

    from tests.simulation import simulate

    report = simulate(17)
    assert not report.problems, report

`actors.testing.simulate` is the same run without these checks.
"""

from collections.abc import Collection, Sequence
from typing import Any

from actors.testing import Odds, SimulationReport
from actors.testing.simulation import Mode, checked_plan, play_plan
from actors.tools import Tool
from tests.simulation.checks import RuntimeChecks

__all__ = ["simulate"]


def simulate(
    seed: int = 0,
    *,
    sessions: int = 50,
    turns: int = 10,
    mode: Mode = "safety",
    odds: Odds | None = None,
    tools: Sequence[Tool[..., Any]] = (),  # Any: any function
    only: Collection[str] | None = None,
) -> SimulationReport:
    """Run `actors.testing.simulate` with all checks."""
    return play_plan(checked_plan(seed, sessions, turns, mode, odds, tools, only), tools, RuntimeChecks)
