"""A session equals the fold of its log: after a crash its actors restart from the log, and no call stays open.

At its end, every runtime of these tests compares each session with its rebuilt log byte for byte
(`tests.runtime_support`).
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from actors.core.log.events import TurnEnded
from actors.core.stream_events.ask_events import ErrorEvent
from actors.core.stream_events.events import SessionEvent
from actors.errors import SessionError
from actors.kernel import Command, Ref
from actors.runtime.handle import Session
from actors.strict.server import LoopbackServer
from actors.testing import Call, Say, Stall, Think, Turn
from actors.tools import tool
from tests.commands.at_scale import spread
from tests.runtime_support import (
    Gate,
    anthropic,
    assert_paired,
    assert_prefixes,
    assert_rebuilds,
    bodies,
    gather_events,
    log,
    openai,
    runtime_with,
)
from tests.scripted import scripted

pytestmark = pytest.mark.anyio

MakeServer = Callable[..., LoopbackServer]
SERVERS = pytest.mark.parametrize("make_server", [openai, anthropic])
ACTORS = ("session", "ledger", "renderer", "scheduler")
WORK = Turn(Think("hm"), Call("work", {"name": "a"}), Call("work", {"name": "b"}))


class UnknownCommand(Command, frozen=True):
    """A command that crashes its receiver, because no actor handles it."""


async def crash(session: Session, which: str) -> None:
    """Crash one of a session's actors."""
    refs: dict[str, Ref[Any]] = {  # Any: the command is wrong for every actor
        "session": session._session,
        "ledger": session._refs.ledger,
        "renderer": session._refs.renderer,
        "scheduler": session._refs.scheduler,
    }
    await refs[which].send(UnknownCommand())


async def assert_goes_on(session: Session, server: LoopbackServer) -> None:
    status = ""
    while not status:
        with suppress(SessionError):  # the session has just restarted
            status = (await session.ask("And now?")).status
    assert status == "complete"
    assert all(item.status != "pending" for item in (await session.ledger()).interactions())
    assert server.refusals == []
    for body in bodies(server):
        assert_paired(body)
    assert_prefixes(server)


@SERVERS
@pytest.mark.parametrize("which", ACTORS)
@pytest.mark.requirement("REQ-915-046", "PROMISE-1", "PROMISE-7", "PROMISE-8")
async def test_an_actor_crash_interrupts_the_turn_and_the_next_turn_succeeds(
    make_server: MakeServer, which: str
) -> None:
    gate = Gate()
    gate.open("a")
    async with scripted(make_server(WORK), tools=[gate.tool]) as (server, runtime, session):
        async with session.stream("Do it.") as stream:
            await gate.started("a", "b")
            await crash(session, which)
            events = [event async for event in stream]
        assert isinstance(events[-1], ErrorEvent)
        assert "restarted" in events[-1].result.error
        ends = [event.status for event in log(runtime, session) if isinstance(event, TurnEnded)]
        assert ends == ["interrupted"]
        by_name = {item.arguments: item for item in (await session.ledger()).interactions()}
        assert by_name[b'{"name":"b"}'].reason == "outcome_unknown"  # type: ignore[index]  # Json is bytes
        assert gate.runs.count("b") == 1
        await assert_goes_on(session, server)
        assert gate.runs.count("b") == 1


@pytest.mark.parametrize("which", ACTORS)
@pytest.mark.requirement("REQ-915-046", "PROMISE-1", "PROMISE-8")
async def test_a_crash_at_any_moment_leaves_the_session_equal_to_its_log(
    which: str, anyio_backend_name: str
) -> None:
    """Each actor crashes at a quarter of the moments on asyncio, and at another quarter on trio."""
    quarter = ACTORS.index(which) + 2 * (anyio_backend_name == "trio")
    for number in spread(range(20), quarter):
        steps, is_late = 5 * number, (number + number // 4) % 2
        gate = Gate()
        server = anthropic(WORK, faults={1: Stall()} if is_late else {0: Stall(after_bytes=600)})
        async with scripted(server, tools=[gate.tool]) as (_, _, session):
            async with session.stream("Do it.") as stream:
                for _ in range(steps):
                    await anyio.lowlevel.checkpoint()
                await crash(session, which)
                # the crash of an actor without further queries takes a moment to be noticed
                if which != "session":
                    await anyio.lowlevel.checkpoint()
                events: list[SessionEvent] = [event async for event in stream]
            assert events[-1].type == "error"
            server.faults = {}
            gate.open("a", "b")
            await assert_goes_on(session, server)


@pytest.mark.requirement("PROMISE-8", "PROMISE-9")
async def test_queued_asks_run_after_a_crash() -> None:
    gate = Gate()
    async with scripted("openai_chat", WORK, tools=[gate.tool]) as (server, _, session):
        async with session.stream("First.") as first, session.stream("Second.") as second:
            await gate.started("a", "b")
            await crash(session, "session")
            assert [event async for event in first][-1].type == "error"
            assert [event async for event in second][-1].type == "complete"
        said = [message.text for message in await session.history() if message.role == "user"]
        assert said == ["First.", "Second."]
        await assert_goes_on(session, server)


@pytest.mark.requirement("PROMISE-2", "PROMISE-7")
async def test_a_result_that_returns_after_a_crash_is_recorded() -> None:
    begun, released = anyio.Event(), anyio.Event()

    async def work(name: str) -> str:
        """Work, shielded from cancellation."""
        with anyio.CancelScope(shield=True):
            begun.set()
            await released.wait()
        return f"{name} is done"

    server = openai(Turn(Call("work", {"name": "a"})))
    async with scripted(server, tools=[work]) as (_, _, session):
        async with session.stream("Do it.") as stream:
            await begun.wait()
            await crash(session, "session")
            assert [event async for event in stream][-1].type == "error"
        released.set()
        while (await session.ledger()).interactions()[0].completion is None:
            await anyio.lowlevel.checkpoint()
        await assert_goes_on(session, server)


@pytest.mark.requirement("PROMISE-8")
async def test_a_crash_of_one_session_does_not_affect_another_session() -> None:
    gate = Gate()
    async with runtime_with(a=openai(WORK), b=openai(WORK, Turn(Say("Done.")))) as runtime:
        one = await runtime.open("a", tools=[gate.tool])
        two = await runtime.open("b", tools=[gate.tool])
        async with one.stream("Do it.") as first, two.stream("Do it.") as second:
            await gate.started("a", "b")
            await crash(one, "ledger")
            assert [event async for event in first][-1].type == "error"
            gate.open("a", "b")
            assert [event async for event in second][-1].type == "complete"


@pytest.mark.requirement("REQ-915-046", "PROMISE-3")
async def test_the_state_of_a_session_after_switches_and_cancels_equals_its_log() -> None:
    gate = Gate()
    gate.open("a", "b")
    one, two = openai(*[WORK, Turn(Say("one"))] * 6), anthropic(*[WORK, Turn(Think("x"), Say("two"))] * 6)
    async with runtime_with(a=one, b=two) as runtime:
        session = await runtime.open("a", tools=[gate.tool], system="Be brief.")
        for number in range(8):
            await session.switch("ab"[number % 2])
            async with session.stream(f"Turn {number}") as events:
                if number % 3 == 1:
                    await session.cancel()
                if number % 4 == 2:
                    await crash(session, "session")
                _ = [event async for event in events]
            await assert_rebuilds(runtime, session)
        assert (await gather_events(session, "Last."))[-1].type == "complete"
    assert one.refusals == two.refusals == []
    assert_prefixes(one)
    assert_prefixes(two)


@pytest.mark.requirement("PROMISE-8")
async def test_a_crash_of_a_provider_actor_fails_only_its_running_requests() -> None:
    async with scripted(openai(Turn(Say("Here.")), faults={0: Stall()})) as (server, runtime, session):
        async with session.stream("Do it.") as events:
            while not server.received:
                await anyio.lowlevel.checkpoint()
            (provider,) = runtime._backends.providers.actors.values()
            await provider.send(UnknownCommand())  # type: ignore[arg-type]  # crashes the actor
            assert [event async for event in events][-1].type == "error"
        assert (await session.ask("Again.")).text == "Here."


@pytest.mark.requirement("PROMISE-8")
async def test_a_provider_actor_that_ended_is_replaced() -> None:
    async with scripted("openai_chat") as (_, runtime, session):
        assert (await session.ask("Hello.")).status == "complete"
        ((binding, first),) = runtime._backends.providers.actors.items()
        ended = anyio.Event()
        runtime._system.watch(first, ended.set)
        await runtime._system.stop(first)
        await ended.wait()
        assert (await session.ask("Hello.")).status == "complete"
        assert runtime._backends.providers.actors[binding] is not first


@pytest.mark.usefixtures("short_graces")
@pytest.mark.parametrize("which", ["session", "scheduler"])
async def test_a_tool_that_outlives_a_crash_is_quarantined_until_it_ends(which: str) -> None:
    begun, release = anyio.Event(), anyio.Event()

    @tool
    async def work(name: str) -> str:
        """Ignore every cancellation."""
        begun.set()
        with anyio.CancelScope(shield=True):
            await release.wait()
        return name

    async with runtime_with(a=anthropic(Turn(Call("work", {"name": "a"})), Turn(Say("Done.")))) as runtime:
        session = await runtime.open("a", tools=[work])
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(session.ask, "Go.")
                await begun.wait()
                await crash(session, which)
            while runtime._quarantine.by_tool() != {"work": 1}:
                await anyio.lowlevel.checkpoint()
            release.set()
            while runtime._quarantine.size:
                await anyio.lowlevel.checkpoint()
