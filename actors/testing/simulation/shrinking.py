"""Shrink a failing plan: remove sessions first, then asks, then parts of asks.

The algorithm is delta debugging (Zeller and Hildebrandt): it tries to remove halves, then smaller and smaller groups. A
plan counts as failing while it breaks the same invariant. Each removal changes the order of all steps, so the shrunk
plan may fail for a different but related reason. Its failure is deterministic.
"""

from collections.abc import Callable, Collection, Sequence
from typing import TypeAlias

from actors.testing.simulation.plan import SimulationPlan

Fails: TypeAlias = Callable[[SimulationPlan], bool]
Unit: TypeAlias = tuple[str, ...]
"""The names of parts that are removed together."""


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
