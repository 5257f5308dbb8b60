"""Tools without a body: a turn waits for results from its caller and then continues, even after a restart."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from actors.core.log.call_events import Cancelled, Returned
from actors.core.log.events import TurnEnded, TurnPaused, TurnResumed, TurnStarted
from actors.core.stream_events.ask_events import AskResult, CallEnd, CompleteEvent, SwitchOutcome
from actors.core.stream_events.round_events import ToolResultsEvent
from actors.core.values.identity import CallId
from actors.errors import NotAwaited, QueueFull
from actors.journal.storage.sqlite import SqliteStorage
from actors.journal.storage_calls import ReadQueue
from actors.runtime.handle import Session
from actors.strict.server import LoopbackServer
from actors.testing import Call, Say, Turn
from actors.tools import Tool
from tests.runtime.test_rebuild import crash
from tests.runtime_support import Gate, anthropic, assert_paired, bodies, log, openai, results, runtime_with
from tests.scripted import scripted

pytestmark = pytest.mark.anyio

MakeServer = Callable[..., LoopbackServer]
SERVERS = pytest.mark.parametrize("make_server", [openai, anthropic])

LOOK = Tool.external("look", "Looks something up, elsewhere.", {"type": "object"}, read_only=True)
TWO = Turn(Call("look", {"n": 1}), Call("look", {"n": 2}))
ONE, OTHER = CallId("hist_tool_1"), CallId("hist_tool_2")
PUT_AWAY = pytest.mark.parametrize("put_away", ["kept", "passive", "logged"])


def leave(session: Session, how: str) -> None:
    """Leave a waiting session as it is, passivate it, or drop everything but its log."""
    lifecycle = session._lifecycle
    if how in ("passive", "logged"):
        assert lifecycle.passivate()
    if how == "logged":
        lifecycle.evict()


@SERVERS
@PUT_AWAY
async def test_a_turn_waits_for_its_caller_and_continues_with_the_results(
    make_server: MakeServer, put_away: str
) -> None:
    gate = Gate()
    gate.open("a")
    server = make_server(Turn(Call("look", {"n": 1}), Call("work", {"name": "a"})), Turn(Say("21 C.")))
    async with scripted(server, tools=[LOOK, gate.tool]) as (_, runtime, session):
        asked = await session.ask("How warm is it?")
        assert (asked.status, [call.name for call in asked.pending_calls]) == ("awaiting", ["look"])
        assert asked.pending_calls[0].arguments == {"n": 1}
        assert gate.runs == ["a"]
        assert (session.busy, len(session.pending)) == (True, 1)
        leave(session, put_away)
        assert [(each.call.id, each.kind) for each in session.pending] == [(ONE, "external")]
        answer = await session.ask(results={ONE: {"celsius": 21}})
        assert (answer.status, answer.text, answer.rounds) == ("complete", "21 C.", 2)
        assert [attempt.status for attempt in answer.attempts] == ["complete"]
        assert answer.usage.output_tokens > asked.usage.output_tokens > 0
        assert (session.busy, session.pending) == (False, ())
        events = log(runtime, session)
        assert [
            sum(isinstance(event, kind) for event in events) for kind in (TurnStarted, TurnEnded, TurnPaused)
        ] == [1] * 3
    (found, done) = results(bodies(server)[-1]).values()
    assert (json.loads(found), done) == ({"celsius": 21}, "a is done")
    assert_paired(bodies(server)[-1])


@PUT_AWAY
async def test_results_from_the_caller_are_recorded_while_the_turn_waits_for_other_results(
    put_away: str,
) -> None:
    async with scripted("openai_chat", TWO, Turn(Say("Both.")), tools=[LOOK]) as (server, _, session):
        assert len((await session.ask("Look.")).pending_calls) == 2
        leave(session, put_away)
        half = await session.ask(results={OTHER: "two"})
        assert (half.status, [call.id for call in half.pending_calls]) == ("awaiting", [ONE])
        leave(session, put_away)
        assert [each.call.id for each in session.pending] == [ONE]
        assert (await session.ask(results={ONE: RuntimeError("nothing there")})).text == "Both."
    first, second = results(bodies(server)[-1]).values()
    assert "RuntimeError: nothing there" in first
    assert second == "two"


@pytest.mark.parametrize("ids", [["hist_tool_9"], [ONE, "hist_tool_9"], ["nonsense"]])
async def test_a_result_for_an_unknown_id_is_rejected_and_nothing_is_recorded(
    ids: list[str],
) -> None:
    async with scripted("openai_chat", TWO, Turn(Say("Both.")), tools=[LOOK]) as (_, runtime, session):
        await session.ask("Look.")
        before = len(log(runtime, session))
        with pytest.raises(NotAwaited, match=f"{ids[-1]}.*the pending calls are: {ONE}, {OTHER}"):
            await session.ask(results=dict.fromkeys(ids, "x"))
        assert len(log(runtime, session)) == before
        assert (await session.ask(results={ONE: 1, OTHER: 2})).text == "Both."


async def test_passing_a_result_for_a_tool_that_the_runtime_runs_is_rejected() -> None:
    gate = Gate()
    gate.open("a")
    server = openai(Turn(Call("work", {"name": "a"})), Turn(Say("Done.")))
    async with scripted(server, tools=[gate.tool]) as (_, _, session):
        await session.ask("Do it.")
        with pytest.raises(NotAwaited, match="the pending calls are: none"):
            await session.ask(results={ONE: "forged"})
        known = (await session.ledger()).get(ONE)
        assert known is not None
        assert known.duplicates == ()


async def test_passing_a_second_result_for_a_call_does_not_change_the_first() -> None:
    server = openai(TWO, Turn(Say("Both.")), Turn(Say("Next.")))
    async with scripted(server, tools=[LOOK]) as (_, _, session):
        await session.ask("Look.")
        assert (await session.ask(results={ONE: "first"})).status == "awaiting"
        assert (await session.ask(results={ONE: "first"})).status == "awaiting"
        assert (await session.ask(results={ONE: "second"})).status == "awaiting"
        assert (await session.ask(results={OTHER: "x"})).status == "complete"
        assert (await session.ask(results={OTHER: "x", ONE: "first"})).status == "late"
        ledger = await session.ledger()
        first, other = ledger.get(ONE), ledger.get(OTHER)
        assert first is not None
        assert other is not None
        assert [each.content for each in first.duplicates] == ["second"]
        assert other.duplicates == ()
        assert ledger.late == ()
        await session.ask("And?")
    assert list(results(bodies(server)[-1]).values()) == ["first", "x"]
    assert "second" not in json.dumps(bodies(server))


async def test_only_one_of_two_results_passed_concurrently_resumes_the_turn() -> None:
    server = openai(Turn(Call("look", {"n": 1})), Turn(Say("Done.")))
    outcomes: list[AskResult] = []
    async with scripted(server, tools=[LOOK]) as (_, runtime, session):
        await session.ask("Look.")

        async def pass_result(value: str) -> None:
            outcomes.append(await session.ask(results={ONE: value}))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pass_result, "one")
            tasks.start_soon(pass_result, "two")
        assert sorted(outcome.status for outcome in outcomes) == ["complete", "late"]
        assert [outcome.text for outcome in outcomes if outcome.status == "complete"] == ["Done."]
        known = (await session.ledger()).get(ONE)
        assert known is not None
        assert known.completion is not None
        assert {known.completion.content, *(each.content for each in known.duplicates)} == {"one", "two"}
        events = log(runtime, session)
        assert sum(isinstance(event, TurnResumed) for event in events) == 1
    assert len(server.requests) == 2
    assert list(results(bodies(server)[-1]).values()) == [known.completion.content]


@PUT_AWAY
async def test_a_result_after_cancel_is_recorded_as_late(
    put_away: str,
) -> None:
    server = openai(TWO, Turn(Say("Next.")), Turn(Say("Last.")))
    async with scripted(server, tools=[LOOK]) as (_, runtime, session):
        await session.ask("Look.")
        await session.ask(results={ONE: "one"})
        leave(session, put_away)
        assert await session.cancel()
        assert not await session.cancel()
        assert session.pending == ()
        events = log(runtime, session)
        assert [event.call_id for event in events if isinstance(event, Cancelled)] == [OTHER]
        assert [event.status for event in events if isinstance(event, TurnEnded)] == ["cancelled"]
        assert (await session.ask("Go on.")).text == "Next."
        late = await session.ask(results={OTHER: "two, at last"})
        assert late.status == "late"
        assert (await session.ledger()).late == (OTHER,)
        assert (await session.ask("And?")).text == "Last."
    assert "two, at last" in json.dumps(bodies(server)[-1]["messages"][-2:])
    assert next(iter(results(bodies(server)[-1]).values())) == "one"


async def test_a_late_result_is_recorded_even_if_the_read_queue_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = openai(Turn(Call("look", {"n": 1})), Turn(Say("Next.")))
    async with runtime_with(a=server, storage=SqliteStorage(tmp_path / "sessions.db")) as runtime:
        session = await runtime.open("a", tools=[LOOK])
        await session.ask("Look.")
        await session.cancel()
        monkeypatch.setattr(ReadQueue, "is_full", True)
        assert (await session.ask(results={ONE: "found"})).status == "late"
        assert (await session.ask("Go on.")).text == "Next."


async def test_a_result_for_a_removed_tool_is_recorded_as_late() -> None:
    server = openai(Turn(Call("look", {"n": 1})), Turn(Say("Next.")))
    async with scripted(server, tools=[LOOK]) as (_, _, session):
        await session.ask("Look.")
        await session.cancel()
        actors = session._lifecycle.activate()
        actors.active_config.tools.clear()  # as if the program had removed the tool
        assert (await session.ask(results={ONE: "found"})).status == "late"
        known = (await session.ledger()).get(ONE)
        assert known is not None
        assert known.completion is not None
        assert known.completion.content == "found"


async def test_a_waiting_turn_queues_asks_and_switches() -> None:
    server, other = openai(TWO, Turn(Say("Both."))), openai(Turn(Say("Here.")), Turn(Say("Here too.")))
    said: list[str] = []
    async with runtime_with(a=server, b=other) as runtime:
        session = await runtime.open("a", tools=[LOOK])
        await session.ask("Look.")
        assert await session.switch("b") == SwitchOutcome("b", "queued", 1)
        async with anyio.create_task_group() as tasks:

            async def ask(words: str) -> None:
                said.append((await session.ask(words)).text)

            tasks.start_soon(ask, "Next?")
            while session._lifecycle.passivate():  # until the queued ask keeps the actors alive
                await anyio.lowlevel.checkpoint()
            answer = await session.ask(results={ONE: 1, OTHER: 2})
            assert (answer.text, answer.binding.backend) == ("Both.", "a")
        assert said == ["Here."]
        assert session.target == "b"
        assert (await session.switch("a")).status == "applied"


async def test_the_queue_of_asks_after_a_waiting_turn_is_bounded() -> None:
    server = openai(TWO, *(Turn(Say("x")) for _ in range(20)))
    refused = 0
    async with scripted(server, tools=[LOOK]) as (_, _, session):
        await session.ask("Look.")
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                nonlocal refused
                try:
                    await session.ask("More.")
                except QueueFull:
                    refused += 1

            for _ in range(10):
                tasks.start_soon(ask)
            while refused < 2:
                await anyio.lowlevel.checkpoint()
            assert (await session.ask(results={ONE: 1, OTHER: 2})).status == "complete"
    assert refused == 2


async def test_the_stream_of_an_ask_ends_as_awaiting_and_a_second_stream_continues_the_ask() -> None:
    async with scripted("openai_chat", TWO, Turn(Say("Both.")), tools=[LOOK]) as (_, _, session):
        async with session.stream("Look.") as events:
            first = [event async for event in events]
        assert [event.type for event in first][-1] == "complete"
        assert isinstance(first[-1], CompleteEvent)
        assert first[-1].result.status == "awaiting"
        async with session.stream(results={ONE: 1, OTHER: 2}) as events:
            rest = [event async for event in events]
        kinds = [event.type for event in rest]
        assert kinds[:3] == ["tool_results", "turn_resumed", "request_sent"]
        assert kinds[-3:] == ["message", "turn_ended", "complete"]
        assert isinstance(rest[0], ToolResultsEvent)
        assert rest[0].results == (CallEnd(ONE, "returned"), CallEnd(OTHER, "returned"))
        assert "Both." in "".join(event.text for event in rest if event.type == "text")
        assert isinstance(rest[-1], CompleteEvent)
        assert rest[-1].result.text == "Both."
        numbers = [number for event in (*first, *rest) if (number := getattr(event, "seq", None))]
        assert numbers == sorted(numbers)


@pytest.mark.alternating
@pytest.mark.parametrize("when", ["before", "half", "all"])
@pytest.mark.parametrize("which", ["session", "ledger"])
async def test_a_crash_while_a_turn_waits_loses_nothing(when: str, which: str) -> None:
    async with scripted("openai_chat", TWO, Turn(Say("Both.")), tools=[LOOK]) as (_, runtime, session):
        await session.ask("Look.")
        if when == "half":
            await session.ask(results={ONE: 1})
        await crash(session, which)
        if when == "all":
            await session.ask(results={ONE: 1})
            await crash(session, which)
        assert [each.call.id for each in session.pending] == ([ONE, OTHER] if when == "before" else [OTHER])
        answer = await session.ask(results={ONE: 1, OTHER: 2})
        assert (answer.status, answer.text, len(answer.attempts)) == ("complete", "Both.", 1)
        statuses = [event.status for event in log(runtime, session) if isinstance(event, TurnEnded)]
        assert statuses == ["complete"]


@PUT_AWAY
async def test_closing_a_session_cancels_its_pending_calls_first(put_away: str) -> None:
    async with scripted("openai_chat", TWO, tools=[LOOK]) as (_, runtime, session):
        await session.ask("Look.")
        leave(session, put_away)
        await session.close()
        events = log(runtime, session)
        assert [type(event).__name__ for event in events[-2:]] == ["TurnEnded", "Closed"]
        ends = [event.call_id for event in events if isinstance(event, Cancelled | Returned)]
        assert ends == [ONE, OTHER]


async def test_a_resumed_turn_stops_at_the_round_limit() -> None:
    def asks(request: dict[str, Any]) -> Turn:  # Any: a request body
        return Turn(Say("Enough.")) if request.get("tool_choice") == "none" else Turn(Call("look", {}))

    server = openai()
    server.script = type(server)(asks).script
    async with scripted(server, tools=[LOOK]) as (_, _, session):
        answer = await session.ask("Look, and look again.")
        resumed = 0
        while answer.status == "awaiting":
            resumed += 1
            assert answer.rounds == resumed
            answer = await session.ask(results={answer.pending_calls[0].id: "nothing"})
        assert (answer.text, answer.rounds, resumed) == ("Enough.", 25, 24)
