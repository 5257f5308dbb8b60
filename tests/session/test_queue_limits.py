"""Limits of asks queued behind a waiting turn: their number, and their `timeout`."""

import gc
from functools import partial

import anyio
import pytest

from actors.core.stream_events.ask_events import AskResult
from actors.errors import QueueFull
from actors.events import ApprovalDecision
from actors.runtime.handle import Session
from actors.session.limits import QueueLimits
from actors.testing import Call, Say, Turn
from actors.tools import Tool, tool
from tests.runtime_support import Gate, bodies, openai
from tests.scripted import scripted

pytestmark = pytest.mark.anyio

LOOK = Tool.external("look", "Looks something up, elsewhere.", {"type": "object"}, read_only=True)


@tool(approval="ask")
async def pay() -> str:
    """Pay."""
    return "paid"


def queued_timers(session: Session) -> int:
    """Return the number of a session's queued asks whose time in the queue is limited."""
    found = [each for each in gc.get_objects() if type(each) is QueueLimits and each._session == session.id]
    return sum(len(each._children) for each in found)


async def test_the_timeout_of_an_ask_applies_while_it_waits_for_a_turn_with_a_pending_approval() -> None:
    server = openai(Turn(Call("pay")), Turn(Say("Paid.")), Turn(Say("Hi.")))
    async with scripted(server, tools=[pay]) as (_, runtime, session):
        waits = await session.ask("Pay.")
        assert waits.status == "awaiting"
        with pytest.raises(
            QueueFull, match=r"queued for its complete timeout of 0\.05 s, .*nothing was sent"
        ):
            await session.ask("And now?", timeout=0.05)
        with pytest.raises(QueueFull):
            async for _ in session.stream_text("And now?", timeout=0.05):
                pass
        assert (runtime.stats().asks_waiting, runtime.stats().asks["refused"]) == (0, 2)
        assert queued_timers(session) == 0
        assert (
            await session.ask(approvals={waits.pending_calls[0].id: ApprovalDecision("allow")})
        ).text == "Paid."
        assert (await session.ask("Hello.", timeout=60)).text == "Hi."
    assert "And now?" not in str(bodies(server))


async def test_the_timeout_of_a_queued_ask_applies_once_the_running_turn_waits_for_its_caller() -> None:
    gate = Gate()
    server = openai(Turn(Call("work", {"name": "a"}), Call("look")), Turn(Say("Found.")))
    refused = list[QueueFull]()
    async with scripted(server, tools=[gate.tool, LOOK]) as (_, _, session):

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


def has_queue_timer() -> bool:
    """Return True if the time of a queued ask is running."""
    return any("queue limit" in (task.name or "") for task in anyio.get_running_tasks())


async def test_time_in_the_queue_is_not_limited_once_the_turn_continues() -> None:
    gate = Gate()
    server = openai(
        Turn(Call("look")), Turn(Call("work", {"name": "a"})), Turn(Say("Found.")), Turn(Say("Hi."))
    )
    results = list[AskResult]()
    async with scripted(server, tools=[gate.tool, LOOK]) as (_, _, session):
        waits = await session.ask("Look.")

        async def second(session: Session) -> None:
            results.append(await session.ask("Hello.", timeout=60))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(second, session)
            await anyio.wait_all_tasks_blocked()
            assert has_queue_timer()
            assert queued_timers(session) == 1
            tasks.start_soon(partial(session.ask, results={waits.pending_calls[0].id: "found"}))
            await gate.started("a")
            assert not has_queue_timer()
            gate.open("a")
    assert [result.text for result in results] == ["Hi."]
