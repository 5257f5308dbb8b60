"""A task that a tool starts belongs to its call until the call has ended, and is independent afterwards."""

import anyio
import pytest

from actors.errors import ReentrantCall
from actors.testing import Call, Say, Turn
from actors.tools import tool
from tests.host_code.rows import ONE
from tests.runtime_support import Gate, openai, runtime_with, wait_for_result
from tests.scripted import scripted

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("PROMISE-12")
@pytest.mark.parametrize("is_batch_over", [True, False])
async def test_a_background_task_may_use_every_session_after_its_call_ended(is_batch_over: bool) -> None:
    gate, began, goes_on, is_done = Gate(), anyio.Event(), anyio.Event(), anyio.Event()
    calls = [Call("work", {"name": "b"}), Call("begin", {})]
    server = openai(Turn(*calls), Turn(Say("done")), Turn(Say("again")))
    other = openai(Turn(Say("from beside")), Turn(Say("from a new one")))
    answers: list[str] = []

    async def worker() -> None:
        for use in (session.history, beside.history):
            with pytest.raises(ReentrantCall):
                await use()
        began.set()
        await goes_on.wait()
        answers.append((await beside.ask("Report.")).text)
        answers.append((await (await runtime.open("other")).ask("Report.")).text)
        if is_batch_over:
            answers.append((await session.ask("Report.")).text)
        await session.history()
        is_done.set()

    async with (
        anyio.create_task_group() as workers,
        runtime_with(seconds=60, a=server, other=other) as runtime,
    ):

        @tool
        async def begin() -> str:
            """Start a background task."""
            workers.start_soon(worker)
            await began.wait()
            return "begun"

        session, beside = await runtime.open("a", tools=[gate.tool, begin]), await runtime.open("other")
        if is_batch_over:
            gate.open("b")
        async with session.stream("Do it.") as events:
            if is_batch_over:
                assert [event async for event in events][-1].type == "complete"
            await wait_for_result(session, "hist_tool_2")
            goes_on.set()
            await is_done.wait()
            gate.open("b")
            assert is_batch_over or [event async for event in events][-1].type == "complete"
    assert answers == ["from beside", "from a new one", *(["again"] if is_batch_over else [])]


@pytest.mark.requirement("PROMISE-12", "PROMISE-10")
@pytest.mark.usefixtures("short_graces")
async def test_a_tool_that_still_runs_after_its_call_was_closed_may_use_its_session() -> None:
    begun, goes_on, is_done = anyio.Event(), anyio.Event(), anyio.Event()
    answers: list[str] = []

    @tool
    async def work(name: str) -> str:
        """Ignore cancellation."""
        with anyio.CancelScope(shield=True):
            begun.set()
            await goes_on.wait()
            answers.append((await session.ask("Report.")).text)
            is_done.set()
        return name

    async with scripted("openai_chat", ONE, Turn(Say("from the session")), tools=[work]) as (_, _, session):
        async with session.stream("Do it."):
            await begun.wait()
            assert await session.cancel()
        goes_on.set()
        await is_done.wait()
        await wait_for_result(session, "hist_tool_1")
    assert answers == ["from the session"]
