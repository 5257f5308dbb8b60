"""Answers cut at some bytes, through whole sessions (`python -m tests.cut_sessions` cuts at all)."""

import pytest

from tests.cut_sessions import BEHIND, FAMILIES, cut

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("name", FAMILIES)
async def test_wherever_an_answer_is_cut_its_ask_ends_once_and_no_tool_runs_for_half_of_it(name: str) -> None:
    ends, problems = await cut(name, 211)
    assert problems == []
    assert set(ends) == {"failed", "complete"}
    assert ends["complete"] == BEHIND
    assert ends["failed"] >= 4
