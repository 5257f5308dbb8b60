"""The model of `docs/explanation/scale.md` at small sizes, where its results are known."""

import runpy
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parents[2] / "docs" / "examples" / "scale_model.py"


@pytest.fixture(scope="module")
def model() -> dict[str, Any]:  # Any: the names of the program
    return runpy.run_path(str(PROGRAM))


def test_a_rare_event_waits_only_for_its_own_commit(model: dict[str, Any]) -> None:
    found = model["waits"](2, turns=0.2)
    assert len(found) > 5
    assert found[len(found) // 2] == pytest.approx(model["COMMIT"] + model["EVENT"])


def test_events_wait_longer_if_more_events_share_the_database(model: dict[str, Any]) -> None:
    middle = [
        sorted(found)[len(found) // 2]
        for found in (model["waits"](4, turns, 2.0) for turns in (20, 400, 1600))
    ]
    assert middle == sorted(middle)
    assert middle[-1] > 3 * middle[0]


def test_every_event_of_the_simulated_time_is_committed(model: dict[str, Any]) -> None:
    turns, seconds = 200, 10.0
    found = model["waits"](3, turns, seconds)
    assert len(found) == pytest.approx(turns * model["EVENTS"] * seconds, rel=0.05)
    assert min(found) > 0.999 * (model["COMMIT"] + model["EVENT"])
