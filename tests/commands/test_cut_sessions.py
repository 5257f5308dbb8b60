"""Answers cut at some bytes, through whole sessions (`python -m tests.commands.cut_sessions` cuts at all)."""

from typing import get_args

import pytest

from tests.commands.cut_sessions import BEHIND, ENDED_BY_THE_RESPONSE, FAMILIES, How, cut

pytestmark = pytest.mark.anyio


@pytest.mark.sampled(2)
@pytest.mark.alternating
@pytest.mark.parametrize("how", get_args(How))
@pytest.mark.parametrize("name", FAMILIES)
async def test_wherever_an_answer_is_cut_its_ask_ends_once_and_no_tool_runs_for_half_of_it(
    name: str, how: How
) -> None:
    ends, problems = await cut(name, how, 211)
    assert problems == []
    never_whole = how == "breaks" and name in ENDED_BY_THE_RESPONSE
    assert ends["complete"] == (0 if never_whole else BEHIND)
    assert set(ends) <= {"failed", "complete"}
    assert ends["failed"] >= 4
