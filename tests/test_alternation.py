"""Alternating cases run on one event loop each, every test on both, and a case that is named runs where it is."""

from itertools import product
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.alternation import LOOP, LOOPS, alternate

NAMES, SIZES = ("a", "b", "c"), ("large", "small")


def items(*, marked: bool = True) -> list[pytest.Item]:
    """Return the items of a test with two parameters, on both event loops."""

    def item(loop: str, name: str, size: str) -> Any:  # Any: what is read of an item
        params = {LOOP: loop, "name": name, "size": size}
        marker = pytest.mark.alternating.mark if marked else None
        return SimpleNamespace(
            nodeid=f"test_x.py::test_x[{loop}-{name}-{size}]",
            callspec=SimpleNamespace(params=params),
            get_closest_marker=lambda _: marker,
        )

    return cast(list[pytest.Item], [item(*case) for case in product(LOOPS, NAMES, SIZES)])


def ids(found: list[pytest.Item]) -> list[str]:
    return [item.nodeid.partition("[")[2].removesuffix("]") for item in found]


def test_each_case_runs_on_one_loop_and_its_neighbours_on_the_other() -> None:
    kept = items()
    dropped = alternate(kept)
    assert ids(kept) == [
        *("asyncio-a-large", "asyncio-b-small", "asyncio-c-large"),
        *("trio-a-small", "trio-b-large", "trio-c-small"),
    ]
    assert {*ids(kept), *ids(dropped)} == {*ids(items())}


def test_a_case_that_is_named_runs_where_it_is_named() -> None:
    named = [item for item in items() if item.nodeid.endswith("[asyncio-a-small]")]
    assert alternate(named) == []
    assert ids(named) == ["asyncio-a-small"]


def test_tests_that_do_not_alternate_run_on_both_loops() -> None:
    kept = items(marked=False)
    assert alternate(kept) == []
    assert len(kept) == len(LOOPS) * len(NAMES) * len(SIZES)
