"""`configure`: when a new system prompt or new tools take effect, which events report them, and the requests sent."""

from typing import Any

import anyio
import pytest

from actors import SwitchOutcome, tool
from actors.config import PoolSettings
from actors.core.log.events import AskStarted, Configured, EpochBegan, RequestSent
from actors.core.stream_events.events import ConfiguredEvent, SessionEvent
from actors.errors import ConfigError, ReentrantCall, SessionError, ToolDefinitionError
from actors.runtime.handle import Session
from actors.strict.server import LoopbackServer
from actors.testing import Call, Say, Script, Think, Turn
from actors.tools import Tool
from tests.runtime_support import Gate, anthropic, assert_prefixes, bodies, log, openai, results, runtime_with
from tests.scripted import scripted
from tests.session.test_bound_reasoning import sealed_thoughts
from tests.strict_hosts import strict_host
from tests.tools.test_toolsets import Bench

pytestmark = pytest.mark.anyio

LOOK = Turn(Think("hm"), Call("look", {}))
DONE = Turn(Think("so"), Say("Done."))


@tool
async def look() -> str:
    """Look."""
    return "seen"


@tool
async def find() -> str:
    """Find."""
    return "found"


def many_tools(count: int) -> list[Tool[..., Any]]:  # Any: any function
    async def work() -> str:
        return "ok"

    return [Tool.from_schema(f"work_{number}", "Works.", {"type": "object"}, work) for number in range(count)]


def declared_tools(server: LoopbackServer) -> list[list[str]]:
    """Return the names of the tools in each request."""
    found = []
    for body in bodies(server):
        listed = [each.get("function", each) for each in body.get("tools") or ()]
        found.append([each["name"] for each in listed])
    return found


def epochs(events: list[object]) -> list[str]:
    return [event.reason for event in events if isinstance(event, EpochBegan)]


def event_types(events: list[SessionEvent], *of: str) -> list[str]:
    return [event.type for event in events if event.type in of]


@pytest.mark.requirement("PROMISE-1", "PROMISE-3", "PROMISE-4")
@pytest.mark.parametrize("name", ["anthropic", "bedrock", "openai_responses"])
async def test_changed_tools_begin_an_epoch_if_reasoning_is_bound_to_them(name: str) -> None:
    server = strict_host(name, Script([LOOK, DONE, DONE, LOOK, DONE]), bound=True, interleaved=True)
    async with runtime_with(here=server) as runtime:
        session = await runtime.open("here", tools=[look], system="Be brief.")
        await session.ask("Look.")
        await session.ask("Again?")
        assert await session.configure(tools=[find, look], system=None) == SwitchOutcome("here", "applied")
        assert (await session.ask("And now?")).text == "Done."
        events = log(runtime, session)
        kinds = [type(event) for event in events]
        (at,) = [number for number, event in enumerate(events) if isinstance(event, Configured)]
        assert epochs(list(events)) == ["configured"]
        assert kinds.index(EpochBegan, at) < kinds.index(RequestSent, at)
        assert events[at] == Configured(None, ("find", "look"), events[at].preamble)  # type: ignore[union-attr]
    assert server.refusals == []
    assert [sealed_thoughts(body) for body in bodies(server)] == [0, 1, 2, 0, 1]


async def test_changed_tools_keep_the_lane_if_no_reasoning_is_bound_to_them() -> None:
    server = openai(LOOK, DONE, Turn(Call("look", {})), DONE)
    async with scripted(server, tools=[look]) as (_, runtime, session):
        await session.ask("Look.")
        await session.configure(tools=[find])
        assert (await session.ask("And now?")).text == "Done."
        assert epochs(list(log(runtime, session))) == []
    assert_prefixes(server)
    assert declared_tools(server) == [["look"]] * 2 + [["find"]] * 2
    first, second = results(
        bodies(server)[-1]
    ).values()  # of the recorded call, and of the call of a removed tool
    assert first == "seen"
    assert "unknown" in second.lower()
    assert "find" in second


async def configure_during_ask(
    session: Session, gate: Gate, *changes: dict[str, object]
) -> tuple[list[SessionEvent], list[object]]:
    """Configure the session while a tool runs; return the ask's events and the outcomes."""
    async with session.stream("Do it.") as events:
        await gate.started("a")
        outcomes: list[object] = [await session.configure(**change) for change in changes]  # type: ignore[arg-type]
        gate.open("a")
        return [event async for event in events], outcomes


@pytest.mark.requirement("PROMISE-5", "PROMISE-11")
async def test_changes_during_an_ask_are_queued_and_the_latest_of_each_kind_applies() -> None:
    gate = Gate()
    server = anthropic(Turn(Think("hm"), Call("work", {"name": "a"})), DONE, DONE)
    async with runtime_with(here=server) as runtime:
        session = await runtime.open("here", tools=[gate.tool], system="One.")
        changes: tuple[dict[str, object], ...] = ({"tools": [look]}, {"system": "Two."}, {"system": "Three."})
        events, outcomes = await configure_during_ask(session, gate, *changes)
        assert outcomes == [SwitchOutcome("here", "queued", 1)] * 3
        assert event_types(events, "turn_ended", "configured") == ["turn_ended", "configured"]
        assert (await session.ask("And?")).status == "complete"
        (event,) = [event for event in log(runtime, session) if isinstance(event, Configured)]
        assert (event.system, event.tools) == ("Three.", ("look",))
        told = [each async for each in session.events(follow=False)]
        assert [each.digest for each in told if isinstance(each, ConfiguredEvent)] == [event.preamble]
        assert (await session.history()).system == "Three."
    assert server.refusals == []
    assert declared_tools(server) == [["work"], ["work"], ["look"]]
    assert ["Three." in str(body["system"]) for body in bodies(server)] == [False, False, True]


async def test_a_turn_that_waits_for_its_caller_keeps_its_tools() -> None:
    server = openai(Turn(Call("outside", {})), DONE, DONE)
    outside = Tool.external("outside", "Elsewhere.", {"type": "object"})
    async with runtime_with(here=server) as runtime:
        session = await runtime.open("here", tools=[outside])
        (call,) = (await session.ask("Go.")).pending_calls
        assert await session.configure(tools=[look]) == SwitchOutcome("here", "queued", 1)
        assert session._lifecycle.passivate()
        await session.ask(results={call.id: "done"})
        await session.ask("And?")
    assert declared_tools(server) == [["outside"], ["outside"], ["look"]]


async def test_a_configure_call_with_too_many_tools_is_rejected_and_changes_nothing() -> None:
    bench = Bench()
    server = openai(DONE)
    async with runtime_with(here=server) as runtime:
        session = await runtime.open("here", tools=[look])
        with pytest.raises(
            ToolDefinitionError, match="has 130 tools, but backend 'here' accepts at most 128"
        ):
            await session.configure(tools=[*many_tools(129), bench.source()])
        assert bench.notes == ["bench opened", "bench closed"]
        with pytest.raises(ConfigError, match="system= takes a string, not int"):
            await session.configure(system=1)  # type: ignore[arg-type]
        await session.ask("Go.")
        assert not [event for event in log(runtime, session) if isinstance(event, Configured)]
    assert declared_tools(server) == [["look"]]


async def change_toolset(bench: Bench, runtime: object, *names: str) -> None:
    """Change the tools of a toolset, and wait until the runtime has read them."""
    (owner,) = runtime._running_host().toolsets._owners  # type: ignore[attr-defined]
    version = owner.version
    bench.change(*names)
    await owner._changes.wait_until(lambda: owner.version > version)


@pytest.mark.requirement("PROMISE-1", "PROMISE-3", "PROMISE-4")
async def test_new_tools_of_a_toolset_are_logged_before_the_first_request() -> None:
    bench = Bench()
    server = strict_host(
        "anthropic", Script([Turn(Think("hm"), Call("work", {})), DONE, DONE]), bound=True, interleaved=True
    )
    async with scripted(server, tools=[bench.source()]) as (_, runtime, session):
        await session.ask("Work.")
        await change_toolset(bench, runtime, "work", "later")
        async with session.stream("And now?") as events:
            told = [event async for event in events]
        assert event_types(told, "configured", "ask_started", "lane_rewritten") == [
            "configured",
            "ask_started",
            "lane_rewritten",
        ]
        events_of = log(runtime, session)
        (at,) = [number for number, event in enumerate(events_of) if isinstance(event, Configured)]
        assert isinstance(events_of[at + 1], AskStarted)
        assert epochs(list(events_of)) == ["configured"]
    assert declared_tools(server) == [["work"], ["work"], ["work", "later"]]


async def test_an_ask_fails_if_a_toolset_exceeds_its_backends_limit() -> None:
    bench = Bench()
    server = openai(DONE)
    async with runtime_with(here=server) as runtime:
        session = await runtime.open("here", tools=[bench.source()])
        await change_toolset(bench, runtime, *[f"work_{number}" for number in range(129)])
        result = await session.ask("Go.", check=False)
        assert result.status == "failed"
        assert "129 tools, but backend 'here' accepts at most 128" in result.error
        assert server.received == 0
        await change_toolset(bench, runtime, "work")
        assert (await session.ask("Go.")).status == "complete"


async def test_a_pool_continues_with_a_member_that_accepts_the_number_of_tools() -> None:
    bench = Bench()
    few, more = openai(DONE), anthropic(DONE)
    pools = {"both": PoolSettings(members=("few", "more"))}
    async with runtime_with(few=few, more=more, pools=pools) as runtime:
        session = await runtime.open("both", tools=[bench.source()])
        await change_toolset(bench, runtime, *[f"work_{number}" for number in range(129)])
        result = await session.ask("Go.")
        assert (result.status, result.binding.backend) == ("complete", "more")
    assert (few.received, more.received) == (0, 1)


async def test_toolsets_are_opened_for_a_change_and_closed_when_unused() -> None:
    one, two, three = Bench("one"), Bench("two"), Bench("three")
    gate = Gate()
    server = openai(Turn(Call("work", {"name": "a"})), DONE)
    async with scripted(server, tools=[gate.tool, one.source()]) as (_, runtime, session):
        changes: tuple[dict[str, object], ...] = ({"tools": [two.source()]}, {"tools": [three.source()]})
        await configure_during_ask(session, gate, *changes)
        toolsets = runtime._running_host().toolsets
        with anyio.fail_after(5):
            await toolsets._changes.wait_until(lambda: len(toolsets._owners) == 1)
        assert one.notes == ["one opened", "one closed"]
        assert two.notes == ["two opened", "two closed"]
        assert three.notes == ["three opened"]
        await session.close()
    assert three.notes == ["three opened", "three closed"]


async def test_a_configure_call_cancelled_while_a_toolset_opens_changes_nothing() -> None:
    bench = Bench()
    bench.holds = anyio.Event()
    async with scripted("openai_chat", DONE, tools=[look]) as (_, runtime, session):
        async with anyio.create_task_group() as tasks:
            with anyio.CancelScope() as scope:

                async def leave() -> None:
                    await bench.opening.wait()
                    scope.cancel()

                tasks.start_soon(leave)
                await session.configure(tools=[bench.source()])
        assert scope.cancelled_caught
        assert session._lifecycle.tools.names == ("look",)
        assert not [event for event in log(runtime, session) if isinstance(event, Configured)]


async def test_a_tool_cannot_configure_the_session_that_waits_for_it() -> None:
    refused: list[SessionError] = []

    @tool
    async def change() -> str:
        try:
            await session.configure(system="Mine.")
        except ReentrantCall as error:
            refused.append(error)
        return "done"

    async with scripted("openai_chat", Turn(Call("change", {})), DONE, tools=[change]) as (_, _, session):
        await session.ask("Go.")
    assert len(refused) == 1


async def test_a_preview_shows_the_start_of_the_next_epoch() -> None:
    server = strict_host("anthropic", Script([LOOK, DONE, DONE]), bound=True, interleaved=True)
    async with runtime_with(here=server) as runtime:
        session = await runtime.open("here", tools=[look])
        await session.ask("Look.")
        assert b"signature" in (await session.preview("here")).body
        await session.configure(tools=[find])
        shown = await session.preview("here")
        assert (b"signature" in shown.body, shown.kept) == (False, 0)
        assert epochs(list(log(runtime, session))) == []


async def test_configuring_the_same_tools_again_is_logged_but_begins_no_epoch() -> None:
    server = strict_host("anthropic", Script([LOOK, DONE, DONE]), bound=True, interleaved=True)
    async with scripted(server, tools=[look]) as (_, runtime, session):
        await session.ask("Look.")
        await session.configure(tools=[look])
        await session.ask("Again?")
        assert epochs(list(log(runtime, session))) == []
        assert len([event for event in log(runtime, session) if isinstance(event, Configured)]) == 1
    assert [sealed_thoughts(body) for body in bodies(server)] == [0, 1, 2]
