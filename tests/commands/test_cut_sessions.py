"""Answers cut at some bytes, through complete sessions (`python -m tests.commands.cut_sessions` cuts at every byte)."""

from typing import get_args

import pytest

from tests.commands.cut_sessions import BEHIND, ENDED_BY_THE_RESPONSE, FAMILIES, How, cut_answers

pytestmark = pytest.mark.anyio


@pytest.mark.sampled(2)
@pytest.mark.alternating
@pytest.mark.parametrize("how", get_args(How))
@pytest.mark.parametrize("name", FAMILIES)
async def test_an_ask_with_a_truncated_answer_ends_once_and_runs_no_partial_call(name: str, how: How) -> None:
    ends, problems = await cut_answers(name, how, 211)
    assert problems == []
    never_whole = how == "breaks" and name in ENDED_BY_THE_RESPONSE
    assert ends["complete"] == (0 if never_whole else BEHIND)
    assert set(ends) <= {"failed", "complete"}
    assert ends["failed"] >= 4
