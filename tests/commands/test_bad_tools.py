"""A bad tool in one session leaves the others as they were (`python -m tests.commands.bad_tools` plays every kind)."""

import pytest

from tests.commands.bad_tools import ASKS, LASTING, play

pytestmark = pytest.mark.anyio

SESSIONS = 3
ENDING = ("raises cancelled", "raises exit", "raises_in_a_thread group", "returns huge", "spoils [1, 2]")


@pytest.mark.requirement("PROMISE-8", "PROMISE-10")
@pytest.mark.usefixtures("short_graces")
async def test_a_bad_tool_in_one_session_changes_nothing_in_other_sessions() -> None:
    clean = await play(None, SESSIONS)
    assert clean.differs(await play(None, SESSIONS)) == []
    assert all(ends == [("complete", f"Done for {name}.")] * ASKS for name, ends in clean.answers.items())
    for kind in (*LASTING, *ENDING):
        seen = await play(kind, SESSIONS)
        assert seen.differs(clean) == [], kind
        assert seen.bad == ["cancelled" if kind in LASTING else "complete"] * ASKS, kind
