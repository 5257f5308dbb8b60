"""Shrink a failing plan: remove sessions first, then asks, then their parts.

The algorithm is delta debugging (Zeller and Hildebrandt): it tries to remove halves, then smaller and smaller pieces.
A plan counts as failing while it breaks the same invariant. Each removal changes the order of all steps, so the
shrunk plan may fail for a related reason; its failure is deterministic.
"""

from collections.abc import Callable, Collection, Sequence
from typing import TypeAlias

from actors.testing.simulation.plan import SimulationPlan

Fails: TypeAlias = Callable[[SimulationPlan], bool]
Unit: TypeAlias = tuple[str, ...]
"""Names that are removed together."""


def shrink(plan: SimulationPlan, fails: Fails, tries: int) -> SimulationPlan:
    """Return a smaller plan that still fails, using a limited number of tries."""
    left = Tries(plan, fails, tries)
    for units in (_sessions, _asks, _parts):
        left.reduce(units)
    return left.plan


class Tries:
    """A failing plan and the remaining tries to shrink it."""

    def __init__(self, plan: SimulationPlan, fails: Fails, tries: int) -> None:
        self.plan: SimulationPlan = plan
        self._fails = fails
        self._tries = tries

    def reduce(self, units: Callable[[SimulationPlan], list[Unit]]) -> None:
        """Remove units until no single unit can be removed."""
        kept, pieces = units(self.plan), 2
        fixed = set(self.plan.names).difference(*kept)
        while kept and self._tries > 0:
            pieces = min(pieces, len(kept))
            smaller = self._without_one(kept, pieces, fixed)
            if smaller is not None:
                kept, pieces = smaller, max(2, pieces - 1)
            elif pieces == len(kept):
                return
            else:
                pieces *= 2

    def _without_one(self, kept: list[Unit], pieces: int, fixed: Collection[str]) -> list[Unit] | None:
        """Return the units without one of `count` pieces; None if every piece is needed."""
        size = -(-len(kept) // pieces)
        for at in range(0, len(kept), size):
            rest = kept[:at] + kept[at + size :]
            if self._is_enough({*fixed, *(name for unit in rest for name in unit)}):
                return rest
        return None

    def _is_enough(self, names: Collection[str]) -> bool:
        self._tries -= 1
        if self._tries < 0 or not self._fails(smaller := self.plan.only(names)):
            return False
        self.plan = smaller
        return True


def _sessions(plan: SimulationPlan) -> list[Unit]:
    return _together(plan.names, lambda name: name.split(".")[0])


def _asks(plan: SimulationPlan) -> list[Unit]:
    return _together(plan.names, lambda name: ".".join(name.split(".")[:2]))


def _parts(plan: SimulationPlan) -> list[Unit]:
    return [(name,) for name in plan.names if name.count(".") > 1]


def _together(names: Sequence[str], key: Callable[[str], str]) -> list[Unit]:
    units: dict[str, list[str]] = {}
    for name in names:
        units.setdefault(key(name), []).append(name)
    return [tuple(unit) for unit in units.values()]
