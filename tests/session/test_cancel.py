"""Cancel in every phase of an ask: the ask ends promptly, every call is closed, the next request is accepted.

The servers stall and the tools never return, so a lost cancel would leave these asks hanging.
"""

import threading
from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from actors.core.data.record import replace
from actors.core.log.call_events import Returned, Scheduled
from actors.core.log.events import AskStarted, Opened, RequestSent, RoundEnded, TurnEnded, TurnStarted
from actors.core.stream_events.round_events import TextEvent, ToolResultsEvent
from actors.core.values.content import ToolCall
from actors.core.values.identity import Binding, CallId
from actors.kernel import Query, Ref
from actors.kernel.event_loop import event_loop
from actors.kernel.message import R, Reply, attach_reply
from actors.ledger.ledger_actor import LedgerCommand, Record, SealResults, Snapshot
from actors.renderer.renderer_actor import Render, RendererCommand
from actors.runtime.handle import Session
from actors.scheduler.scheduler_actor import BatchEnded, CloseCalls, RunBatch, StopBatch
from actors.session.session_actor import SessionActor
from actors.strict.server import LoopbackServer
from actors.testing import Call, InjectedFault, Say, Stall, Think, Turn
from actors.tools import Tool, tool
from tests.commands.at_scale import spread
from tests.runtime_support import (
    Gate,
    Tap,
    anthropic,
    assert_paired,
    assert_prefixes,
    blocks,
    bodies,
    log,
    openai,
    results,
    runtime_with,
    synthetic,
    wait_for_result,
)
from tests.scripted import scripted

pytestmark = pytest.mark.anyio

SERVERS = pytest.mark.parametrize("make_server", [openai, anthropic])
WORK = Turn(Think("hm"), Call("work", {"name": "a"}), Call("work", {"name": "b"}))
MakeServer = Callable[..., LoopbackServer]
AnyTool = Tool[..., Any]  # Any: any function


async def assert_goes_on(session: Session, server: LoopbackServer) -> None:
    """Check that every call is closed, and that the next ask completes with a result for every call."""
    history, ledger = await session.history(), await session.ledger()
    for message in history:
        for call in message.calls:
            known = ledger.get(call.id)
            assert known is not None
            assert known.status != "pending"
    assert (await session.ask("And now?")).status == "complete"
    assert server.refusals == []
    for body in bodies(server):
        assert_paired(body)
    assert_prefixes(server)


async def cancel_when(session: Session, ready: Callable[[], Any]) -> None:
    """Start an ask, cancel it after `ready()` has returned, and check that it ends as cancelled."""
    ends: list[str] = []

    async def ask() -> None:
        ends.append((await session.ask("Do it.")).status)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await ready()
        assert await session.cancel()
    assert ends == ["cancelled"]


@SERVERS
@pytest.mark.requirement("REQ-915-034", "PROMISE-10")
async def test_an_ask_cancelled_at_any_moment_ends_and_the_next_ask_is_accepted(
    make_server: MakeServer, anyio_backend_name: str
) -> None:
    """The four combinations of dialect and event loop each test a quarter of the moments."""
    quarter = 2 * (make_server is anthropic) + (anyio_backend_name == "trio")
    for number in spread(range(40), quarter):
        steps, is_late = 3 * number, (number + number // 4) % 2
        gate = Gate()
        server = make_server(WORK, faults={1: Stall()} if is_late else {0: Stall(after_bytes=40)})
        async with scripted(server, tools=[gate.tool]) as (_, _, session):
            async with session.stream("Do it.") as events:
                for _ in range(steps):
                    await anyio.lowlevel.checkpoint()
                await session.cancel()
                seen = [event async for event in events]
            assert seen[-1].type == "complete"
            server.faults = {}
            gate.open("a", "b")
            await assert_goes_on(session, server)


@pytest.mark.requirement("PROMISE-10")
async def test_cancelling_a_session_ends_the_running_ask_and_the_queued_ask_continues() -> None:
    gate = Gate()
    async with scripted("openai_chat", WORK, tools=[gate.tool]) as (server, _, session):
        async with session.stream("First.") as first, session.stream("Second.") as second:
            await gate.started("a", "b")
            assert await session.cancel()
            assert [event async for event in first][-1].result.status == "cancelled"  # type: ignore[union-attr]  # the terminal event
            assert [event async for event in second][-1].result.status == "complete"  # type: ignore[union-attr]  # the terminal event
        await assert_goes_on(session, server)


async def test_cancelling_an_idle_session_returns_false() -> None:
    async with scripted("openai_chat") as (_, _, session):
        assert not await session.cancel()


@SERVERS
@pytest.mark.requirement("REQ-915-034", "PROMISE-10")
async def test_an_ask_can_be_cancelled_before_its_connection_is_open(make_server: MakeServer) -> None:
    server, tap = make_server(Turn(Say("never"))), Tap(held=anyio.Event())
    async with runtime_with(a=server, transport=tap) as runtime:
        session = await runtime.open("a")
        await cancel_when(session, tap.begun.wait)
        assert tap.held is not None
        tap.held.set()
        await assert_goes_on(session, server)


@SERVERS
@pytest.mark.requirement("PROMISE-10")
async def test_an_ask_can_be_cancelled_before_the_first_byte_of_the_response(make_server: MakeServer) -> None:
    arrived = anyio.Event()

    def stall(number: int, _request: object) -> InjectedFault | None:
        arrived.set()
        return Stall() if number == 0 else None

    async with scripted(make_server(Turn(Say("never")), faults=stall)) as (server, _, session):
        await cancel_when(session, arrived.wait)
        await assert_goes_on(session, server)


@SERVERS
@pytest.mark.requirement("PROMISE-10")
async def test_a_cancel_in_the_middle_of_text_keeps_the_shown_text_marked_as_interrupted(
    make_server: MakeServer,
) -> None:
    text = "A long answer that is cut. " * 20
    server = make_server(Turn(Say(text)), faults={0: Stall(after_bytes=2000)})
    async with scripted(server) as (_, _, session):
        async with session.stream("Tell me.") as events:
            shown = ""
            async for event in events:
                if isinstance(event, TextEvent):
                    shown += event.text
                    await session.cancel()
        last = (await session.history())[-1]
        assert last.role == "assistant"
        assert last.text.startswith(shown[:20])
        assert "interrupted" in last.text
        await assert_goes_on(session, server)
        assert any("interrupted" in block for _, block in blocks(bodies(server)[-1]))


@SERVERS
@pytest.mark.requirement("PROMISE-10")
async def test_a_cancel_in_the_middle_of_call_arguments_drops_the_unfinished_call(
    make_server: MakeServer,
) -> None:
    turn, gate = Turn(Say("Wait."), Call("work", {"name": "x" * 4000})), Gate()
    tap = Tap(count=3500)
    server = make_server(turn, faults={0: Stall(after_bytes=4000)})
    async with runtime_with(a=server, transport=tap) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        await cancel_when(session, tap.received.wait)
        assert not any(message.calls for message in await session.history())
        gate.open("x" * 4000)
        await assert_goes_on(session, server)


@SERVERS
@pytest.mark.requirement("REQ-915-011", "REQ-915-034", "PROMISE-10")
async def test_cancelling_a_session_closes_running_tools_and_keeps_returned_results(
    make_server: MakeServer,
) -> None:
    gate = Gate()
    gate.open("a")
    async with scripted(make_server(WORK), tools=[gate.tool]) as (server, _, session):

        async def ready() -> None:
            await gate.started("b")
            await wait_for_result(session, "hist_tool_1")

        await cancel_when(session, ready)
        await assert_goes_on(session, server)
        last = bodies(server)[-1]
        assert next(iter(results(last).values())) == "a is done"
        assert len(synthetic(last)) == 1


@SERVERS
@pytest.mark.requirement("PROMISE-10")
async def test_an_ask_can_be_cancelled_between_the_tools_and_the_next_request(
    make_server: MakeServer,
) -> None:
    gate = Gate()
    gate.open("a", "b")
    async with scripted(make_server(WORK, faults={1: Stall()}), tools=[gate.tool]) as (server, _, session):
        async with session.stream("Do it.") as events:
            async for event in events:
                if isinstance(event, ToolResultsEvent):
                    await session.cancel()
        server.faults = {}
        await assert_goes_on(session, server)
        assert synthetic(bodies(server)[-1]) == []


def shielded_tool(begun: anyio.Event, released: anyio.Event) -> AnyTool:
    """Return a tool that is shielded from cancellation and returns when `released` is set."""

    async def work(name: str) -> str:
        """Work."""
        with anyio.CancelScope(shield=True):
            begun.set()
            await released.wait()
        return f"{name} came late"

    return tool(work)


def swallowing_tool(begun: anyio.Event, released: anyio.Event) -> AnyTool:
    """Return a tool that swallows its cancellation."""

    async def work(name: str) -> str:
        """Work."""
        begun.set()
        while not released.is_set():
            try:
                await released.wait()
            except BaseException:
                with anyio.CancelScope(shield=True):
                    await released.wait()
        return f"{name} came late"

    return tool(work)


STUBBORN = pytest.mark.parametrize("stubborn", [shielded_tool, swallowing_tool])
ONE = Turn(Call("work", {"name": "a"}))


@STUBBORN
@SERVERS
@pytest.mark.requirement("REQ-915-008", "PROMISE-2", "PROMISE-10")
@pytest.mark.usefixtures("short_graces")
async def test_a_late_result_replaces_a_synthetic_result_that_was_not_sent(
    make_server: MakeServer, stubborn: Callable[..., AnyTool]
) -> None:
    begun, released = anyio.Event(), anyio.Event()
    async with scripted(make_server(ONE), tools=[stubborn(begun, released)]) as (server, _, session):
        await cancel_when(session, begun.wait)
        known = (await session.ledger()).interactions()[0]
        assert (known.status, known.completion) == ("cancelled", None)
        released.set()
        await wait_for_result(session, "hist_tool_1")
        await assert_goes_on(session, server)
        assert list(results(bodies(server)[-1]).values()) == ["a came late"]


@STUBBORN
@SERVERS
@pytest.mark.requirement("REQ-915-009", "PROMISE-2", "PROMISE-4", "PROMISE-10")
@pytest.mark.usefixtures("short_graces")
async def test_a_late_result_for_a_sent_synthetic_result_is_sent_before_the_next_user_message(
    make_server: MakeServer, stubborn: Callable[..., AnyTool]
) -> None:
    begun, released = anyio.Event(), anyio.Event()
    async with scripted(make_server(ONE), tools=[stubborn(begun, released)]) as (server, _, session):
        await cancel_when(session, begun.wait)
        assert (await session.ask("Go on.")).status == "complete"
        released.set()
        assert (await wait_for_result(session, "hist_tool_1")).late is not None
        await assert_goes_on(session, server)
        last = [block for _, block in blocks(bodies(server)[-1])]
        assert len(synthetic(bodies(server)[-1])) == 1
        (late,) = [at for at, block in enumerate(last) if "Late result of work" in block]
        assert "a came late" in last[late]
        (ask,) = [at for at, block in enumerate(last) if "And now?" in block]
        assert late <= ask
        assert late > next(at for at, block in enumerate(last) if "Go on." in block)


@SERVERS
@pytest.mark.requirement("PROMISE-2", "PROMISE-10")
@pytest.mark.usefixtures("short_graces")
async def test_a_tool_that_blocks_its_thread_is_closed_after_the_grace_period(
    make_server: MakeServer,
) -> None:
    begun, released = threading.Event(), threading.Event()

    def work(name: str) -> str:
        """Work."""
        begun.set()
        released.wait(20)
        return f"{name} came late"

    async def ready() -> None:
        while not begun.is_set():
            await anyio.lowlevel.checkpoint()

    async with scripted(make_server(ONE), tools=[work]) as (server, _, session):
        try:
            await cancel_when(session, ready)
            assert (await session.ask("Go on.")).status == "complete"
        finally:
            released.set()
        assert (await wait_for_result(session, "hist_tool_1")).late is not None
        await assert_goes_on(session, server)


@pytest.mark.requirement("PROMISE-10")
async def test_a_second_cancel_changes_nothing_and_both_cancels_return_true() -> None:
    gate = Gate()
    async with scripted("openai_chat", WORK, tools=[gate.tool]) as (_, _, session):
        answers: list[bool] = []

        async def cancel() -> None:
            answers.append(await session.cancel())

        async with session.stream("Do it.") as events:
            await gate.started("a", "b")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(cancel)
                tasks.start_soon(cancel)
            assert answers == [True, True]
            assert sum(event.type == "complete" for event in [event async for event in events]) == 1


@pytest.mark.requirement("REQ-915-034", "PROMISE-10")
async def test_a_batch_stopped_right_after_its_start_is_cancelled_before_any_tool_runs() -> None:
    gate = Gate()
    async with scripted("openai_chat", tools=[gate.tool]) as (_, _, session):
        scheduler = session._refs.scheduler
        call = ToolCall(CallId("hist_tool_1"), "work", {"name": "a"})
        here = Reply[BatchEnded]()  # a waiting reply without a task
        here.waiter = event_loop().waiter()
        batch = attach_reply(RunBatch((call,)), here)
        assert isinstance(batch, RunBatch)
        scheduler.send_nowait(batch)
        scheduler.send_nowait(StopBatch())
        while (known := (await session.ledger()).get(call.id)) is None or known.cancelled is None:
            await anyio.lowlevel.checkpoint()
        # makes the result durable, so that the log can be compared
        await scheduler.ask(CloseCalls((call.id,), "cancelled"))
    assert gate.runs == []


@pytest.mark.requirement("PROMISE-2", "PROMISE-4")
async def test_a_rendered_request_is_not_sent_if_another_result_arrived_since_rendering() -> None:
    async with runtime_with(a=openai()) as runtime:
        session = await runtime.open("a")
        ledger, call = session._refs.ledger, CallId("hist_tool_1")
        seen = await ledger.ask(Snapshot())
        await ledger.ask(Record((Scheduled(call, "work"), Returned(call))))
        sent = RequestSent(1, 1, Binding("a", "openai_chat"), 0, 0, ((call, "cancelled"),))
        before = len(log(runtime, session))
        newer = await ledger.ask(SealResults(sent, seen.version))
        assert newer == await ledger.ask(Snapshot())
        assert len(log(runtime, session)) == before
        assert (await session.ledger()).interactions()[0].sealed is None


class OvertakenRenderer(Ref[RendererCommand]):
    """The address of a renderer; a result arrives during each of its first `times` renders."""

    def __init__(self, renderer: Ref[RendererCommand], ledger: Ref[LedgerCommand], times: int) -> None:
        super().__init__(renderer.receiver)
        self.ledger, self.times, self.renders = ledger, times, 0

    async def ask(self, query: Query[R], *, timeout: float | None = None) -> R:
        self.renders += isinstance(query, Render)
        answer = await super().ask(query, timeout=timeout)
        if isinstance(query, Render) and self.renders <= self.times:
            await self.ledger.ask(Record((Returned(CallId(f"late_{self.renders}")),)))
        return answer


@pytest.mark.requirement("PROMISE-1", "PROMISE-4")
async def test_a_turn_renders_its_request_again_whenever_a_result_arrives_before_sending() -> None:
    async with scripted("openai_chat", Turn(Say("Here."))) as (_, runtime, session):
        session._lifecycle.activate()
        life = runtime._system.cells[f"{session.id}/session"].life
        assert life is not None
        assert isinstance(life.actor, SessionActor)
        refs = session._refs
        renderer = OvertakenRenderer(refs.renderer, refs.ledger, times=30)
        life.actor._refs = replace(refs, renderer=renderer)
        assert (await session.ask("Hello.")).text == "Here."
        assert renderer.renders == 31
        kinds = [type(event) for event in log(runtime, session) if not isinstance(event, Returned)]
        assert kinds == [Opened, AskStarted, TurnStarted, RequestSent, RoundEnded, TurnEnded]


@pytest.mark.requirement("PROMISE-2")
@pytest.mark.usefixtures("short_graces")
async def test_a_result_that_arrives_after_its_session_was_closed_has_no_effect() -> None:
    begun, released = anyio.Event(), anyio.Event()
    server = openai(ONE)
    async with runtime_with(a=server) as runtime:
        session = await runtime.open("a", tools=[shielded_tool(begun, released)])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.ask, "Do it.")
            await begun.wait()
            await session.close()
        released.set()
        other = await runtime.open("a")
        for _ in range(20):
            assert (await other.ask("Still there?")).status == "complete"
