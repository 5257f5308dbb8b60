"""The plants keep up with the tree, and a sample of them is told: the whole is `python -m tests.plants`."""

import re
from pathlib import Path

import pytest

from tests.plants.__main__ import failing, planted
from tests.plants.kinds import PLANTS, Plant
from tests.project.test_totality import TABLES
from tests.teeth.__main__ import ROOT, copied

BY_KIND = {plant.kind: plant for plant in PLANTS}


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.kind)
def test_a_plant_can_still_be_made_and_its_places_are_there(plant: Plant) -> None:
    for edit in plant.edits:
        text = (ROOT / edit.file).read_text(encoding="utf-8")
        assert edit.apply(text) != text
    for place in set(plant.places) - set(TABLES):
        file, _, name = place.partition(":")
        assert re.search(
            rf"def {name}\(|^{name} = ", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE
        ), place


def test_every_table_is_a_place_of_a_plant() -> None:
    assert set(TABLES) - {place for plant in PLANTS for place in plant.places} <= {
        "actors/core/dialects/dialect.py:Dialect"
    }


def test_the_named_test_tells_every_place_that_forgot_what_was_planted(tmp_path: Path) -> None:
    copy = copied(tmp_path / "tree")
    vendor, failure = BY_KIND["vendor"], BY_KIND["kind of failure"]
    with planted(copy, vendor), planted(copy, failure):
        assert failing(copy) == {*vendor.places, *failure.places}
