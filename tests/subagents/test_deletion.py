"""Deleting a session deletes the logs of its subagents at all levels, and no others."""

import pytest

from actors import ToolContext, subagent, tool
from actors.core.log.events import Opened
from actors.errors import JournalError
from actors.journal.storage.memory import MemoryStorage
from actors.runtime.runtime import Runtime
from actors.testing import Call, Say, Turn
from tests.runtime_support import openai, runtime_with

pytestmark = pytest.mark.anyio

ANSWER = Turn(Say("120."))


@tool
async def twice(context: ToolContext[None]) -> str:
    """Ask two child sessions."""
    for _ in range(2):
        async with context.subagent("c") as child:
            await child.ask("Go.")
    return "done"


helper = subagent("helper", "Helps.", target="b", tools=[twice])
ASKS_HELPER = [Turn(Call("helper", {"task": "Find the price."})), ANSWER]
ASKS_TWICE = [Turn(Call("twice")), ANSWER]


def stored_ids(runtime: Runtime) -> list[str]:
    return sorted(each.id for each in runtime._storage.sessions())


async def test_deleting_a_session_removes_the_logs_of_its_subagents_and_no_other_logs() -> None:
    above, middle = openai(*ASKS_HELPER * 2), openai(*ASKS_TWICE * 2)
    async with runtime_with(a=above, b=middle, c=openai(*[ANSWER] * 4)) as runtime:
        for id_ in ("trip", "other"):
            session = await runtime.open("a", tools=[helper], id=id_)
            assert (await session.ask("Go.")).status == "complete"
        mine = ["other", "other-c1", "other-c1-c1", "other-c1-c1-2"]
        assert stored_ids(runtime) == [*mine, "trip", "trip-c1", "trip-c1-c1", "trip-c1-c1-2"]
        await runtime.journal.delete("trip")
        assert stored_ids(runtime) == mine
        await runtime.journal.delete("other-c1")
        assert stored_ids(runtime) == ["other"]


async def test_a_session_with_the_id_of_a_subagent_is_not_deleted() -> None:
    async with runtime_with(a=openai(*ASKS_HELPER), b=openai(ANSWER)) as runtime:
        await runtime.open("b", id="trip-c1")
        await runtime.open("b", id="trip-c2")
        session = await runtime.open("a", tools=[helper], id="trip")
        await session.ask("Go.")
        assert stored_ids(runtime) == ["trip", "trip-c1", "trip-c1-2", "trip-c2"]
        first = runtime._storage.read("trip")[0]
        below = runtime._storage.read("trip-c1-2")[0]
        assert isinstance(first, Opened)
        assert isinstance(below, Opened)
        assert (first.parent_key, below.parent_key) == ("", first.key)
        await runtime.journal.delete("trip")
        assert stored_ids(runtime) == ["trip-c1", "trip-c2"]


class PartlyUndeletableStorage(MemoryStorage):
    """A storage that cannot delete the session `keeps`."""

    keeps = ""

    def delete(self, *sessions: str) -> None:
        if self.keeps in sessions:
            raise JournalError("not now")
        super().delete(*sessions)


@pytest.mark.parametrize("keeps", ["trip", "trip-c1", "trip-c1-c1"])
async def test_a_deletion_that_failed_can_be_repeated(keeps: str) -> None:
    storage = PartlyUndeletableStorage()
    storage.keeps = keeps
    above, middle = openai(*ASKS_HELPER), openai(*ASKS_TWICE)
    async with runtime_with(storage=storage, a=above, b=middle, c=openai(*[ANSWER] * 2)) as runtime:
        session = await runtime.open("a", tools=[helper], id="trip")
        await session.ask("Go.")
        with pytest.raises(JournalError, match="not now"):
            await runtime.journal.delete("trip")
        assert keeps in stored_ids(runtime)
        storage.keeps = ""
        await runtime.journal.delete("trip")
        assert stored_ids(runtime) == []
