"""Sampling: large matrices run the cases selected by their markers, other tests run all cases."""

from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests import conftest
from tests.sampling import LOOP_PARAMETERS, LOOPS, sample

NAMES, SIZES = ("a", "b", "c"), ("large", "small")
ALTERNATING = pytest.mark.alternating.mark


def items(*markers: pytest.Mark, loop_name: str = LOOP_PARAMETERS[0]) -> list[pytest.Item]:
    """Return the items of a test with two parameters, on both event loops."""
    by_name = {marker.name: marker for marker in markers}

    def item(loop: str, name: str, size: str) -> Any:  # Any: the attributes that sampling reads
        params = {loop_name: loop, "name": name, "size": size}
        return SimpleNamespace(
            nodeid=f"test_x.py::test_x[{loop}-{name}-{size}]",
            callspec=SimpleNamespace(params=params),
            get_closest_marker=by_name.get,
        )

    return cast(list[pytest.Item], [item(*case) for case in product(LOOPS, NAMES, SIZES)])


def ids(found: list[pytest.Item]) -> list[str]:
    return [item.nodeid.partition("[")[2].removesuffix("]") for item in found]


def chosen_ids(*markers: pytest.Mark) -> list[str]:
    kept = items(*markers)
    dropped = sample(kept)
    assert {*ids(kept), *ids(dropped)} == {*ids(items())}
    return ids(kept)


def test_alternating_cases_run_in_turn_on_asyncio_and_on_trio() -> None:
    assert chosen_ids(ALTERNATING) == [
        *("asyncio-a-large", "asyncio-b-small", "asyncio-c-large"),
        *("trio-a-small", "trio-b-large", "trio-c-small"),
    ]


@pytest.mark.parametrize("name", LOOP_PARAMETERS)
def test_cases_alternate_under_each_name_of_the_loop_parameter(name: str) -> None:
    kept = items(ALTERNATING, loop_name=name)
    sample(kept)
    assert ids(kept) == chosen_ids(ALTERNATING)


@pytest.mark.parametrize(
    ("source", "folder", "alternates"),
    [("TESTPATHS", "session", True), ("ARGS", "session", False), ("TESTPATHS", "kernel", False)],
)
def test_only_a_run_of_the_whole_suite_uses_one_loop_for_each_test(
    source: str, folder: str, alternates: bool
) -> None:
    added = list[str]()
    config = SimpleNamespace(
        args_source=pytest.Config.ArgsSource[source], args=[], option=SimpleNamespace(keyword="")
    )
    item = SimpleNamespace(
        path=Path(conftest.__file__).parent / folder / "test_x.py",
        add_marker=added.append,
        get_closest_marker=lambda name: None,
    )
    conftest.pytest_collection_modifyitems(cast(Any, config), cast(Any, [item]))
    assert added == ["alternating"] * alternates


def test_a_sample_runs_on_both_loops_and_has_every_value_of_each_parameter() -> None:
    cases = ("a-large", "b-small", "c-large")
    assert chosen_ids(pytest.mark.sampled(2).mark) == [f"{loop}-{case}" for loop in LOOPS for case in cases]


def test_the_cases_of_an_alternating_sample_alternate() -> None:
    assert chosen_ids(ALTERNATING, pytest.mark.sampled(2).mark) == [
        *("asyncio-a-large", "trio-b-small", "trio-c-large"),
    ]


def test_a_case_runs_if_the_command_line_contains_its_id() -> None:
    kept = items(ALTERNATING, pytest.mark.sampled(3).mark)
    sample(kept, ["/x/tests/test_x.py::test_x[asyncio-a-small]"])
    assert "asyncio-a-small" in ids(kept)


def test_tests_without_a_marker_run_all_cases() -> None:
    assert chosen_ids() == ids(items())
