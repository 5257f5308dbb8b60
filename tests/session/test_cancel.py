"""Cancel at every phase of an ask: it ends promptly, every call is closed, and the next request is accepted.

A cancel that were lost would leave these asks hanging: their servers stall and their tools never return.
"""

import threading
from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from actors.core.data.record import replace
from actors.core.log.events import (
    AskStarted,
    Opened,
    RequestSent,
    Returned,
    RoundEnded,
    Scheduled,
    TurnEnded,
    TurnStarted,
)
from actors.core.stream_events.events import TextEvent, ToolResultsEvent
from actors.core.values.content import ToolCall
from actors.core.values.identity import Binding, CallId
from actors.kernel import Query, Ref
from actors.kernel.event_loop import event_loop
from actors.kernel.message import R, Reply, with_reply
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
    hosting,
    log,
    openai,
    recorded,
    results,
    synthetic,
)

pytestmark = pytest.mark.anyio

MADE = pytest.mark.parametrize("made", [openai, anthropic])
WORK = Turn(Think("hm"), Call("work", {"name": "a"}), Call("work", {"name": "b"}))
Made = Callable[..., LoopbackServer]
AnyTool = Tool[..., Any]  # Any: any function


async def assert_goes_on(session: Session, server: LoopbackServer) -> None:
    """Every call is closed; the next ask completes and its request has a result for every call."""
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
    """Ask, cancel once `ready()` has returned, and see the ask end as cancelled."""
    ends: list[str] = []

    async def ask() -> None:
        ends.append((await session.ask("Do it.")).status)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await ready()
        assert await session.cancel()
    assert ends == ["cancelled"]


@MADE
@pytest.mark.requirement("REQ-915-034", "PROMISE-10")
async def test_a_cancel_at_any_moment_ends_the_ask_and_the_next_one_is_accepted(
    made: Made, anyio_backend_name: str
) -> None:
    """The four cases, of two dialects and two event loops, share the moments."""
    quarter = 2 * (made is anthropic) + (anyio_backend_name == "trio")
    for number in spread(range(40), quarter):
        steps, is_late = 3 * number, (number + number // 4) % 2
        gate = Gate()
        server = made(WORK, faults={1: Stall()} if is_late else {0: Stall(after_bytes=40)})
        async with hosting(a=server) as runtime:
            session = await runtime.open("a", tools=[gate.tool])
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
async def test_cancel_ends_the_ask_in_flight_and_the_one_that_waits_goes_on() -> None:
    gate = Gate()
    server = openai(WORK)
    async with hosting(a=server) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        async with session.stream("First.") as first, session.stream("Second.") as second:
            await gate.started("a", "b")
            assert await session.cancel()
            assert [event async for event in first][-1].result.status == "cancelled"  # type: ignore[union-attr]  # terminal
            assert [event async for event in second][-1].result.status == "complete"  # type: ignore[union-attr]  # terminal
        await assert_goes_on(session, server)


async def test_cancel_of_an_idle_session_says_that_there_was_nothing() -> None:
    async with hosting(a=openai()) as runtime:
        session = await runtime.open("a")
        assert not await session.cancel()


@MADE
@pytest.mark.requirement("REQ-915-034", "PROMISE-10")
async def test_cancel_before_the_connection_stands(made: Made) -> None:
    server, tap = made(Turn(Say("never"))), Tap(held=anyio.Event())
    async with hosting(a=server, transport=tap) as runtime:
        session = await runtime.open("a")
        await cancel_when(session, tap.begun.wait)
        assert tap.held is not None
        tap.held.set()
        await assert_goes_on(session, server)


@MADE
@pytest.mark.requirement("PROMISE-10")
async def test_cancel_before_the_first_byte(made: Made) -> None:
    arrived = anyio.Event()

    def stall(number: int, _request: object) -> InjectedFault | None:
        arrived.set()
        return Stall() if number == 0 else None

    server = made(Turn(Say("never")), faults=stall)
    async with hosting(a=server) as runtime:
        session = await runtime.open("a")
        await cancel_when(session, arrived.wait)
        await assert_goes_on(session, server)


@MADE
@pytest.mark.requirement("PROMISE-10")
async def test_cancel_in_the_middle_of_the_text_keeps_what_was_shown_and_marks_it(made: Made) -> None:
    text = "A long answer that is cut. " * 20
    server = made(Turn(Say(text)), faults={0: Stall(after_bytes=2000)})
    async with hosting(a=server) as runtime:
        session = await runtime.open("a")
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


@MADE
@pytest.mark.requirement("PROMISE-10")
async def test_cancel_in_the_middle_of_the_arguments_drops_the_unfinished_call(made: Made) -> None:
    turn, gate = Turn(Say("Wait."), Call("work", {"name": "x" * 4000})), Gate()
    tap = Tap(count=3500)
    server = made(turn, faults={0: Stall(after_bytes=4000)})
    async with hosting(a=server, transport=tap) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        await cancel_when(session, tap.received.wait)
        assert not any(message.calls for message in await session.history())
        gate.open("x" * 4000)
        await assert_goes_on(session, server)


@MADE
@pytest.mark.requirement("REQ-915-011", "REQ-915-034", "PROMISE-10")
async def test_cancel_while_tools_run_closes_those_that_run_and_keeps_those_that_returned(made: Made) -> None:
    gate = Gate()
    gate.open("a")
    server = made(WORK)
    async with hosting(a=server) as runtime:
        session = await runtime.open("a", tools=[gate.tool])

        async def ready() -> None:
            await gate.started("b")
            await recorded(session, "hist_tool_1")

        await cancel_when(session, ready)
        await assert_goes_on(session, server)
        last = bodies(server)[-1]
        assert next(iter(results(last).values())) == "a is done"
        assert len(synthetic(last)) == 1


@MADE
@pytest.mark.requirement("PROMISE-10")
async def test_cancel_between_the_tools_and_the_next_request(made: Made) -> None:
    gate = Gate()
    gate.open("a", "b")
    server = made(WORK, faults={1: Stall()})
    async with hosting(a=server) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        async with session.stream("Do it.") as events:
            async for event in events:
                if isinstance(event, ToolResultsEvent):
                    await session.cancel()
        server.faults = {}
        await assert_goes_on(session, server)
        assert synthetic(bodies(server)[-1]) == []


def shielded(begun: anyio.Event, released: anyio.Event) -> AnyTool:
    """A tool that does not hear its cancellation and returns when it is let."""

    async def work(name: str) -> str:
        """Work."""
        with anyio.CancelScope(shield=True):
            begun.set()
            await released.wait()
        return f"{name} came late"

    return tool(work)


def deaf(begun: anyio.Event, released: anyio.Event) -> AnyTool:
    """A tool that swallows its cancellation."""

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


STUBBORN = pytest.mark.parametrize("stubborn", [shielded, deaf])
ONE = Turn(Call("work", {"name": "a"}))


@STUBBORN
@MADE
@pytest.mark.requirement("REQ-915-008", "PROMISE-2", "PROMISE-10")
@pytest.mark.usefixtures("short_graces")
async def test_a_result_that_comes_before_the_next_request_takes_the_place_of_the_synthetic_one(
    made: Made, stubborn: Callable[..., AnyTool]
) -> None:
    begun, released = anyio.Event(), anyio.Event()
    server = made(ONE)
    async with hosting(a=server) as runtime:
        session = await runtime.open("a", tools=[stubborn(begun, released)])
        await cancel_when(session, begun.wait)
        known = (await session.ledger()).interactions()[0]
        assert (known.status, known.completion) == ("cancelled", None)
        released.set()
        await recorded(session, "hist_tool_1")
        await assert_goes_on(session, server)
        assert list(results(bodies(server)[-1]).values()) == ["a came late"]


@STUBBORN
@MADE
@pytest.mark.requirement("REQ-915-009", "PROMISE-2", "PROMISE-4", "PROMISE-10")
@pytest.mark.usefixtures("short_graces")
async def test_a_result_that_comes_after_its_seal_is_told_ahead_of_the_next_user_message(
    made: Made, stubborn: Callable[..., AnyTool]
) -> None:
    begun, released = anyio.Event(), anyio.Event()
    server = made(ONE)
    async with hosting(a=server) as runtime:
        session = await runtime.open("a", tools=[stubborn(begun, released)])
        await cancel_when(session, begun.wait)
        assert (await session.ask("Go on.")).status == "complete"
        released.set()
        assert (await recorded(session, "hist_tool_1")).late is not None
        await assert_goes_on(session, server)
        last = [block for _, block in blocks(bodies(server)[-1])]
        assert len(synthetic(bodies(server)[-1])) == 1
        (told,) = [at for at, block in enumerate(last) if "Late result of work" in block]
        assert "a came late" in last[told]
        (ask,) = [at for at, block in enumerate(last) if "And now?" in block]
        assert told <= ask
        assert told > next(at for at, block in enumerate(last) if "Go on." in block)


@MADE
@pytest.mark.requirement("PROMISE-2", "PROMISE-10")
@pytest.mark.usefixtures("short_graces")
async def test_a_tool_that_blocks_its_thread_is_closed_after_the_grace_and_its_result_is_late(
    made: Made,
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

    server = made(ONE)
    async with hosting(a=server) as runtime:
        session = await runtime.open("a", tools=[work])
        try:
            await cancel_when(session, ready)
            assert (await session.ask("Go on.")).status == "complete"
        finally:
            released.set()
        assert (await recorded(session, "hist_tool_1")).late is not None
        await assert_goes_on(session, server)


@pytest.mark.requirement("PROMISE-10")
async def test_a_second_cancel_changes_nothing_and_both_are_answered() -> None:
    gate = Gate()
    server = openai(WORK)
    async with hosting(a=server) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
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
async def test_a_stop_never_overtakes_the_batch_it_stops() -> None:
    gate = Gate()
    async with hosting(a=openai()) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        scheduler = session._refs.scheduler
        call = ToolCall(CallId("hist_tool_1"), "work", {"name": "a"})
        here = Reply[BatchEnded]()  # an asker that is there, and no task to wait for
        here.waiter = event_loop().waiter()
        batch = with_reply(RunBatch((call,)), here)
        assert isinstance(batch, RunBatch)
        scheduler.send_nowait(batch)
        scheduler.send_nowait(StopBatch())
        while (known := (await session.ledger()).get(call.id)) is None or known.cancelled is None:
            await anyio.lowlevel.checkpoint()
        await scheduler.ask(CloseCalls((call.id,), "cancelled"))  # durable, so that the log can be compared
    assert gate.runs == []


@pytest.mark.requirement("PROMISE-2", "PROMISE-4")
async def test_a_request_is_rendered_again_when_a_result_came_in_meanwhile() -> None:
    async with hosting(a=openai()) as runtime:
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


class Overtaken(Ref[RendererCommand]):
    """The address of a renderer whose first renders are each overtaken by a result that comes in meanwhile."""

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
async def test_a_turn_whose_requests_are_overtaken_by_results_renders_again_and_loses_nothing() -> None:
    async with hosting(a=openai(Turn(Say("Here.")))) as runtime:
        session = await runtime.open("a")
        session._lifecycle.activate()
        life = runtime._system.cells[f"{session.id}/session"].life
        assert life is not None
        assert isinstance(life.actor, SessionActor)
        refs = session._refs
        renderer = Overtaken(refs.renderer, refs.ledger, times=30)
        life.actor._refs = replace(refs, renderer=renderer)
        assert (await session.ask("Hello.")).text == "Here."
        assert renderer.renders == 31
        kinds = [type(event) for event in log(runtime, session) if not isinstance(event, Returned)]
        assert kinds == [Opened, AskStarted, TurnStarted, RequestSent, RoundEnded, TurnEnded]


@pytest.mark.requirement("PROMISE-2")
@pytest.mark.usefixtures("short_graces")
async def test_a_result_after_the_session_is_closed_disturbs_nothing() -> None:
    begun, released = anyio.Event(), anyio.Event()
    server = openai(ONE)
    async with hosting(a=server) as runtime:
        session = await runtime.open("a", tools=[shielded(begun, released)])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.ask, "Do it.")
            await begun.wait()
            await session.close()
        released.set()
        other = await runtime.open("a")
        for _ in range(20):
            assert (await other.ask("Still there?")).status == "complete"
