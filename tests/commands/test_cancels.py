"""Cancels at random moments, in a sample (`python -m tests.commands.cancels` makes 1,000 and prints their duration)."""

import anyio
import anyio.lowlevel
import pytest

from actors.core.log.call_events import Scheduled
from actors.testing import Call, Say, Turn
from tests.commands.cancels import FRESH, PHASES, Storm
from tests.runtime.test_recovery_of_sessions import HeldStorage
from tests.runtime_support import Gate, openai, runtime_with

pytestmark = pytest.mark.anyio


@pytest.mark.long
@pytest.mark.requirement("PROMISE-10", "PROMISE-9", "REQ-915-034")
async def test_after_random_cancels_every_call_is_closed_and_new_requests_are_served() -> None:
    storm = Storm(60, seed=3)
    with anyio.fail_after(300):
        outcome = await storm.run()
    assert outcome.problems == []
    assert (outcome.open_calls, outcome.fresh) == (0, FRESH)
    assert set(outcome.seconds) == set(PHASES)
    assert outcome.ends["cancelled"] > outcome.ends["complete"]
    assert sum(outcome.ends.values()) == 60


async def test_a_batch_cancelled_while_its_start_is_written_starts_no_tool() -> None:
    gate, storage = Gate(), HeldStorage(Scheduled)
    gate.open("a")
    server = openai(Turn(Call("work", {"name": "a"})), Turn(Say("Next.")))
    async with runtime_with(a=server, storage=storage) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        async with session.stream("Do it.") as events, anyio.create_task_group() as tasks:
            await storage.begun.wait()
            tasks.start_soon(session.cancel)
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            storage.freed.set()
            assert [event async for event in events][-1].type == "complete"
        assert gate.runs == []
        assert (await session.ask("And now?")).text == "Next."
    assert server.refusals == []
