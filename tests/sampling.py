"""Choose the cases of large matrices that run by default. The profile `thorough` runs all of them.

Two markers choose. `alternating` runs each case on one of the two event loops: half of the cases on asyncio, the
others on trio; a test without other parameters runs on one of them. `sampled(n)` runs one case in n. Both go along the
diagonals of a matrix, so neighbouring cases, in every parameter, differ in their loop, and a sample has every value of
a parameter if another parameter has at least n values. A case always runs if the command line contains its whole id.
"""

from collections.abc import Iterable
from typing import NamedTuple
from zlib import crc32

import pytest
from hypothesis import settings

LOOP_PARAMETERS, LOOPS = ("anyio_backend", "backend"), ("asyncio", "trio")


class Case(NamedTuple):
    """A case of a test, without its event loop.

    Args:
        test: Id of the test.
        places: For each parameter, the place of the case's value among the values of that parameter.
    """

    test: str
    places: tuple[int, ...]


def sample(items: list[pytest.Item], arguments: Iterable[str] = ()) -> list[pytest.Item]:
    """Remove the cases that do not run by default from `items`, and return them.

    Args:
        items: All cases that were collected; they are chosen in place.
        arguments: The command line's, which may contain the ids of cases.
    """
    if settings.get_current_profile_name() == "thorough":
        return []
    axes = dict[tuple[str, str], list[int]]()
    cases, ids = [_case(item, axes) for item in items], tuple(each for each in arguments if "[" in each)
    kept, dropped = list[pytest.Item](), list[pytest.Item]()
    for item, case in zip(items, cases, strict=True):
        is_kept = case is None or _is_chosen(item, case) or any(each.endswith(item.nodeid) for each in ids)
        (kept if is_kept else dropped).append(item)
    items[:] = kept
    return dropped


def _is_chosen(item: pytest.Item, case: Case) -> bool:
    """Return True if the markers of `item` choose its case."""
    sampled, diagonal = item.get_closest_marker("sampled"), sum(case.places)
    size = 1 if sampled is None else sampled.args[0]
    if diagonal % size:
        return False
    loop = next((value for name, value in _parameters(item).items() if _is_loop(name, value)), None)
    is_alternating = item.get_closest_marker("alternating") is not None
    number = diagonal // size if case.places else crc32(case.test.encode())
    return not is_alternating or loop is None or loop == LOOPS[number % len(LOOPS)]


def _is_loop(name: str, value: object) -> bool:
    return name in LOOP_PARAMETERS and value in LOOPS


def _case(item: pytest.Item, axes: dict[tuple[str, str], list[int]]) -> Case | None:
    """Return the case, or None if no marker chooses. `axes` collects the values of each parameter."""
    if item.get_closest_marker("alternating") is None and item.get_closest_marker("sampled") is None:
        return None
    test, places = item.nodeid.partition("[")[0], list[int]()
    for name, value in sorted(_parameters(item).items()):
        if not _is_loop(name, value):
            values = axes.setdefault((test, name), [])
            if id(value) not in values:
                values.append(id(value))
            places.append(values.index(id(value)))
    return Case(test, tuple(places))


def _parameters(item: pytest.Item) -> dict[str, object]:
    call = getattr(item, "callspec", None)
    return {} if call is None else call.params
