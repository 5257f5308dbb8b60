"""Calls that write to the same resource keep their order; all others run concurrently."""

import threading
from dataclasses import replace
from typing import Any

import anyio
import pytest

from actors.config import RuntimeLimits
from actors.core.data.jsonio import JsonValue, parse
from actors.errors import ResourceBusy
from actors.scheduler.executor import ToolFailure
from actors.scheduler.ordering import ResourceOrder
from actors.testing import Call, Say, Turn
from actors.tools import Tool, tool
from tests.runtime_support import Gate, bodies, openai, results, runtime_with
from tests.scripted import scripted

pytestmark = pytest.mark.anyio


def with_resource(made: Tool[..., Any]) -> Tool[..., Any]:  # Any: any function
    """Return a tool whose resource is the first letter of its argument."""

    def resource(arguments: dict[str, JsonValue]) -> str:
        name = arguments["name"]
        assert isinstance(name, str)
        return name[0]

    return replace(made, resources=resource)


def batch(*names: str) -> Turn:
    return Turn(*[Call("work", {"name": name}) for name in names])


async def test_writes_to_one_resource_keep_their_order_and_other_calls_run_at_once() -> None:
    gate, server = Gate(), openai(batch("a1", "b1", "a2", "b2", "a3"))
    async with scripted(server, tools=[with_resource(gate.tool)]) as (_, _, session):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.ask, "Go.")
            await gate.started("a1", "b1")
            assert sorted(gate.runs) == ["a1", "b1"]
            gate.open("b1")
            await gate.started("b2")
            assert sorted(gate.runs) == ["a1", "b1", "b2"]
            gate.open("b2", "a2", "a1")
            await gate.started("a3")
            gate.open("a3")
        assert gate.runs[2:] == ["b2", "a2", "a3"]
        assert not len(session._actors._executor.order)  # finished calls leave no entries
    assert list(results(bodies(server)[-1]).values()) == [
        f"{each} is done" for each in ("a1", "b1", "a2", "b2", "a3")
    ]


async def test_ordered_calls_of_blocking_tools_hold_no_thread_while_they_wait() -> None:
    runs: list[str] = []
    second = threading.Event()

    @tool(resources="disk")
    def work(name: str) -> str:
        """Write."""
        runs.append(f"{name} begins")
        if name == "a":
            second.wait(20)
        runs.append(f"{name} ends")
        return name

    @tool
    def other(name: str) -> str:
        """Run in the free thread."""
        second.set()
        return name

    server = openai(
        Turn(Call("work", {"name": "a"}), Call("work", {"name": "b"}), Call("other", {"name": "c"}))
    )
    async with scripted(server, tools=[work, other], limits=RuntimeLimits(tool_threads=2)) as (_, _, session):
        assert (await session.ask("Go.")).status == "complete"
    assert runs == ["a begins", "a ends", "b begins", "b ends"]


async def test_a_call_that_fails_or_times_out_lets_the_next_call_run() -> None:
    runs: list[str] = []

    @tool(resources=("disk", "tape"), timeout=0.05)
    async def work(name: str) -> str:
        """Write."""
        runs.append(name)
        if name == "fails":
            raise OSError("full")
        if name == "hangs":
            await anyio.sleep_forever()
        return name

    server = openai(batch("fails", "hangs", "works"))
    async with scripted(server, tools=[work]) as (_, _, session):
        await session.ask("Go.")
    assert runs == ["fails", "hangs", "works"]
    told = list(results(bodies(server)[-1]).values())
    assert told == ["ERROR: OSError: full", "ERROR: The tool did not return within 0.05 s.", "works"]


async def test_a_resource_stays_locked_while_an_abandoned_tool_still_runs() -> None:
    released = threading.Event()
    runs: list[str] = []
    failures: list[ToolFailure] = []

    @tool(resources="disk", timeout=0.5)
    def work(name: str) -> str:
        """Write."""
        runs.append(name)
        if name == "hangs":
            released.wait(20)
        return name

    script = batch("hangs", "second", "third"), batch("fourth"), Turn(Say("So be it."))
    server = openai(*script, batch("fifth"), Turn(Say("Done.")))
    async with runtime_with(seconds=30, a=server, on_tool_error=failures.append) as runtime:
        session = await runtime.open("a", tools=[work])
        try:
            await session.ask("Go.")
            assert runs == ["hangs"]
        finally:
            released.set()
        while len(session._actors._executor.order):
            await anyio.lowlevel.checkpoint()
        await session.ask("And now?")
        assert runs == ["hangs", "fifth"]
    told = list(results(bodies(server)[2]).values())
    problems: list[Any] = [parse(text.removeprefix("ERROR: ").encode()) for text in told[1:]]  # Any: JSON
    assert [problem["tool_error"]["kind"] for problem in problems] == ["resource_busy"] * 3
    assert {type(failure.error) for failure in failures} == {TimeoutError, ResourceBusy}


async def test_a_call_that_is_cancelled_while_it_waits_for_its_resource_never_starts() -> None:
    gate = Gate()
    async with scripted(
        "openai_chat", batch("a1", "a2"), batch("a3"), Turn(Say("Done.")), tools=[with_resource(gate.tool)]
    ) as (_, _, session):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.ask, "Go.")
            await gate.started("a1")
            assert await session.cancel()
        assert gate.runs == ["a1"]
        assert [item.started for item in (await session.ledger()).interactions()] == [True, False]
        gate.open("a3")
        assert (await session.ask("Again.")).status == "complete"
    assert gate.runs == ["a1", "a3"]


async def test_a_failing_resource_rule_fails_only_its_own_call() -> None:
    gate, failures = Gate(), list[ToolFailure]()
    gate.open("b")

    def rule(arguments: dict[str, JsonValue]) -> str:
        if arguments["name"] == "a":
            raise KeyError("no such disk")
        return "disk"

    server = openai(batch("a", "b"))
    async with runtime_with(seconds=30, a=server, on_tool_error=failures.append) as runtime:
        session = await runtime.open("a", tools=[replace(gate.tool, resources=rule)])
        await session.ask("Go.")
    assert gate.runs == ["b"]
    assert list(results(bodies(server)[-1]).values()) == ["ERROR: KeyError: 'no such disk'", "b is done"]
    assert [type(failure.error) for failure in failures] == [KeyError]


async def test_sessions_do_not_share_resources() -> None:
    gate = Gate()
    async with runtime_with(seconds=30, a=openai(batch("a1")), b=openai(batch("a2"))) as runtime:
        one, two = [await runtime.open(name, tools=[with_resource(gate.tool)]) for name in "ab"]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.ask, "Go.")
            tasks.start_soon(two.ask, "Go.")
            await gate.started("a1", "a2")
            gate.open("a1", "a2")


async def test_a_call_waits_for_all_earlier_calls_with_a_common_resource() -> None:
    order = ResourceOrder()
    one, two, three = order.add_writer(["a"]), order.add_writer(["b", "b"]), order.add_writer(["a", "b"])
    assert [place.has_to_wait for place in (one, two, three)] == [False, False, True]
    one.mark_closed()
    two.leave_order()
    two.leave_order()
    four = order.add_writer(["a"])
    with pytest.raises(ResourceBusy):
        await three.wait_for_turn()
    three.leave_order()
    with pytest.raises(ResourceBusy):  # the first call still runs, although the third never started
        await four.wait_for_turn()
    one.leave_order()
    await four.wait_for_turn()
    four.leave_order()
    assert not len(order)
