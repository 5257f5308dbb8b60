"""A subagent ends with its call, and the call does not end before its subagent."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from actors import Tool, ToolContext, ToolSource, subagent, tool
from actors.core.log.call_events import Cancelled, Failed
from actors.core.log.events import Closed, LogEvent, TurnEnded
from actors.runtime.runtime import Runtime
from actors.strict.server import LoopbackServer
from actors.testing import Call, Say, Turn
from tests.runtime_support import Gate, actors, advance_deadlines, log, openai, restarted_actors, runtime_with

pytestmark = pytest.mark.anyio

DELEGATES = Turn(Call("helper", {"task": "Find the price."}))
WORKS = Turn(Call("work", {"name": "a"}))
GOING_ON = Turn(Say("I see."))


def parent_server() -> LoopbackServer:
    return openai(DELEGATES, GOING_ON, GOING_ON)


def child_server() -> LoopbackServer:
    return openai(WORKS, Turn(Say("120.")))


def ends(runtime: Runtime, session: str) -> list[LogEvent]:
    """Return the events that ended the calls, the turn and the session, from the log."""
    kept = (Cancelled, Failed, TurnEnded, Closed)
    return [event for event in runtime._storage.read(session) if isinstance(event, kept)]


def assert_ended_in_order(runtime: Runtime, session: str) -> None:
    """Check that the call was closed, the turn cancelled and the log ended, and that no actors are left."""
    call, turn, closed = ends(runtime, session)
    assert isinstance(call, Cancelled)
    assert isinstance(turn, TurnEnded)
    assert turn.status == "cancelled"
    assert isinstance(closed, Closed)
    assert session not in runtime.sessions
    assert [name for name in actors(runtime) if name.startswith(f"{session}/")] == []


@pytest.mark.parametrize("is_deep", [False, True])
async def test_cancelling_the_parent_cancels_the_subagent_and_waits_for_its_end(is_deep: bool) -> None:
    gate = Gate()
    innermost = "trip-c1-c1" if is_deep else "trip-c1"
    made = subagent("helper", "Helps.", target="b", tools=[gate.tool])
    if is_deep:
        made = subagent("helper", "Helps.", target="c", tools=[made])
    async with runtime_with(a=parent_server(), b=child_server(), c=openai(DELEGATES)) as runtime:
        session = await runtime.open("a", tools=[made], id="trip")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.ask, "Go.")
            await gate.started("a")
            assert await session.cancel()
            assert_ended_in_order(runtime, innermost)
        assert list(runtime.sessions) == ["trip"]
        (call,) = (await session.ledger()).interactions()
        assert call.reason == "cancelled"
        assert (await session.ask("And now?")).text == "I see."


class ShieldedHelper:
    """A tool `helper` that is shielded from cancellation inside its subagent block."""

    def __init__(self, gate: Gate) -> None:
        self.released, self.gate = anyio.Event(), gate

    @property
    def tool(self) -> Tool[..., Any]:  # Any: any function
        """The tool."""

        async def helper(task: str, context: ToolContext[None]) -> str:
            """Help."""
            async with context.subagent("b", tools=[self.gate.tool]) as child:
                try:
                    return (await child.ask(task)).text
                finally:
                    with anyio.CancelScope(shield=True):
                        await self.released.wait()

        return tool(helper)


@pytest.mark.usefixtures("short_graces")
async def test_a_subagent_ends_even_if_the_tool_of_its_parent_ignores_cancellation() -> None:
    gate = Gate()
    stubborn = ShieldedHelper(gate)
    async with runtime_with(a=parent_server(), b=child_server()) as runtime:
        session = await runtime.open("a", tools=[stubborn.tool], id="trip")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.ask, "Go.")
            await gate.started("a")
            assert await session.cancel()
        assert_ended_in_order(runtime, "trip-c1")
        stubborn.released.set()
        assert (await session.ask("And now?")).text == "I see."


@pytest.mark.usefixtures("short_graces")
async def test_a_call_waits_for_a_subagent_whose_own_tools_ignore_cancellation() -> None:
    """The grace period of the child's tool begins and ends after the grace period of the parent's tool."""
    begun, released = anyio.Event(), anyio.Event()

    @tool
    async def work(name: str) -> str:
        """Ignore cancellation."""
        begun.set()
        with anyio.CancelScope(shield=True):
            await released.wait()
        return name

    made = subagent("helper", "Helps.", target="b", tools=[work])
    async with runtime_with(a=parent_server(), b=child_server()) as runtime:
        session = await runtime.open("a", tools=[made], id="trip")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.ask, "Go.")
            await begun.wait()
            assert await session.cancel()
            assert_ended_in_order(runtime, "trip-c1")
        released.set()


async def test_a_cancelled_tool_may_clean_up_after_its_subagent_ended() -> None:
    """The subagent ends before the tool leaves the subagent's `async with` block."""
    gate, over = Gate(), anyio.Event()

    @tool
    async def helper(task: str, context: ToolContext[None]) -> str:
        """Help, then wait for the end of the subagent."""
        async with context.subagent("b", tools=[gate.tool]) as child:
            try:
                await child.ask(task)
            finally:
                with anyio.CancelScope(shield=True):
                    while child.id in runtime.sessions:
                        await anyio.lowlevel.checkpoint()
                over.set()
                return "tidy"  # noqa: B012  swallows the cancellation on purpose

    async with runtime_with(a=parent_server(), b=child_server()) as runtime:
        session = await runtime.open("a", tools=[helper], id="trip")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.ask, "Go.")
            await gate.started("a")
            assert await session.cancel()
        (known,) = (await session.ledger()).interactions()
    assert over.is_set()
    assert known.completion is not None
    assert known.completion.content == "tidy"


async def test_a_subagent_does_not_outlive_the_timeout_of_its_tool() -> None:
    gate = Gate()
    made = subagent("helper", "Helps.", target="b", tools=[gate.tool], timeout=600)
    async with runtime_with(a=parent_server(), b=child_server()) as runtime:
        session = await runtime.open("a", tools=[made], id="trip")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.ask, "Go.")
            await gate.started("a")
            advance_deadlines(runtime, 600)
        *_, turn, closed = ends(runtime, "trip-c1")
        assert isinstance(turn, TurnEnded)
        assert turn.status == "cancelled"
        assert isinstance(closed, Closed)
        assert list(runtime.sessions) == ["trip"]
        (known,) = (await session.ledger()).interactions()
        assert known.completion is not None
        assert known.completion.error == "The tool did not return within 600 s."


async def test_a_call_does_not_wait_for_a_toolset_of_its_subagent() -> None:
    gate, ended, left = Gate(), anyio.Event(), list[str]()
    gate.open("a")

    @asynccontextmanager
    async def slow() -> AsyncIterator[list[Tool[..., Any]]]:  # Any: any function
        yield [gate.tool]
        await ended.wait()
        left.append("slow")

    source = ToolSource(slow, "slow", closing=300)
    async with runtime_with(a=parent_server(), b=child_server()) as runtime:
        session = await runtime.open("a", tools=[subagent("helper", "Helps.", target="b", tools=[source])])
        with anyio.fail_after(10):
            assert (await session.ask("Go.")).text == "I see."
        assert list(runtime.sessions) == [session.id]
        assert left == []
        ended.set()
    assert left == ["slow"]


async def test_the_end_of_a_subagent_is_logged_before_the_end_of_its_call() -> None:
    """A watcher of the call reads the child's log when the call ends."""
    gate = Gate()
    made = subagent("helper", "Helps.", target="b", tools=[gate.tool])
    seen: list[bool] = []
    async with runtime_with(a=parent_server(), b=child_server()) as runtime:
        session = await runtime.open("a", tools=[made], id="trip")

        async def watch() -> None:
            async with session.stream("Go.") as events:
                async for event in events:
                    if event.type == "tool_results":
                        seen.append(isinstance(runtime._storage.read("trip-c1")[-1], Closed))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            await gate.started("a")
            await session.cancel()
    assert seen == [True]


@pytest.mark.parametrize("actor", ["session", "scheduler", "ledger", "renderer"])
async def test_a_crash_of_the_parent_ends_the_subagent_and_closes_its_call(actor: str) -> None:
    gate = Gate()
    made = subagent("helper", "Helps.", target="b", tools=[gate.tool])
    async with runtime_with(a=parent_server(), b=child_server()) as runtime:
        session = await runtime.open("a", tools=[made], id="trip")
        async with anyio.create_task_group() as tasks:
            results: list[Any] = []  # Any: results of asks

            async def ask() -> None:
                results.append(await session.ask("Go."))

            tasks.start_soon(ask)
            await gate.started("a")
            runtime._system.cells[f"trip/{actor}"].crash(RuntimeError("crash"))
        assert [result.status for result in results] == ["interrupted"]
        assert restarted_actors(runtime)
        while "trip-c1" in runtime.sessions:
            await anyio.lowlevel.checkpoint()
        assert_ended_in_order(runtime, "trip-c1")
        (call,) = (await session.ledger()).interactions()
        assert call.reason == "outcome_unknown"
        assert (await session.ask("And now?")).text == "I see."


@pytest.mark.parametrize("actor", ["session", "scheduler"])
async def test_a_crash_of_a_subagent_fails_its_call(actor: str) -> None:
    gate = Gate()
    made = subagent("helper", "Helps.", target="b", tools=[gate.tool])
    async with runtime_with(a=parent_server(), b=child_server()) as runtime:
        session = await runtime.open("a", tools=[made], id="trip")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.ask, "Go.")
            await gate.started("a")
            runtime._system.cells[f"trip-c1/{actor}"].crash(RuntimeError("crash"))
        (call,) = (await session.ledger()).interactions()
        assert call.completion is not None
        assert str(call.completion.error).startswith("SubagentFailed: helper did not complete (interrupted)")
        assert isinstance(log(runtime, session)[-1], TurnEnded)
        assert isinstance(runtime._storage.read("trip-c1")[-1], Closed)


async def test_exiting_the_runtime_ends_the_calls_and_then_the_turn_of_a_subagent() -> None:
    gate = Gate()
    made = subagent("helper", "Helps.", target="b", tools=[gate.tool])
    async with runtime_with(a=parent_server(), b=child_server()) as runtime:
        session = await runtime.open("a", tools=[made], id="trip")
        async with session.stream("Go."):
            await gate.started("a")
    call, turn, *_ = ends(runtime, "trip-c1")
    assert isinstance(call, Cancelled)
    assert isinstance(turn, TurnEnded)
