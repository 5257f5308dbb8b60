"""An ask that waits behind a turn which waits for an approval is bounded: in number, and by its `total` in time."""

import gc
from functools import partial

import anyio
import pytest

from actors.core.stream_events.results import AskResult
from actors.errors import QueueFull
from actors.events import ApprovalDecision
from actors.runtime.handle import Session
from actors.session.queue_limits import QueueLimits
from actors.testing import Call, Say, Turn
from actors.tools import Tool, tool
from tests.runtime_support import Gate, bodies, hosting, openai

pytestmark = pytest.mark.anyio

LOOK = Tool.external("look", "Looks something up, elsewhere.", {"type": "object"}, read_only=True)


@tool(approval="ask")
async def pay() -> str:
    """Pay."""
    return "paid"


def times_running(session: Session) -> int:
    """Return how many asks of a session are kept with their time in the queue."""
    found = [each for each in gc.get_objects() if type(each) is QueueLimits and each._session == session.id]
    return sum(len(each._children) for each in found)


async def test_an_ask_behind_a_turn_that_waits_for_an_approval_is_bounded_by_its_total() -> None:
    server = openai(Turn(Call("pay")), Turn(Say("Paid.")), Turn(Say("Hi.")))
    async with hosting(a=server) as runtime:
        session = await runtime.open("a", tools=[pay])
        waits = await session.ask("Pay.")
        assert waits.status == "awaiting"
        with pytest.raises(QueueFull, match=r"waited 0\.05 s behind it; nothing was asked"):
            await session.ask("And now?", timeout=0.05)
        with pytest.raises(QueueFull):
            async for _ in session.stream_text("And now?", timeout=0.05):
                pass
        assert (runtime.stats().asks_waiting, runtime.stats().asks["refused"]) == (0, 2)
        assert times_running(session) == 0
        assert (
            await session.ask(approvals={waits.pending_calls[0].id: ApprovalDecision("allow")})
        ).text == "Paid."
        assert (await session.ask("Hello.", timeout=60)).text == "Hi."
    assert "And now?" not in str(bodies(server))


async def test_an_ask_that_waits_already_when_the_turn_begins_to_wait_is_bounded_too() -> None:
    gate = Gate()
    server = openai(Turn(Call("work", {"name": "a"}), Call("look")), Turn(Say("Found.")))
    refused = list[QueueFull]()
    async with hosting(a=server) as runtime:
        session = await runtime.open("a", tools=[gate.tool, LOOK])

        async def second() -> None:
            with pytest.raises(QueueFull) as raised:
                await session.ask("And now?", timeout=0.05)
            refused.append(raised.value)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.ask, "Do it.")
            await gate.started("a")
            tasks.start_soon(second)
            await anyio.wait_all_tasks_blocked()
            assert refused == []
            gate.open("a")
        assert len(refused) == 1
        await session.cancel()


def has_a_queue_limit() -> bool:
    """Return whether the time of an ask in a queue counts now."""
    return any("queue limit" in (task.name or "") for task in anyio.get_running_tasks())


async def test_time_in_the_queue_does_not_count_once_the_turn_goes_on() -> None:
    gate = Gate()
    server = openai(
        Turn(Call("look")), Turn(Call("work", {"name": "a"})), Turn(Say("Found.")), Turn(Say("Hi."))
    )
    results = list[AskResult]()
    async with hosting(a=server) as runtime:
        session = await runtime.open("a", tools=[gate.tool, LOOK])
        waits = await session.ask("Look.")

        async def second(session: Session) -> None:
            results.append(await session.ask("Hello.", timeout=60))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(second, session)
            await anyio.wait_all_tasks_blocked()
            assert has_a_queue_limit()
            assert times_running(session) == 1
            tasks.start_soon(partial(session.ask, results={waits.pending_calls[0].id: "found"}))
            await gate.started("a")
            assert not has_a_queue_limit()
            gate.open("a")
    assert [result.text for result in results] == ["Hi."]
