"""Switching: a switch affects the next turn and never the running one, and reports which of the two applies."""

from collections.abc import Callable

import anyio
import anyio.lowlevel
import pytest

from actors.config import PoolSettings
from actors.core.log.events import SwitchApplied, SwitchFailed, SwitchQueued, SwitchSuperseded
from actors.core.stream_events.ask_events import DurableEvent, SwitchOutcome
from actors.core.stream_events.events import SessionEvent, SwitchAppliedEvent, SwitchFailedEvent
from actors.errors import ConfigError, ToolDefinitionError, UnknownTarget
from actors.kernel import Command
from actors.runtime.handle import Session
from actors.strict.server import LoopbackServer
from actors.testing import Call, Say, Status, Think, Turn
from actors.tools import Tool
from tests.commands.at_scale import spread
from tests.renderer.marks import without_marks
from tests.runtime_support import (
    Gate,
    anthropic,
    assert_paired,
    assert_prefixes,
    blocks,
    bodies,
    gather_events,
    log,
    openai,
    results,
    runtime_with,
)
from tests.sampling import LOOPS

pytestmark = pytest.mark.anyio

MakeServer = Callable[..., LoopbackServer]
FAMILIES = pytest.mark.parametrize(("old", "new"), [(openai, anthropic), (anthropic, openai)])
WORK = (Turn(Think("hm"), Call("work", {"name": "a"}), Call("work", {"name": "b"})), Turn(Say("Done.")))


class UnknownCommand(Command, frozen=True):
    """A command that no actor handles."""


def event_types(events: list[SessionEvent]) -> list[str]:
    return [event.type for event in events]


async def ask_and_switch(
    session: Session, gate: Gate, *targets: str
) -> tuple[list[SessionEvent], list[object]]:
    """Ask, switch while the tools run, then let the tools return; return the events and the outcomes."""
    async with session.stream("Do it.") as events:
        await gate.started("a", "b")
        outcomes: list[object] = [await session.switch(target) for target in targets]
        gate.open("a", "b")
        return [event async for event in events], outcomes


@FAMILIES
@pytest.mark.requirement("REQ-915-001", "REQ-915-003", "REQ-915-041")
async def test_a_switch_between_turns_applies_to_the_next_request(old: MakeServer, new: MakeServer) -> None:
    gate = Gate()
    gate.open("a", "b")
    one, two = old(*WORK), new(Turn(Say("Here.")))
    async with runtime_with(old=one, new=two) as runtime:
        session = await runtime.open("old", tools=[gate.tool])
        assert (await session.ask("Do it.")).binding.backend == "old"
        assert await session.switch("new") == SwitchOutcome("new", "applied")
        assert two.received == 0
        assert (await session.ask("And?")).binding.backend == "new"
        assert one.received == 2
    assert one.refusals == two.refusals == []
    (body,) = bodies(two)
    assert_paired(body)
    assert list(results(body).values()) == ["a is done", "b is done"]


@FAMILIES
@pytest.mark.requirement("REQ-915-002", "REQ-915-050", "PROMISE-5", "PROMISE-11")
async def test_a_switch_during_a_turn_is_queued_until_its_end(old: MakeServer, new: MakeServer) -> None:
    gate = Gate()
    one, two = old(*WORK), new(Turn(Say("Here.")))
    async with runtime_with(old=one, new=two) as runtime:
        session = await runtime.open("old", tools=[gate.tool])
        events, outcomes = await ask_and_switch(session, gate, "new")
        assert outcomes == [SwitchOutcome("new", "queued", 1)]
        assert (one.received, two.received) == (2, 0)
        shown = event_types(events)
        assert shown.index("switch_queued") < shown.index("turn_ended") < shown.index("switch_applied")
        assert [event.type for event in events][-1] == "complete"
        seqs = {e.type: e.seq for e in events if isinstance(e, DurableEvent)}
        stored = log(runtime, session)
        assert stored[seqs["switch_queued"] - 1] == SwitchQueued(1, "new")
        assert stored[seqs["switch_applied"] - 1] == SwitchApplied("new", was_queued=True)
        assert (await session.ask("And?")).binding.backend == "new"
        assert one.received == 2
    assert one.refusals == two.refusals == []


@pytest.mark.requirement("REQ-915-050", "PROMISE-5")
async def test_the_latest_of_several_queued_switches_wins() -> None:
    gate = Gate()
    one, two, three = openai(*WORK), anthropic(), openai()
    async with runtime_with(a=one, b=two, c=three) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        events, outcomes = await ask_and_switch(session, gate, "b", "c")
        assert outcomes == [SwitchOutcome("b", "queued", 1), SwitchOutcome("c", "queued", 1)]
        shown = [(e.type, getattr(e, "target", "")) for e in events if "switch" in e.type]
        assert shown == [
            ("switch_queued", "b"),
            ("switch_superseded", "b"),
            ("switch_queued", "c"),
            ("switch_applied", "c"),
        ]
        assert SwitchSuperseded("b", "c") in log(runtime, session)
        assert (await session.ask("And?")).binding.backend == "c"
        assert two.received == 0


@pytest.mark.requirement("REQ-915-050")
async def test_a_switch_after_a_crash_supersedes_a_switch_queued_before_the_crash() -> None:
    gate = Gate()
    one, two, three = openai(*WORK), anthropic(), openai()
    async with runtime_with(a=one, b=two, c=three) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        async with session.stream("Do it."):
            await gate.started("a", "b")
            assert await session.switch("b") == SwitchOutcome("b", "queued", 1)
            await session._refs.ledger.send(UnknownCommand())  # type: ignore[arg-type]  # crashes the actor
            assert await session.switch("c") == SwitchOutcome("c", "applied")
        with anyio.fail_after(5):
            assert (await session.ask("And?")).binding.backend == "c"
        switches = [event for event in log(runtime, session) if type(event).__name__.startswith("Switch")]
        assert switches == [
            SwitchQueued(1, "b"),
            SwitchSuperseded("b", "c"),
            SwitchApplied("c", was_queued=False),
        ]
        assert two.received == 0


async def test_a_switch_to_an_unknown_target_fails_and_changes_nothing() -> None:
    gate = Gate()
    one, two = openai(*WORK), anthropic()
    async with runtime_with(a=one, b=two) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        before = len(log(runtime, session))
        with pytest.raises(UnknownTarget, match="nowhere"):
            await session.switch("nowhere")
        with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY"):
            await session.switch("anthropic:claude")
        assert len(log(runtime, session)) == before
        async with session.stream("Do it.") as events:
            await gate.started("a", "b")
            assert await session.switch("b") == SwitchOutcome("b", "queued", 1)
            with pytest.raises(UnknownTarget):
                await session.switch("nowhere")
            gate.open("a", "b")
            assert "switch_superseded" not in event_types([event async for event in events])
        assert (await session.ask("And?")).binding.backend == "b"


@pytest.mark.requirement("REQ-915-002", "REQ-915-003", "PROMISE-5", "PROMISE-1")
async def test_a_switch_at_any_moment_never_splits_a_turn(
    anyio_backend: str,
) -> None:
    for steps in spread(range(0, 90, 2), LOOPS.index(anyio_backend)):
        gate = Gate()
        gate.open("a", "b")
        one, two = openai(*WORK), anthropic(*WORK)
        async with runtime_with(a=one, b=two) as runtime:
            session = await runtime.open("a", tools=[gate.tool])
            async with session.stream("Do it.") as events:
                for _ in range(steps):
                    await anyio.lowlevel.checkpoint()
                outcome = await session.switch("b")
                seen = [event async for event in events]
            assert event_types(seen).count("switch_applied") == (outcome.status == "queued")
            assert (one.received, two.received) == (2, 0)
            assert (await session.ask("And?")).binding.backend == "b"
            assert (one.received, two.received) == (2, 2)
        assert one.refusals == two.refusals == []


@pytest.mark.requirement("REQ-915-003")
async def test_a_switch_applies_to_an_ask_that_was_already_queued() -> None:
    gate = Gate()
    one, two = openai(*WORK), anthropic(Turn(Say("Here.")))
    async with runtime_with(a=one, b=two) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        async with session.stream("First.") as first, session.stream("Second.") as second:
            await gate.started("a", "b")
            await session.switch("b")
            gate.open("a", "b")
            assert [event async for event in first][-1].result.binding.backend == "a"  # type: ignore[union-attr]  # the terminal event
            assert [event async for event in second][-1].result.binding.backend == "b"  # type: ignore[union-attr]  # the terminal event


@pytest.mark.requirement("PROMISE-4")
async def test_switching_back_to_a_backend_extends_its_earlier_requests() -> None:
    gate = Gate()
    gate.open("a", "b")
    one, two = openai(*WORK, Turn(Say("again"))), anthropic(*WORK, Turn(Think("yes"), Say("again")))
    async with runtime_with(a=one, b=two) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        for target in ("a", "b", "a", "b"):
            await session.switch(target)
            assert (await session.ask("Go on.")).status == "complete"
    assert one.refusals == two.refusals == []
    assert_prefixes(one)
    assert_prefixes(two)


async def test_a_preview_sends_and_records_nothing() -> None:
    gate = Gate()
    gate.open("a", "b")
    one, two = openai(*WORK), anthropic(Turn(Say("Here.")))
    async with runtime_with(a=one, b=two) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        await session.ask("Do it.")
        before = len(log(runtime, session))
        preview = await session.preview("b")
        assert (await session.preview("b")).body == preview.body
        assert (two.received, len(log(runtime, session))) == (0, before)
        await session.switch("b")
        await session.ask("And?")
        sent = blocks(bodies(two)[0])
        assert any("a is done" in block for _, block in sent)
    assert two.refusals == []


@pytest.mark.parametrize("make_server", [openai, anthropic])
async def test_a_preview_reports_how_many_sent_bytes_are_kept(
    make_server: Callable[..., LoopbackServer],
) -> None:
    server = make_server(Turn(Say("Hello.")))
    async with runtime_with(a=server) as runtime:
        session = await runtime.open("a")
        assert (await session.preview("a")).kept == 0
        await session.ask("Hi.")
        preview = await session.preview("a")
    marked = b'"messages":['
    both = (without_marks(body, server.dialect) for body in (server.requests[-1].body, preview.body))
    sent, shown = (body.partition(marked)[2] for body in both)
    assert shown[: preview.kept] == sent[: preview.kept]
    assert b"Hi." in sent[: preview.kept]
    assert b"Hello." in shown[preview.kept :]


async def test_closing_a_session_while_a_queued_switch_settles_does_not_crash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crashes: list[object] = []
    monkeypatch.setattr(
        "actors.telemetry.logger.actor_crashed", lambda name, error: crashes.append((name, error))
    )
    gate = Gate()
    async with runtime_with(a=openai(*WORK), b=anthropic()) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        async with session.stream("Do it.") as events:
            await gate.started("a", "b")
            await session.switch("b")
            gate.open("a", "b")
            async for event in events:
                if isinstance(event, SwitchAppliedEvent):
                    # before the session receives the end of the ask
                    await runtime._system.stop(session._session)
                    break
    assert crashes == []


async def test_a_switch_is_shown_only_in_the_stream_of_its_ask() -> None:
    gate = Gate()
    async with runtime_with(a=openai(*WORK), b=anthropic()) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        await ask_and_switch(session, gate, "b")
        assert not [
            status for status in event_types(await gather_events(session, "And?")) if "switch" in status
        ]


@pytest.mark.requirement("REQ-915-050", "PROMISE-5")
async def test_a_queued_switch_to_a_lost_target_fails_and_keeps_the_backend() -> None:
    gate, environ = Gate(), {"KEY": "secret"}
    one, two = openai(*WORK, Turn(Say("Here."))), anthropic()
    async with runtime_with(a=one, b=two, environ=environ, auth={"b": "KEY"}) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        async with session.stream("Do it.") as events:
            await gate.started("a", "b")
            assert await session.switch("b") == SwitchOutcome("b", "queued", 1)
            del environ["KEY"]
            gate.open("a", "b")
            seen = [event async for event in events]
        (failed,) = [e for e in seen if isinstance(e, SwitchFailedEvent)]
        assert "environment variable KEY" in failed.error
        assert seen[-1].type == "complete"
        assert "switch_applied" not in event_types(seen)
        assert log(runtime, session)[failed.seq - 1] == SwitchFailed("b", failed.error)
        assert (await session.ask("And?")).binding.backend == "a"
        assert two.received == 0
        environ["KEY"] = "secret"
        assert await session.switch("b") == SwitchOutcome("b", "applied")


async def test_after_a_failed_queued_switch_the_pool_still_fails_over() -> None:
    gate, environ = Gate(), {"KEY": "secret"}
    one, two, three = openai(WORK[0], faults={1: Status(500)}), anthropic(), anthropic(Turn(Say("Here.")))
    pools = {"p": PoolSettings(members=("a", "c"))}
    async with runtime_with(
        a=one, b=two, c=three, pools=pools, environ=environ, auth={"b": "KEY"}
    ) as runtime:
        session = await runtime.open("p", tools=[gate.tool])
        async with session.stream("Do it.") as events:
            await gate.started("a", "b")
            await session.switch("b")
            del environ["KEY"]
            gate.open("a", "b")
            shown = event_types([event async for event in events])
        assert shown.index("switch_failed") < shown.index("failover")
        assert "switch_applied" not in shown
        assert (one.received, two.received, three.received) == (2, 0, 1)


def many_tools(count: int) -> list[Tool[..., object]]:
    def work(**_: object) -> None:
        """Do nothing."""

    return [Tool.from_schema(f"work_{n}", "Work.", {"type": "object"}, work) for n in range(count)]


TOO_MANY = r"The session has 129 tools, but backend 'a' accepts at most 128 \(openai_chat\)"


async def test_a_session_with_too_many_tools_for_a_backend_is_not_opened() -> None:
    one, two = openai(Turn(Say("Here."))), anthropic()
    pools = {"p": PoolSettings(members=("b", "a"))}
    async with runtime_with(a=one, b=two, pools=pools) as runtime:
        for target in ("a", "p"):
            with pytest.raises(ToolDefinitionError, match=TOO_MANY):
                await runtime.open(target, tools=many_tools(129), id="s")
        assert list(runtime.sessions) == []
        session = await runtime.open("a", tools=many_tools(128), id="s")
        assert (await session.ask("Go.")).status == "complete"
    assert one.refusals == []


async def test_a_switch_to_a_backend_that_accepts_fewer_tools_is_rejected() -> None:
    one, two = openai(), anthropic(Turn(Say("Here.")))
    pools = {"p": PoolSettings(members=("b", "a"))}
    async with runtime_with(a=one, b=two, pools=pools) as runtime:
        session = await runtime.open("b", tools=many_tools(129))
        before = len(log(runtime, session))
        for target in ("a", "p"):
            with pytest.raises(ConfigError, match=TOO_MANY):
                await session.switch(target)
            with pytest.raises(ConfigError, match=TOO_MANY):
                await session.preview(target)
        assert len(log(runtime, session)) == before
        assert (await session.ask("Go.")).binding.backend == "b"
        assert one.received == 0
