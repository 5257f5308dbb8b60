"""Run each case of a large matrix on one of the two event loops: half of the cases on asyncio, the others on trio.

For tests with the marker `alternating`, whose cases differ in dialects, faults or sizes and go through the same
awaits. Neighbouring cases, in every parameter, run on different loops. The profile `thorough` runs each case on both,
and so does a case that is named by its whole id.
"""

from typing import NamedTuple

import pytest
from hypothesis import settings

LOOP, LOOPS = "anyio_backend", ("asyncio", "trio")


class Case(NamedTuple):
    """A test and the places of a case's values among those of its parameters, without the event loop."""

    test: str
    places: tuple[int, ...]

    @property
    def loop(self) -> str:
        """The event loop that this case runs on."""
        return LOOPS[sum(self.places) % 2]


def alternate(items: list[pytest.Item]) -> list[pytest.Item]:
    """Remove half of the alternating cases from `items`, and return them."""
    if settings.get_current_profile_name() == "thorough":
        return []
    axes = dict[tuple[str, str], list[int]]()
    cases, loops = [_case(item, axes) for item in items], dict[Case, set[str]]()
    for item, case in zip(items, cases, strict=True):
        if case is not None:
            loops.setdefault(case, set()).add(_loop(item))
    kept, dropped = list[pytest.Item](), list[pytest.Item]()
    for item, case in zip(items, cases, strict=True):
        is_kept = case is None or len(loops[case]) < len(LOOPS) or _loop(item) == case.loop
        (kept if is_kept else dropped).append(item)
    items[:] = kept
    return dropped


def _case(item: pytest.Item, axes: dict[tuple[str, str], list[int]]) -> Case | None:
    """Return the case, or None where each runs on both loops. `axes` has the values of each parameter so far."""
    if item.get_closest_marker("alternating") is None:
        return None
    test, places = item.nodeid.partition("[")[0], list[int]()
    for name, value in sorted(_parameters(item).items()):
        if name != LOOP:
            values = axes.setdefault((test, name), [])
            if id(value) not in values:
                values.append(id(value))
            places.append(values.index(id(value)))
    return Case(test, tuple(places))


def _loop(item: pytest.Item) -> str:
    return str(_parameters(item).get(LOOP))


def _parameters(item: pytest.Item) -> dict[str, object]:
    call = getattr(item, "callspec", None)
    return {} if call is None else call.params
