"""The plants match the tree, and a sample of them is reported: the whole is `python -m tests.plants`."""

import re
from pathlib import Path

import pytest

from tests.plants.__main__ import failing_places, plant_in
from tests.plants.kinds import PLANTS, Plant
from tests.project.test_totality import TABLES
from tests.teeth.__main__ import ROOT, copy_tree

BY_KIND = {plant.kind: plant for plant in PLANTS}


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.kind)
def test_each_example_enum_member_can_be_added_and_the_code_to_change_exists(plant: Plant) -> None:
    for edit in plant.edits:
        text = (ROOT / edit.file).read_text(encoding="utf-8")
        assert edit.apply(text) != text
    for place in set(plant.places) - set(TABLES):
        file, _, name = place.partition(":")
        assert re.search(
            rf"def {name}\(|^{name} = ", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE
        ), place


def test_every_table_that_lists_all_members_must_change_for_some_example_member() -> None:
    assert set(TABLES) - {place for plant in PLANTS for place in plant.places} <= {
        "actors/core/dialects/dialect.py:Dialect"
    }


def test_all_code_that_does_not_handle_an_added_member_is_reported(tmp_path: Path) -> None:
    copy = copy_tree(tmp_path / "tree")
    vendor, failure = BY_KIND["vendor"], BY_KIND["kind of failure"]
    with plant_in(copy, vendor), plant_in(copy, failure):
        assert failing_places(copy) == {*vendor.places, *failure.places}
