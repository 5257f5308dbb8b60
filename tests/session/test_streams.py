"""The stream of an ask: its events, their order, which may be dropped, and its single terminal event."""

import anyio
import anyio.lowlevel
import pytest

from actors.core.log.call_events import Returned
from actors.core.log.events import AskStarted, LogEvent, RequestSent, RoundEnded, TurnEnded
from actors.core.stream_events.ask_events import CallEnd, CompleteEvent, DurableEvent, ErrorEvent
from actors.core.stream_events.events import ResyncEvent, SessionEvent
from actors.core.stream_events.round_events import (
    MessageEvent,
    TextEvent,
    ThinkingEvent,
    ToolCallEvent,
    ToolResultsEvent,
)
from actors.errors import QueueFull
from actors.session import streams
from actors.testing import SERVER_ERROR, Call, Disconnect, Say, Stall, Think, Turn
from tests.runtime_support import Gate, anthropic, bodies, gather_events, log, openai, runtime_with
from tests.scripted import scripted

pytestmark = pytest.mark.anyio

TURNS = (
    Turn(
        Think("Let me see. " * 4),
        Say("One moment. " * 4),
        Call("work", {"name": "a"}),
        Call("work", {"name": "b"}),
    ),
    Turn(Say("Both are done. " * 4)),
)


def sequence_numbers(events: list[SessionEvent]) -> list[int]:
    return [seq for event in events if (seq := getattr(event, "seq", None)) is not None]


def assert_sound(events: list[SessionEvent]) -> None:
    """Check that durable events have ascending numbers, and that the only terminal event is the last one."""
    seqs = sequence_numbers(events)
    assert seqs == sorted(seqs)
    shown = [e for e in events if isinstance(e, DurableEvent) and not isinstance(e, ToolCallEvent)]
    together = [event.seq for event in shown][:-1]
    assert len(set(together)) == len(together)
    assert [isinstance(event, CompleteEvent | ErrorEvent) for event in events].count(True) == 1
    assert isinstance(events[-1], CompleteEvent | ErrorEvent)


@pytest.mark.parametrize("make_server", [openai, anthropic])
@pytest.mark.requirement("U-01", "U-02", "U-03")
async def test_a_stream_yields_all_events_in_order_and_ends_once(make_server: type) -> None:
    gate = Gate()
    gate.open("a", "b")
    async with scripted(make_server(*TURNS), tools=[gate.tool]) as (_, _, session):
        events = await gather_events(session, "Do it.")
        assert_sound(events)
        text = [event for event in events if isinstance(event, TextEvent) and event.round == 1]
        assert "".join(event.text for event in text) == "One moment. " * 4
        assert len(text) > 1
        thinking = [event for event in events if isinstance(event, ThinkingEvent)]
        assert "".join(event.text for event in thinking) == "Let me see. " * 4
        deltas = [e for e in events if isinstance(e, TextEvent | ThinkingEvent) and e.round == 1]
        assert [e.offset for e in deltas] == [
            sum(len(d.text) for d in deltas[:at]) for at in range(len(deltas))
        ]
        called = [event for event in events if isinstance(event, ToolCallEvent)]
        assert [(call.name, call.arguments) for call in called] == [
            ("work", {"name": "a"}),
            ("work", {"name": "b"}),
        ]
        (ran,) = [e for e in events if isinstance(e, ToolResultsEvent)]
        assert ran.results == tuple(CallEnd(call.call_id, "returned") for call in called)
        assert [item.call_id for item in (await session.ledger()).interactions()] == [
            c.call_id for c in called
        ]
        order = [event.type for event in events]
        kept = [name for at, name in enumerate(order) if at == 0 or order[at - 1] != name]
        assert kept == [
            *("ask_started", "turn_started", "request_sent", "request_rendered", "thinking", "text"),
            *("message", "tool_call", "tool_results", "request_sent", "request_rendered", "text"),
            *("message", "turn_ended", "complete"),
        ]


@pytest.mark.requirement("PROMISE-6", "U-02")
async def test_a_durable_event_is_in_the_log_before_it_is_shown() -> None:
    gate = Gate()
    gate.open("a", "b")
    kinds: dict[str, type[LogEvent]] = {
        "ask_started": AskStarted,
        "request_sent": RequestSent,
        "message": RoundEnded,
        "tool_results": Returned,
        "turn_ended": TurnEnded,
    }
    async with scripted("openai_chat", *TURNS, tools=[gate.tool]) as (_, runtime, session):
        seen = 0
        async with session.stream("Do it.") as events:
            async for event in events:
                if (seq := getattr(event, "seq", None)) is None:
                    continue
                stored = log(runtime, session)
                assert seq <= len(stored)
                if event.type in kinds:
                    assert isinstance(stored[seq - 1], kinds[event.type])
                    seen += 1
        assert seen == 7


@pytest.mark.parametrize(
    "faults", [{0: SERVER_ERROR}, {0: Disconnect()}, {0: Disconnect(after_bytes=500)}, {1: SERVER_ERROR}]
)
@pytest.mark.requirement("U-02")
async def test_a_failed_stream_ends_with_one_error_event(faults: dict[int, object]) -> None:
    gate = Gate()
    gate.open("a", "b")
    async with scripted(openai(*TURNS, faults=faults), tools=[gate.tool]) as (_, _, session):
        events = await gather_events(session, "Do it.")
        assert_sound(events)
        assert isinstance(events[-1], ErrorEvent)
        assert events[-1].result.error
        assert events[-1].result.status == "failed"


@pytest.mark.requirement("U-02")
async def test_a_cancelled_stream_ends_with_one_complete_event() -> None:
    async with scripted(openai(*TURNS, faults={0: Stall(after_bytes=900)})) as (_, _, session):
        events: list[SessionEvent] = []
        async with session.stream("Do it.") as stream:
            async for event in stream:
                events.append(event)
                if event.type == "thinking":
                    await session.cancel()
        assert_sound(events)
        assert isinstance(events[-1], CompleteEvent)
        assert events[-1].result.status == "cancelled"


@pytest.mark.requirement("U-01")
async def test_text_arrives_before_the_answer_is_complete() -> None:
    async with runtime_with(a=openai(Turn(Say("x" * 4000)), faults={0: Stall(after_bytes=6000)})) as runtime:
        session = await runtime.open("a")
        async with session.stream("Do it.") as events:
            async for event in events:
                if event.type == "text":
                    break  # the server has not sent the rest, and never will
        await session.cancel()


@pytest.mark.requirement("PROMISE-8", "PROMISE-9")
async def test_a_stalled_subscriber_receives_resync_and_delays_no_ask(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "BUFFER", 4)
    gate = Gate()
    gate.open("a", "b")
    async with scripted("openai_chat", *TURNS, *TURNS, tools=[gate.tool]) as (_, runtime, session):
        async with session.stream("Do it.") as slow:
            assert (await session.ask("And again.")).status == "complete"
            events = [event async for event in slow]
        assert [isinstance(event, CompleteEvent) for event in events].count(True) == 1
        assert isinstance(events[-1], CompleteEvent)
        (resync,) = [e for e in events if isinstance(e, ResyncEvent)]
        missed = runtime._storage.read(session.id, after=resync.seq)
        assert len(missed) >= 12
        assert len(events) < 8


@pytest.mark.requirement("PROMISE-8")
async def test_a_slow_subscriber_may_miss_deltas_but_not_the_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "BUFFER", 16)
    async with scripted("openai_chat", Turn(Say("word " * 400))) as (_, _, session):
        async with session.stream("Do it.") as slow:
            assert (await session.ask("And?")).status == "complete"
            events = [event async for event in slow]
        (message,) = [e for e in events if isinstance(e, MessageEvent)]
        assert message.message.text == "word " * 400
        assert not [e for e in events if isinstance(e, ResyncEvent)]


@pytest.mark.requirement("PROMISE-8")
async def test_leaving_a_stream_early_does_not_stop_the_turn() -> None:
    gate = Gate()
    async with scripted("openai_chat", *TURNS, tools=[gate.tool]) as (server, _, session):
        async with session.stream("Do it.") as events:
            async for _ in events:
                break
        await gate.started("a", "b")
        gate.open("a", "b")
        assert (await session.ask("And?")).status == "complete"
        assert (await session.history())[3].text == "Both are done. " * 4
    assert server.received == 3


@pytest.mark.requirement("PROMISE-8")
async def test_an_ask_continues_after_its_caller_is_cancelled() -> None:
    gate = Gate()
    async with scripted("openai_chat", *TURNS, tools=[gate.tool]) as (_, _, session):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.ask, "Do it.")
            await gate.started("a", "b")
            tasks.cancel_scope.cancel()
        gate.open("a", "b")
        assert (await session.ask("And?")).status == "complete"
        assert [message.text for message in await session.history()][3] == "Both are done. " * 4


@pytest.mark.requirement("PROMISE-9")
async def test_asks_beyond_the_queue_limit_are_rejected_and_queued_asks_are_not_lost() -> None:
    gate = Gate()
    async with scripted("openai_chat", TURNS[0], tools=[gate.tool]) as (_, _, session):
        ends: list[str] = []

        async def ask(words: str) -> None:
            ends.append((await session.ask(words)).status)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, "first")
            await gate.started("a", "b")
            for number in range(8):
                async with session.stream(f"waits {number}"):
                    pass  # accepted without a reader
            with pytest.raises(QueueFull, match="8 queued asks"):
                await session.ask("one too many")
            gate.open("a", "b")
        assert (await session.ask("last")).status == "complete"
        assert ends == ["complete"]
        said = [message.text for message in await session.history() if message.role == "user"]
        assert said == ["first", *(f"waits {number}" for number in range(8)), "last"]


async def test_the_streams_of_different_sessions_do_not_mix() -> None:
    def echo(request: dict[str, object]) -> Turn:
        messages = request["messages"]
        assert isinstance(messages, list)
        return Turn(Say(str(messages[-1]["content"])))

    from actors.testing import OpenAIServer

    async with runtime_with(a=OpenAIServer(echo)) as runtime:
        texts: dict[str, str] = {}

        async def talk(name: str) -> None:
            session = await runtime.open("a", id=name)
            for _ in range(5):
                events = await gather_events(session, name)
                shown = "".join(event.text for event in events if isinstance(event, TextEvent))
                texts[name] = texts.get(name, "") + shown

        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(talk, f"session-number-{number}")
        for name, text in texts.items():
            assert text.count(name) == 5
            assert not [other for other in texts if other != name and other in text.replace(name, "")]


async def test_every_provider_family_accepts_an_empty_user_message() -> None:
    one, two = openai(), anthropic()
    async with runtime_with(a=one, b=two) as runtime:
        session = await runtime.open("a")
        assert (await session.ask("")).status == "complete"
        await session.switch("b")
        assert (await session.ask(" \n")).status == "complete"
    assert one.refusals == two.refusals == []
    assert len(bodies(one)) == len(bodies(two)) == 1


@pytest.mark.requirement("U-14")
async def test_text_and_calls_are_shown_while_the_tools_still_run() -> None:
    gate, seen = Gate(), list[str]()
    async with runtime_with(a=openai(*TURNS)) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        async with session.stream("Do it.") as events:
            async for event in events:
                seen.append(event.type)
                if seen.count("tool_call") == 2:
                    await gate.started("a", "b")
                    assert seen.count("text") > 0
                    gate.open("a", "b")
                    break
            assert (await anext(events)).type == "tool_results"
            rest = [event async for event in events]
    assert [event.text for event in rest if isinstance(event, TextEvent)] != []
