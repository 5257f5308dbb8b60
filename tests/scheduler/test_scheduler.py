"""Batches of tool calls: validated before they run, executed concurrently, answered in call order, and bounded."""

import json
import threading
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from actors.config import RuntimeLimits
from actors.core.log.call_events import Scheduled, Started
from actors.core.values.content import ToolCall
from actors.strict.server import LoopbackServer
from actors.testing import Call, OpenAIServer, Say, Turn
from actors.tools import Tool, tool
from tests.runtime_support import (
    Gate,
    anthropic,
    assert_paired,
    bodies,
    log,
    openai,
    results,
    runtime_with,
    wait_for_result,
)
from tests.scripted import scripted

pytestmark = pytest.mark.anyio

MakeServer = Callable[..., LoopbackServer]
SERVERS = pytest.mark.parametrize("make_server", [openai, anthropic])
FIVE = Turn(*[Call("work", {"name": name}) for name in "abcde"])


@SERVERS
@pytest.mark.requirement("REQ-915-031", "U-10", "PROMISE-11")
async def test_calls_of_a_message_run_concurrently_and_are_answered_in_order(make_server: MakeServer) -> None:
    gate = Gate()
    async with scripted(make_server(FIVE), tools=[gate.tool]) as (server, runtime, session):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.ask, "Do it.")
            await gate.started(*"abcde")
            for number, name in reversed(list(enumerate("abcde", 1))):
                gate.open(name)
                await wait_for_result(session, f"hist_tool_{number}")
        history = await session.history()
        assert [message.role for message in history] == ["user", "assistant", "tool", "assistant"]
        kinds = [type(event) for event in log(runtime, session)]
        assert kinds.index(Started) > max(at for at, kind in enumerate(kinds) if kind is Scheduled)
    assert list(results(bodies(server)[-1]).values()) == [f"{name} is done" for name in "abcde"]


@pytest.mark.requirement("REQ-915-030")
async def test_the_batch_of_one_session_does_not_delay_another_session() -> None:
    one, two = Gate(), Gate()
    two.open(*"abcde")
    async with runtime_with(a=openai(FIVE), b=openai(FIVE)) as runtime:
        first = await runtime.open("a", tools=[one.tool])
        second = await runtime.open("b", tools=[two.tool])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(first.ask, "Do it.")
            await one.started(*"abcde")
            assert (await second.ask("Do it.")).status == "complete"
            one.open(*"abcde")


@SERVERS
@pytest.mark.requirement("U-05", "REQ-915-031")
async def test_invalid_arguments_are_rejected_with_the_missing_fields(
    make_server: MakeServer,
) -> None:
    gate = Gate()
    gate.open("a")
    turn = Turn(
        Call("work", {"name": "a"}),
        Call("work", {}),
        Call("work", {"name": 7}),
        Call("work", {"name": "a", "else": 1}),
        Call("work", raw='{"name": "a'),
        Call("nothing_like_it", {}),
    )
    async with scripted(make_server(turn, Turn(Say("I see."))), tools=[gate.tool]) as (server, _, session):
        assert (await session.ask("Do it.")).status == "complete"
        assert gate.runs == ["a"]
    body = bodies(server)[-1]
    assert_paired(body)
    first, *refused = results(body).values()
    assert first == "a is done"
    errors = [json.loads(content[content.index("{") :])["tool_error"] for content in refused]
    assert [error["tool"] for error in errors] == ["work"] * 4 + ["nothing_like_it"]
    assert "name" in json.dumps(errors[0])
    assert "missing" in json.dumps(errors[0])
    assert len(errors) == 5


@pytest.mark.requirement("U-05")
async def test_a_call_of_an_unknown_tool_is_answered_with_the_known_tools() -> None:
    server = openai(Turn(Call("nothing_like_it", {})), Turn(Say("I see.")))
    tools = [Tool.from_schema(name, "", {"type": "object"}, Gate().tool) for name in ("first", "second")]
    async with scripted(server, tools=tools) as (_, _, session):
        assert (await session.ask("Do it.")).status == "complete"
    assert "There is no tool nothing_like_it. Tools: first, second." in next(
        iter(results(bodies(server)[-1]).values())
    )


@SERVERS
@pytest.mark.requirement("U-06")
async def test_a_model_that_never_corrects_itself_is_asked_for_a_final_text(
    make_server: MakeServer,
) -> None:
    gate = Gate()

    def stubborn(request: dict[str, Any]) -> Turn:  # Any: a request body
        off = request.get("tool_choice") in ("none", {"type": "none"})
        return Turn(Say("I give up.")) if off else Turn(Call("work", {}))

    server = OpenAIServer(stubborn) if make_server is openai else anthropic()
    server.script = OpenAIServer(stubborn).script
    async with runtime_with(a=server, limits=RuntimeLimits(max_corrections=3)) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        answer = await session.ask("Do it.")
        assert (answer.status, answer.text, answer.rounds) == ("complete", "I give up.", 4)
        assert gate.runs == []
    assert server.refusals == []
    assert all(body.get("tools") for body in bodies(server))


@SERVERS
@pytest.mark.requirement("U-13")
async def test_at_the_round_limit_the_model_is_asked_once_more_without_tools(make_server: MakeServer) -> None:
    gate = Gate()
    gate.open("a")
    turns = [Turn(Call("work", {"name": "a"}))] * 2
    server = make_server(*turns, Turn(Say("That is all.")))
    async with scripted(server, tools=[gate.tool], limits=RuntimeLimits(max_rounds=3)) as (_, _, session):
        answer = await session.ask("Do it.")
        assert (answer.status, answer.text, answer.rounds) == ("complete", "That is all.", 3)
    choices = [body.get("tool_choice") for body in bodies(server)]
    assert choices[:2] == [None, None]
    assert choices[2] in ("none", {"type": "none"})


@SERVERS
@pytest.mark.requirement("U-13", "REQ-915-013")
async def test_calls_that_a_model_makes_while_tools_are_off_are_closed_and_not_run(
    make_server: MakeServer,
) -> None:
    gate = Gate()
    gate.open("a")
    turns = [Turn(Call("work", {"name": "a"}))] * 2
    server = make_server(*turns)
    async with scripted(server, tools=[gate.tool], limits=RuntimeLimits(max_rounds=2)) as (_, _, session):
        assert (await session.ask("Do it.")).status == "complete"
        assert gate.runs == ["a"]
        assert (await session.ledger()).interactions()[-1].reason == "never_started"
        assert (await session.ask("And?")).status == "complete"
    assert_paired(bodies(server)[-1])


@pytest.mark.requirement("REQ-915-008")
async def test_a_call_that_is_not_approved_is_denied_and_the_model_sees_the_denial() -> None:
    runs: list[str] = []

    @tool(approval="ask")
    async def remove(name: str) -> str:
        """Remove something."""
        runs.append(name)
        return "gone"

    def approve(call: ToolCall) -> bool:
        if call.arguments["name"] == "x":
            raise RuntimeError("nobody is there to ask")
        return call.arguments["name"] == "b"

    names = Turn(*[Call("remove", {"name": name}) for name in "abx"])
    server, unasked = openai(names), openai(names)
    async with runtime_with(a=server, b=unasked) as runtime:
        asked = await runtime.open("a", tools=[remove], approve=approve)
        assert (await asked.ask("Do it.")).status == "complete"
        assert runs == ["b"]
        assert [item.reason for item in (await asked.ledger()).interactions()] == ["denied", None, "denied"]
        nobody = await runtime.open("b", tools=[remove], approve=lambda call: False)
        assert (await nobody.ask("Do it.")).status == "complete"
        assert runs == ["b"]
    denied, ran, failed = results(bodies(server)[-1]).values()
    assert ran == "gone"
    assert "not approved" in denied
    assert "not approved" in failed
    assert server.refusals == unasked.refusals == []


@pytest.mark.requirement("PROMISE-9", "U-10")
@pytest.mark.parametrize(
    ("limits", "ran"), [(RuntimeLimits(), 256), (RuntimeLimits(max_calls_per_message=3), 3)]
)
async def test_all_calls_beyond_the_limit_per_batch_get_a_result(limits: RuntimeLimits, ran: int) -> None:
    gate = Gate()
    gate.open("a")
    server = openai(Turn(*[Call("work", {"name": "a"})] * (ran + 6)))
    async with scripted(server, tools=[gate.tool], limits=limits) as (_, runtime, session):
        assert (await session.ask("Do it.")).status == "complete"
        assert len(gate.runs) == ran
        events = log(runtime, session)
        scheduled = [at for at, event in enumerate(events) if isinstance(event, Scheduled)]
        assert scheduled == list(range(scheduled[0], scheduled[0] + ran + 6))
    body = bodies(server)[-1]
    assert_paired(body)
    assert len(results(body)) == ran + 6


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.requirement("PROMISE-8")
async def test_a_tool_that_exceeds_its_timeout_fails(is_async: bool) -> None:
    released = threading.Event()

    @tool(timeout=0.05, name="work")
    async def waits(name: str) -> str:
        """Wait."""
        await anyio.sleep_forever()
        return name

    @tool(timeout=0.05, name="work")
    def blocks(name: str) -> str:
        """Block."""
        released.wait(20)
        return name

    server = openai(Turn(Call("work", {"name": "a"})))
    slow: Tool[..., Any] = waits if is_async else blocks  # Any: any function
    async with scripted(server, tools=[slow]) as (_, _, session):
        try:
            assert (await session.ask("Do it.")).status == "complete"
        finally:
            released.set()
    (told,) = results(bodies(server)[-1]).values()
    assert "did not return within 0.05 s" in told


@pytest.mark.usefixtures("short_graces")
async def test_a_cancelled_call_that_waits_for_a_thread_never_starts() -> None:
    released, begun = threading.Event(), threading.Event()
    runs: list[str] = []

    def work(name: str) -> str:
        """Block."""
        runs.append(name)
        begun.set()
        released.wait(20)
        return name

    server = openai(FIVE)
    async with scripted(server, tools=[work], limits=RuntimeLimits(tool_threads=1)) as (_, _, session):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.ask, "Do it.")
            while not begun.is_set():
                await anyio.lowlevel.checkpoint()
            try:
                assert await session.cancel()
            finally:
                released.set()
        await wait_for_result(session, f"hist_tool_{1 + 'abcde'.index(runs[0])}")
        assert (await session.ask("And?")).status == "complete"
        assert len(runs) == 1
    assert_paired(bodies(server)[-1])


@pytest.mark.requirement("REQ-915-046")
async def test_canonical_ids_are_never_reused() -> None:
    gate = Gate()
    gate.open(*"abcde")
    restart = Turn(Call("work", {"name": "a"}), Call("work", {"name": "b"}), ids="restart")
    server = openai(restart, Turn(Say("one")), restart, Turn(Say("two")))
    async with scripted(server, tools=[gate.tool]) as (_, _, session):
        await session.ask("Do it.")
        await session.ask("Again.")
        ledger = await session.ledger()
        assert [item.call_id for item in ledger.interactions()] == [f"hist_tool_{n}" for n in (1, 2, 3, 4)]
    assert_paired(bodies(server)[-1])
