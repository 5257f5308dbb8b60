"""Passivation and activation: sessions give up their actors when idle, without any visible effect."""

import json
from collections.abc import Awaitable, Callable, Sequence

import anyio
import anyio.lowlevel
import pytest

from actors.config import RuntimeLimits
from actors.core.log.events import Closed, SwitchApplied
from actors.core.values.content import Message, Text, ToolCall, ToolResult
from actors.errors import SessionClosed
from actors.journal.storage import Storage
from actors.runtime.handle import Session
from actors.runtime.runtime import Runtime
from actors.testing import Call, Say, Think, Turn
from tests.runtime.test_rebuild import assert_goes_on, crash
from tests.runtime.test_recovery_of_sessions import HeldStorage
from tests.runtime_support import (
    Gate,
    actors,
    anthropic,
    assert_paired,
    assert_prefixes,
    assert_rebuilds,
    bodies,
    log,
    openai,
    runtime_with,
    wait_for_result,
)
from tests.scripted import scripted
from tests.session.test_cancel import ONE, cancel_when, shielded_tool

pytestmark = pytest.mark.anyio

FEW = RuntimeLimits(max_active_sessions=1)
WORK = Turn(Think("hm"), Call("work", {"name": "a"}), Call("work", {"name": "b"}))
SAID = [Message("user", [Text("Read it.")]), Message("assistant", [ToolCall("hist_tool_1", "read")])]


def active(runtime: Runtime) -> set[str]:
    """Return the ids of the sessions that have actors."""
    return {name.split("/")[0] for name in actors(runtime) if name.endswith("/session")}


async def use(session: Session, times: int = 1) -> None:
    """Read a session's history, which activates it, and let its actors become idle."""
    for _ in range(times):
        await session.history()
        await anyio.lowlevel.checkpoint()


async def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until the condition is true."""
    while not condition():
        await anyio.lowlevel.checkpoint()


async def test_a_session_gets_its_actors_when_it_is_first_used() -> None:
    async with runtime_with(a=openai()) as runtime:
        session, other = await runtime.open("a"), await runtime.open("a")
        assert active(runtime) == set()
        assert (await session.ask("Hello?")).status == "complete"
        assert active(runtime) == {session.id}
        await other.close()
        assert active(runtime) == {session.id}
        assert isinstance(log(runtime, other)[-1], Closed)


async def test_the_most_recently_used_idle_sessions_keep_their_actors() -> None:
    async with runtime_with(limits=RuntimeLimits(max_active_sessions=2), a=openai()) as runtime:
        sessions = [await runtime.open("a", id=f"s{number}") for number in range(5)]
        for session in sessions:
            assert (await session.ask("Hello?")).status == "complete"
        await use(sessions[3], 2)
        await use(sessions[0], 2)
        assert active(runtime) == {"s3", "s0"}


@pytest.mark.requirement("PROMISE-3", "PROMISE-6", "PROMISE-7")
@pytest.mark.parametrize("kept", [True, False])
async def test_sessions_continue_normally_after_passivation(*, kept: bool) -> None:
    gate = Gate()
    gate.open("a", "b")
    one, two = anthropic(WORK, Turn(Say("Done.")), Turn(Say("And more."))), openai(WORK, Turn(Say("Here.")))
    async with runtime_with(limits=FEW, one=one, two=two) as runtime:
        session, other = await runtime.open("one", tools=[gate.tool]), await runtime.open("two")
        for target in ("one", "two", "one"):
            await session.switch(target)
            assert (await session.ask("Do it.")).binding.backend == target
            await use(other, 3)
            assert active(runtime) == {other.id}
            residency = runtime._running_host().residency
            if not kept:
                residency.evict_replays(0)
            assert set(residency.folded) == ({session.id} if kept else set())
        assert len((await session.ledger()).interactions()) == 4
    assert one.refusals == two.refusals == []
    assert_prefixes(one)
    for body in (*bodies(one), *bodies(two)):
        assert_paired(body)


@pytest.mark.requirement("PROMISE-3", "PROMISE-6")
async def test_passivation_and_eviction_do_not_change_the_bytes_sent() -> None:
    async def keep_active(_: Session) -> None:
        """Leave the session active."""

    async def passivate(session: Session) -> None:
        await wait_until(session._lifecycle.passivate)
        assert session._lifecycle.state == "folded"

    async def evict(session: Session) -> None:
        await passivate(session)
        session._lifecycle.evict()
        assert session._lifecycle.state == "stored"

    messages = [*SAID, Message("tool", [ToolResult("hist_tool_1", "text")])]
    bodies = [await bodies_sent(between, messages=messages) for between in (keep_active, passivate, evict)]
    assert [len(each) for each in bodies] == [8, 8, 8]
    assert bodies[0] == bodies[1] == bodies[2]


async def bodies_sent(
    between: Callable[[Session], Awaitable[None]],
    storage: Storage | None = None,
    messages: Sequence[Message] = (),
) -> list[bytes]:
    """Return the bodies that a conversation with two providers sends, with `between` called after each ask."""
    gate = Gate()
    gate.open("a", "b")
    one = anthropic(WORK, Turn(Think("so"), Say("Done.")), WORK, Turn(Say("And more.")))
    two = openai(WORK, Turn(Say("Here.")), WORK, Turn(Say("There.")))
    async with runtime_with(storage=storage, one=one, two=two) as runtime:
        session = await runtime.open(
            "one", tools=[gate.tool], system="Be brief.", messages=messages, id="same"
        )
        for target in ("one", "two", "one", "two"):
            await session.switch(target)
            assert (await session.ask("Do it.")).binding.backend == target
            await between(session)
    # the name of a lane contains the address of its server
    said = [json.loads(request.body) for server in (one, two) for request in server.requests]
    assert all(len(body.pop("prompt_cache_key", "1" * 32)) == 32 for body in said)
    return [json.dumps(body).encode() for body in said]


async def test_an_imported_history_is_readable_before_and_after_passivation() -> None:
    messages = [*SAID, Message("tool", [ToolResult("hist_tool_1", "text")])]
    async with runtime_with(limits=FEW, a=openai()) as runtime:
        session, other = await runtime.open("a", messages=messages), await runtime.open("a")
        for _ in range(2):
            assert list(await session.history()) == messages
            assert [item.call_id for item in (await session.ledger()).interactions()] == ["hist_tool_1"]
            await use(other, 3)
            assert active(runtime) == {other.id}


async def test_a_session_with_a_running_ask_keeps_its_actors() -> None:
    gate = Gate()
    async with runtime_with(limits=FEW, a=openai(ONE, Turn(Say("Done."))), b=openai()) as runtime:
        session, other = await runtime.open("a", tools=[gate.tool]), await runtime.open("b")
        async with session.stream("Do it.") as events:
            await gate.started("a")
            await use(other, 5)
            assert not session._lifecycle.passivate()
            assert active(runtime) == {session.id, other.id}
            gate.open("a")
            assert [event.type async for event in events][-1] == "complete"
        await use(other, 3)
        assert active(runtime) == {other.id}


@pytest.mark.requirement("PROMISE-2")
@pytest.mark.usefixtures("short_graces")
async def test_a_session_keeps_its_actors_while_a_tool_still_runs_after_a_cancel() -> None:
    begun, released = anyio.Event(), anyio.Event()
    async with scripted("openai_chat", ONE, tools=[shielded_tool(begun, released)]) as (server, _, session):
        await cancel_when(session, begun.wait)
        await anyio.wait_all_tasks_blocked()
        kept = not session._lifecycle.passivate()
        released.set()  # before any assertion, so that the tool always ends
        assert kept
        assert (await wait_for_result(session, "hist_tool_1")).completion is not None
        await wait_until(session._lifecycle.passivate)
        assert (await wait_for_result(session, "hist_tool_1")).completion is not None
        await assert_goes_on(session, server)


async def test_a_session_keeps_its_actors_while_its_event_is_written() -> None:
    storage = HeldStorage(SwitchApplied)
    async with runtime_with(a=openai(), b=openai(), storage=storage) as runtime:
        session = await runtime.open("a")
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(session.switch, "b")
                await storage.begun.wait()
                scope.cancel()  # cancels the caller
        assert not session._lifecycle.passivate()
        storage.freed.set()
        await wait_until(session._lifecycle.passivate)
        assert (await session.ask("Who?")).binding.backend == "b"


@pytest.mark.alternating
@pytest.mark.parametrize("which", ["session", "ledger", "renderer", "scheduler"])
async def test_a_session_can_be_passivated_and_activated_after_a_crash(which: str) -> None:
    server = openai(WORK, Turn(Say("Done.")))
    gate = Gate()
    gate.open("a", "b")
    async with scripted(server, tools=[gate.tool]) as (_, runtime, session):
        assert (await session.ask("Do it.")).status == "complete"
        for _ in range(2):
            await wait_until(session._lifecycle.passivate)
            await crash(session, which)
            await assert_goes_on(session, server)
        await assert_rebuilds(runtime, session)


@pytest.mark.parametrize("used", [False, True])
async def test_a_passivated_session_is_closed_when_its_runtime_exits(used: bool) -> None:
    async with scripted("openai_chat") as (_, runtime, session):
        if used:
            await session.ask("Hello?")
            await wait_until(session._lifecycle.passivate)
        runtime._registry.open.pop(session.id)  # comparing the session would activate it
    calls: list[Callable[[], Awaitable[object]]] = [lambda: session.ask("Still there?"), session.history]
    for call in calls:
        with pytest.raises(SessionClosed):
            await call()
    await session.close()


async def test_the_cache_affinity_of_a_session_survives_passivation() -> None:
    async with runtime_with(a=openai()) as runtime:
        session = await runtime.open("a")
        session._lifecycle.activate().affinity.last_requests["a"] = (1.0, 9)
        await use(session)
        await wait_until(session._lifecycle.passivate)
        assert session._lifecycle.activate().affinity.last_requests == {"a": (1.0, 9)}
