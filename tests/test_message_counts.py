"""The messages that actors exchange for an ask, counted where the kernel handles them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from actors import tool
from actors.core.log.events import Returned
from actors.core.values.identity import CallId
from actors.kernel.cell import Cell
from actors.kernel.message import Command
from actors.ledger.ledger_actor import Record
from actors.renderer.renderer_actor import AdoptedLanes
from actors.runtime.runtime import Runtime
from actors.session.session_ledger import SessionLedger
from actors.testing import Call, Say, Turn
from tests.runtime_support import hosting, openai

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
def handled(monkeypatch: pytest.MonkeyPatch, runtime: Runtime) -> Iterator[list[str]]:
    """Collect the types of the messages that actors handle in the block, in order.

    Raises:
        AssertionError: The kernel counted other messages than these.
    """
    messages: list[str] = []
    handle = Cell.handle

    def collect(cell: Cell[Any], command: Command) -> None:  # Any: actors of every protocol
        messages.append(type(command).__name__)
        handle(cell, command)

    system = runtime.system
    with monkeypatch.context() as patch:
        patch.setattr(Cell, "handle", collect)
        before = system.counts()
        yield messages
        after = system.counts()
    assert (after.sent - before.sent, after.handled - before.handled) == (len(messages), len(messages))


async def test_a_plain_ask_takes_seven_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    async with hosting(a=openai(Turn(Say("One.")), Turn(Say("Two.")))) as runtime:
        session = await runtime.open("a")
        for text in ("One.", "Two."):
            with handled(monkeypatch, runtime) as messages:
                assert (await session.ask("Go on.")).text == text
            assert messages == PLAIN
            assert len(messages) == 7


async def test_an_ask_with_a_tool_takes_sixteen_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Turn(Say("Wait."), Call("look", {"name": "a"}))
    async with hosting(a=openai(calls, Turn(Say("One.")), calls, Turn(Say("Two.")))) as runtime:
        session = await runtime.open("a", tools=[look])
        for text in ("One.", "Two."):
            with handled(monkeypatch, runtime) as messages:
                assert (await session.ask("Look.")).text == text
            assert messages == WITH_A_TOOL
            assert len(messages) == 16


async def test_a_result_that_came_in_between_asks_costs_one_more_render(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with hosting(a=openai(Turn(Say("One.")), Turn(Say("Two.")))) as runtime:
        session = await runtime.open("a")
        await session.ask("Go on.")
        await session._refs.ledger.ask(Record((Returned(CallId("late")),)))
        with handled(monkeypatch, runtime) as messages:
            assert (await session.ask("Go on.")).text == "Two."
    assert messages == ["Submit", "Render", "SealResults", *PLAIN[1:]]


async def test_the_session_keeps_the_newest_snapshot_of_its_ledger() -> None:
    async with hosting(a=openai()) as runtime:
        session = await runtime.open("a")
        ref = session._refs.ledger
        view = SessionLedger(ref, await session.ledger())
        first = (await ref.ask(Record((Returned(CallId("one")),)))).snapshot
        second = (await ref.ask(Record((Returned(CallId("two")),)))).snapshot
        view.note(second)
        view.note(first)
        assert view.snapshot is second
        assert await view.query() == second.ledger


async def test_a_sent_lane_counts_at_once_in_what_the_session_holds() -> None:
    calls = Turn(Say("Wait."), Call("look", {"name": "a"}))
    async with hosting(a=openai(calls, Turn(Say("One.")), Turn(Say("Two.")))) as runtime:
        session = await runtime.open("a", tools=[look])
        for text in ("One.", "Two."):
            assert (await session.ask("Look.")).text == text
            counted = session._lifecycle.holding.lanes
            lanes = await session._refs.renderer.ask(AdoptedLanes())
            assert counted == sum(lane.size for lane in lanes.values()) > 0
