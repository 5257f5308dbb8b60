"""`session.events`: equal for all subscribers, resumable at any event, and free of leftovers."""

import gc
from contextlib import aclosing

import anyio
import anyio.lowlevel
import pytest

from actors import Session, tool
from actors.core.stream_events.events import ResyncEvent, SessionEvent
from actors.errors import ReentrantCall, SessionClosed, UnknownSeq
from actors.events import event_json
from actors.journal import readers
from actors.runtime.runtime import Runtime
from actors.testing import Call, Say, Stall, Think, Turn
from tests.runtime_support import Gate, gather_events, openai, runtime_with
from tests.scripted import scripted

pytestmark = pytest.mark.anyio


@tool
def look(name: str) -> str:
    """Look something up."""
    return f"{name} is there"


TURNS = (Turn(Think("Hm. " * 30), Say("Wait. " * 30), Call("look", {"name": "a"})), Turn(Say("Done. " * 30)))


async def events_so_far(session: Session, after: int = 0) -> list[SessionEvent]:
    return [event async for event in session.events(after=after, follow=False)]


def is_durable(event: SessionEvent) -> bool:
    return getattr(event, "seq", None) is not None


def assert_no_subscriber(runtime: Runtime) -> None:
    gc.collect()
    assert runtime._host is not None  # internal state, which no public method returns
    assert not runtime._host.readers.subscribers


@pytest.mark.requirement("U-03", "PROMISE-8")
async def test_early_and_late_subscribers_receive_the_same_events() -> None:
    seen: dict[str, list[SessionEvent]] = {"one": [], "two": []}
    async with scripted("anthropic", *TURNS, *TURNS, tools=[look]) as (_, runtime, session):

        async def read(name: str) -> None:
            async for event in session.events():
                seen[name].append(event)

        async with anyio.create_task_group() as tasks:
            for name in seen:
                tasks.start_soon(read, name)
            await anyio.wait_all_tasks_blocked()
            stream = await gather_events(session, "Do it.")
            await session.ask("And?")
            late = await events_so_far(session)
            await session.close()
        whole = await events_so_far(session)
        assert_no_subscriber(runtime)
    assert seen["one"] == seen["two"]
    durable = [event_json(event) for event in seen["one"] if is_durable(event)]
    assert durable == [event_json(event) for event in whole]
    assert durable[: len(late)] == [event_json(event) for event in late]
    assert (durable[0]["type"], durable[-1]["type"]) == ("session_opened", "session_closed")
    asked = [event_json(event) for event in stream]
    assert [event_json(event) for event in seen["one"]][1 : len(asked) + 1] == asked


@pytest.mark.requirement("U-03")
async def test_a_subscriber_resumes_at_any_event_without_a_gap() -> None:
    async with scripted("openai_chat", *TURNS, tools=[look]) as (_, _, session):
        await session.ask("Do it.")
        whole = await events_so_far(session)
        for cut in range(len(whole) + 1):
            place = 0
            for event in whole[:cut]:
                if not getattr(event, "more", False):
                    place = getattr(event, "seq", 0)
            before = [event for event in whole[:cut] if getattr(event, "seq", 0) <= place]
            assert before + await events_so_far(session, after=place) == whole


@pytest.mark.requirement("PROMISE-8", "PROMISE-9")
async def test_a_slow_subscriber_receives_resync_and_misses_only_deltas(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(readers, "MAX_DELTAS", 8)
    async with scripted("openai_chat", *TURNS, tools=[look]) as (_, _, session):
        events = session.events()
        first = await anext(events)
        assert (await session.ask("Do it.")).status == "complete"
        await session.close()
        seen = [first, *[event async for event in events]]
        whole = await events_so_far(session)
    resyncs = [event for event in seen if isinstance(event, ResyncEvent)]
    assert resyncs
    assert [event for event in seen if is_durable(event) and event not in resyncs] == whole
    assert len([event for event in seen if not is_durable(event)]) <= 8


@pytest.mark.requirement("PROMISE-8")
async def test_a_subscriber_that_joins_mid_answer_receives_the_rest_live() -> None:
    words = Turn(Say("word " * 900))
    async with scripted(openai(words, faults={0: Stall(after_bytes=60_000)})) as (_, runtime, session):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.ask, "Do it.")
            while (await events_so_far(session))[-1].type != "request_sent":
                await anyio.lowlevel.checkpoint()
            with anyio.fail_after(20):
                async with aclosing(session.events()) as events:
                    async for event in events:
                        if event.type == "text":
                            break
            await session.cancel()
        assert_no_subscriber(runtime)


@pytest.mark.requirement("PROMISE-8")
async def test_reading_an_idle_or_closed_session_does_not_activate_it() -> None:
    async with scripted("openai_chat", *TURNS, tools=[look]) as (_, _, session):
        await session.ask("Do it.")
        assert session._lifecycle.passivate()  # as if other sessions needed its place
        before = await events_so_far(session)
        assert session._lifecycle.passivate()
        assert len(before) > 10
        await session.close()
        assert (await events_so_far(session))[: len(before)] == before


@pytest.mark.parametrize("after", [-1, 99, "3"])
@pytest.mark.requirement("U-03")
async def test_reading_events_after_an_unknown_sequence_number_raises_unknown_seq(after: int) -> None:
    async with scripted("openai_chat", Turn(Say("ok"))) as (_, runtime, session):
        with pytest.raises(UnknownSeq, match=f"{after}"):
            await events_so_far(session, after=after)
        assert await events_so_far(session, after=1) == []
        assert_no_subscriber(runtime)


@pytest.mark.requirement("PROMISE-8", "PROMISE-12")
async def test_exiting_the_runtime_ends_subscriptions() -> None:
    ends: list[str] = []
    server = openai(Turn(Say("ok")))
    async with anyio.create_task_group() as tasks, scripted(server) as (_, runtime, session):
        async for _ in session.events():
            break
        assert_no_subscriber(runtime)

        async def read() -> None:
            try:
                async for _ in session.events():
                    pass
            except SessionClosed:
                ends.append("told")

        async with anyio.create_task_group() as going:
            going.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            going.cancel_scope.cancel()
        assert_no_subscriber(runtime)
        tasks.start_soon(read)
        await anyio.wait_all_tasks_blocked()
    assert ends == ["told"]


@pytest.mark.requirement("PROMISE-8")
async def test_a_subscriber_may_wait_again_after_a_timeout() -> None:
    async with scripted("openai_chat", Turn(Say("ok"))) as (_, _, session):
        events = session.events(after=1)
        with anyio.move_on_after(0):
            await anext(events)
        await session.ask("Do it.")
        assert (await anext(events)).type == "ask_started"


@pytest.mark.requirement("PROMISE-12")
async def test_a_tool_may_not_read_the_events_of_its_own_session() -> None:
    refused: list[str] = []
    async with runtime_with(a=openai(Turn(Call("peek", {})), Turn(Say("ok")))) as runtime:

        @tool
        async def peek() -> str:
            """Read the events."""
            try:
                await events_so_far(runtime.session("s"))
            except ReentrantCall as error:
                refused.append(str(error))
            return "no"

        session = await runtime.open("a", tools=[peek], id="s")
        assert (await session.ask("Do it.")).status == "complete"
    assert len(refused) == 1


@pytest.mark.requirement("PROMISE-8")
async def test_a_session_without_subscribers_has_no_subscriber_state() -> None:
    gate = Gate()
    gate.open("a")
    async with runtime_with(a=openai(Turn(Call("work", {"name": "a"})), Turn(Say("ok")))) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        unused = session.events()
        assert (await session.ask("Do it.")).status == "complete"
        assert_no_subscriber(runtime)
        await unused.aclose()
