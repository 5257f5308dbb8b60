"""The list of mistakes keeps up with the tree: each can still be made, and what must notice it is still there."""

from functools import cache

from actors.core.dialects.profiles import PROFILES
from tests import naming
from tests.teeth.__main__ import ROOT
from tests.teeth.mutations import MUTATIONS
from tests.teeth.mutations.profiles import IDS, PLACES


def test_every_mistake_can_still_be_made_and_its_tests_are_there() -> None:
    for mutation in MUTATIONS:
        with naming.case(mutation.what):
            text = _text(mutation.edit.file)
            assert mutation.edit.apply(text) != text
            for test in mutation.tests:
                file, _, name = test.partition("::")
                assert f"def {name.partition('[')[0]}" in _text(file)


@cache
def _text(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


def test_the_door_every_step_of_a_render_both_families_of_the_judge_the_ledger_lane_turn_and_switch_are_covered() -> (
    None
):
    steps = {"door", "walk", "choose", "thinking", "order", "apart", "attach", "plain", "projection"}
    parts = {"ledger", "sealing", "lane", "turn", "switch", "check, openai_chat", "check, anthropic"}
    named = {mutation.what.partition(":")[0] for mutation in MUTATIONS}
    assert named >= steps | parts


def test_every_dialect_has_a_mistake_in_its_ids_and_one_in_its_places() -> None:
    assert set(IDS) == set(PLACES) == set(PROFILES)
