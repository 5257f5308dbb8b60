"""The number of messages that actors exchange for an ask, counted by the kernel."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from actors import SwitchOutcome, tool
from actors.core.log.call_events import Returned
from actors.core.log.events import Configured, SwitchApplied, SwitchQueued
from actors.core.values.identity import CallId
from actors.kernel import Context
from actors.kernel.cell import Cell
from actors.kernel.message import Command
from actors.ledger.ledger_actor import Record
from actors.renderer.renderer_actor import AdoptedLanes
from actors.runtime.runtime import Runtime
from actors.session.held_changes import HeldChanges
from actors.session.inflight import SessionLedger
from actors.testing import Call, Say, Turn
from tests.runtime_support import Gate, log, openai, runtime_with
from tests.scripted import scripted

pytestmark = pytest.mark.anyio

REQUEST = ["Render", "SealResults", "Append", "Generate"]
BATCH = ["RunBatch", "Record", "Append", "Record", "Append"]
PLAIN = ["Submit", *REQUEST, "Append", "Finished"]
WITH_A_TOOL = ["Submit", *REQUEST, *BATCH, *REQUEST, "Append", "Finished"]


@tool
def look(name: str) -> str:
    """Look something up."""
    return f"{name} is there"


@contextmanager
def collect_messages(monkeypatch: pytest.MonkeyPatch, runtime: Runtime) -> Iterator[list[str]]:
    """Collect the types of the messages that actors handle in the block, in order.

    Raises:
        AssertionError: The kernel counted a different number of messages.
    """
    messages: list[str] = []
    handle = Cell.handle

    def collect(cell: Cell[Any], command: Command) -> None:  # Any: actors of every protocol
        messages.append(type(command).__name__)
        handle(cell, command)

    system = runtime._system
    with monkeypatch.context() as patch:
        patch.setattr(Cell, "handle", collect)
        before = system.counts()
        yield messages
        after = system.counts()
    assert (after.sent - before.sent, after.handled - before.handled) == (len(messages), len(messages))


async def test_an_ask_without_tools_takes_seven_actor_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scripted("openai_chat", Turn(Say("One.")), Turn(Say("Two."))) as (_, runtime, session):
        for text in ("One.", "Two."):
            with collect_messages(monkeypatch, runtime) as messages:
                assert (await session.ask("Go on.")).text == text
            assert messages == PLAIN
            assert len(messages) == 7


async def test_an_ask_with_a_tool_takes_sixteen_actor_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Turn(Say("Wait."), Call("look", {"name": "a"}))
    async with runtime_with(a=openai(calls, Turn(Say("One.")), calls, Turn(Say("Two.")))) as runtime:
        session = await runtime.open("a", tools=[look])
        for text in ("One.", "Two."):
            with collect_messages(monkeypatch, runtime) as messages:
                assert (await session.ask("Look.")).text == text
            assert messages == WITH_A_TOOL
            assert len(messages) == 16


async def test_a_result_that_arrives_between_asks_costs_one_more_render(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with scripted("openai_chat", Turn(Say("One.")), Turn(Say("Two."))) as (_, runtime, session):
        await session.ask("Go on.")
        await session._refs.ledger.ask(Record((Returned(CallId("late")),)))
        with collect_messages(monkeypatch, runtime) as messages:
            assert (await session.ask("Go on.")).text == "Two."
    assert messages == ["Submit", "Render", "SealResults", *PLAIN[1:]]


async def test_the_session_keeps_the_newest_snapshot_of_its_ledger() -> None:
    async with scripted("openai_chat") as (_, _, session):
        ref = session._refs.ledger
        view = SessionLedger(ref, await session.ledger())
        first = (await ref.ask(Record((Returned(CallId("one")),)))).snapshot
        second = (await ref.ask(Record((Returned(CallId("two")),)))).snapshot
        view.keep_newer(second)
        view.keep_newer(first)
        assert view.snapshot is second
        assert await view.query() == second.ledger


async def test_the_memory_use_of_a_session_includes_a_lane_once_the_lane_is_sent() -> None:
    calls = Turn(Say("Wait."), Call("look", {"name": "a"}))
    async with runtime_with(a=openai(calls, Turn(Say("One.")), Turn(Say("Two.")))) as runtime:
        session = await runtime.open("a", tools=[look])
        for text in ("One.", "Two."):
            assert (await session.ask("Look.")).text == text
            counted = session._lifecycle.memory_use.lanes
            lanes = await session._refs.renderer.ask(AdoptedLanes())
            assert counted == sum(lane.size for lane in lanes.values()) > 0


async def test_changes_queued_during_an_ask_are_applied_together_at_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = Gate()
    working = Turn(Call("work", {"name": "a"}))
    async with runtime_with(a=openai(working, Turn(Say("One."))), b=openai()) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        with collect_messages(monkeypatch, runtime) as messages:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(session.ask, "Work.")
                await gate.started("a")
                assert await session.switch("b") == SwitchOutcome("b", "queued", 1)
                assert await session.configure(system="Be brief.") == SwitchOutcome("a", "queued", 1)
                gate.open("a")
        assert (session.target, (await session.history()).system) == ("b", "Be brief.")
        settled = log(runtime, session)[-2:]
    assert [type(event) for event in settled] == [Configured, SwitchApplied]
    changes = ["Switch", "Append", "Configure"]
    batch = ["RunBatch", "Record", "Append", *changes, "Record", "Append"]
    end = ["Append", "MarkStale", "Append", "Append", "Finished"]
    assert messages == ["Submit", *REQUEST, *batch, *REQUEST, *end]


async def test_a_switch_just_before_the_end_of_an_ask_is_applied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settle, contexts = HeldChanges.apply_waiting, list[Context[Any]]()  # Any: as above
    has_settled = anyio.Event()

    async def hold_after_settling(changes: HeldChanges, context: Context[Any]) -> None:  # Any: as above
        monkeypatch.setattr(HeldChanges, "apply_waiting", settle)
        await settle(changes, context)
        context.hold_messages()
        contexts.append(context)
        has_settled.set()
        await until_queued(context, 1)

    monkeypatch.setattr(HeldChanges, "apply_waiting", hold_after_settling)
    async with runtime_with(a=openai(Turn(Say("One."))), b=openai()) as runtime:
        session = await runtime.open("a")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.ask, "Go on.")
            await has_settled.wait()
            tasks.start_soon(session.switch, "b")
            await until_queued(contexts[0], 2)  # the switch, then `Finished`
            contexts[0].release_messages()
        assert session.target == "b"
        held = [type(event) for event in log(runtime, session)[-2:]]
    assert held == [SwitchQueued, SwitchApplied]


async def until_queued(context: Context[Any], count: int) -> None:  # Any: actors of every protocol
    """Wait until `count` messages are in an actor's mailbox."""
    while context.ref.waiting < count:
        await anyio.lowlevel.checkpoint()
