"""Histories read while tools run: their calls are `running`, neither cancelled nor lost.

A session opened with a copy of the history closes the running calls, because it never learns how they end. The
original session is not affected.
"""

import json
from collections.abc import Callable

import anyio
import anyio.lowlevel
import pytest

from actors.core.check import check
from actors.core.dialects.profiles import PROFILES
from actors.core.history.history import History
from actors.core.ledger import Ledger
from actors.core.values.content import Message, ToolCall, ToolResult
from actors.core.values.identity import CallId
from actors.runtime.handle import Session
from actors.strict.server import LoopbackServer
from actors.testing import Call, Say, Turn
from actors.transcripts import encode, render
from tests.runtime_support import Gate, anthropic, bodies, openai, results, runtime_with, synthetic

pytestmark = pytest.mark.anyio

SERVERS = pytest.mark.parametrize("make_server", [openai, anthropic])
MakeServer = Callable[..., LoopbackServer]
BOTH = Turn(Say("Both."), Call("work", {"name": "a"}), Call("work", {"name": "b"}))
RUNNING = "[No result was recorded for this tool call: it is still running.]"
UNKNOWN = RUNNING.replace(
    "it is still running", "the call was started, and it is not known whether it took effect"
)


async def wait_for_first_result(session: Session, gate: Gate) -> None:
    """Wait until `b` has returned while `a` is running."""
    await gate.started("a", "b")
    gate.open("b")
    with anyio.fail_after(60):
        while (known := (await session.ledger()).interactions())[-1].status == "pending":
            await anyio.lowlevel.checkpoint()
    assert [each.reason for each in known] == ["running", None]


@SERVERS
@pytest.mark.requirement("PROMISE-13")
async def test_a_history_and_a_preview_show_running_calls(make_server: MakeServer) -> None:
    gate, server, other = Gate(), make_server(BOTH), anthropic()
    async with runtime_with(a=server, b=other) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.ask, "Do both.")
            await wait_for_first_result(session, gate)
            history, ledger = await session.history(), await session.ledger()
            previews = [await session.preview("a"), await session.preview("b")]
            gate.open("a")
    assert [result.status for message in history for result in message.results] == ["pending", "complete"]
    for preview in previews:
        assert preview.report.synthetic == (("hist_tool_1", "running"),)
        assert set(results(json.loads(preview.body)).values()) == {RUNNING, "b is done"}
        assert preview.report.faults == ()
    for dialect in PROFILES.values():
        for knows, tells in ((history, Ledger()), (history, ledger)):
            rendered = render(knows, tells, dialect)
            assert rendered.report.synthetic == (("hist_tool_1", "running"),)
            assert check(encode(rendered, model="m"), dialect) == []


@SERVERS
@pytest.mark.requirement("PROMISE-7", "PROMISE-13")
async def test_a_session_opened_with_a_history_of_running_calls_closes_the_calls(
    make_server: MakeServer,
) -> None:
    gate = Gate()
    server, copy = make_server(BOTH, Turn(Say("Done.")), Turn(Say("More."))), make_server(Turn(Say("I see.")))
    async with runtime_with(a=server, b=copy) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.ask, "Do both.")
            await wait_for_first_result(session, gate)
            taken = await session.history()
            opened = await runtime.open("b", messages=taken, tools=[gate.tool])
            assert (await opened.ask("What now?")).text == "I see."
            known = (await opened.ledger()).interactions()
            gate.open("a")
        assert (await session.ask("And?")).text == "More."
        assert (await session.ledger()).interactions()[0].completion == ToolResult(
            "hist_tool_1", "a is done", is_complete=True
        )
    assert [(each.status, each.reason) for each in known] == [
        ("unknown", "outcome_unknown"),
        ("complete", None),
    ]
    assert set(results(bodies(copy)[0]).values()) == {UNKNOWN, "b is done"}
    assert synthetic(bodies(server)[-1]) == []
    assert set(results(bodies(server)[-1]).values()) == {"a is done", "b is done"}
    assert server.refusals == copy.refusals == []


@SERVERS
@pytest.mark.requirement("PROMISE-13")
async def test_no_call_is_shown_as_lost_during_a_turn(make_server: MakeServer) -> None:
    gate = Gate()
    gate.open("a", "b")
    reasons: list[str] = []
    async with runtime_with(a=make_server(BOTH)) as runtime:
        session = await runtime.open("a", tools=[gate.tool])

        async def watch() -> None:
            while True:
                reasons.extend(reason for _, reason in (await session.preview("a")).report.synthetic)
                await anyio.lowlevel.checkpoint()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            assert (await session.ask("Do both.")).status == "complete"
            tasks.cancel_scope.cancel()
    assert set(reasons) <= {"running"}
    assert reasons


def test_appending_to_a_history_with_running_calls_keeps_the_calls_state() -> None:
    calls = ToolCall("c1", "work", {}), ToolCall("c2", "work", {})
    taken = History([Message("assistant", calls), Message("tool", [ToolResult("c1", is_complete=False)])])
    longer = taken.append(
        Message("assistant", [ToolCall("c3", "work", {})]), Message("tool", [ToolResult("c3", "x")])
    )
    for history in (taken, longer):
        known = {each.call_id: each.reason for each in history.ledger.interactions()}
        assert (known[CallId("c1")], known[CallId("c2")]) == ("outcome_unknown", "lost")
