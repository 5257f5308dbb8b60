"""Events read from the log equal the events of the live stream, as JSON."""

import json
from collections.abc import Callable
from itertools import groupby
from typing import Any

import anyio
import jsonschema_rs
import pytest

from actors import Session, tool
from actors.config import BackendLimits, PoolSettings, RuntimeLimits
from actors.core.log.call_events import Cancelled
from actors.core.log.events import LogEvent
from actors.core.session.open_asks import AskStartSearch
from actors.core.session.publishing import Publisher
from actors.core.stream_events.ask_events import DurableEvent
from actors.core.stream_events.event_json import SCHEMA, event_json, sse_frame
from actors.core.stream_events.events import SessionEvent
from actors.core.stream_events.round_events import ToolCallEvent, ToolResultsEvent
from actors.runtime.runtime import Runtime
from actors.strict.server import LoopbackServer
from actors.testing import SERVER_ERROR, Call, Disconnect, Say, Stall, Status, Think, Turn
from actors.tools import Tool
from tests.runtime_support import Gate, anthropic, gather_events, log, openai, runtime_with
from tests.scripted import scripted

pytestmark = pytest.mark.anyio

Json = dict[str, Any]  # Any: an event's fields


@tool
def look(name: str) -> str:
    """Look something up."""
    if name == "bad":
        raise ValueError("no such thing")
    return f"{name} is there"


def durable_json(events: list[SessionEvent]) -> list[Json]:
    """Return the durable events as JSON, sorted by number, because a stream ends with its terminal event."""
    live = [event_json(event) for event in events]
    return sorted([each for each in live if each.get("seq") is not None], key=lambda each: int(each["seq"]))


def events_of_log(runtime: Runtime, session: Session) -> list[Json]:
    events = log(runtime, session)
    whole = publish_all(Publisher(), events)
    for place in range(len(events)):
        start, first = AskStartSearch(), place
        while first and not start.is_found:
            first, end = max(0, first - 3), first
            start.search(first, events[first:end])
        publisher = start.publisher()
        assert publisher.seq <= place
        rest = publish_all(publisher, events[publisher.seq :])
        assert [each for each in rest if each["seq"] > place] == [
            each for each in whole if each["seq"] > place
        ]
    return whole


def publish_all(publisher: Publisher, events: list[LogEvent]) -> list[Json]:
    return [event_json(shown) for event in events for shown in publisher.publish(event)]


def ask_events(live: list[Json]) -> list[Json]:
    """Return the events that belong to an ask."""
    return [each for each in live if each["type"] not in ("session_opened", "session_closed", "compacted")]


CALLING = Turn(Think("Hm."), Say("Wait."), Call("look", {"name": "a"}), Call("look", {"name": "bad"}))
ENDING = Turn(Say("Done."))
REFUSED = Status(
    400,
    message="An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    "'tool_call_id'. The following tool_call_ids did not have response messages: call_A1",
)
SCENES: dict[str, Callable[[], LoopbackServer]] = {
    "an answer": lambda: openai(ENDING),
    "a batch": lambda: anthropic(CALLING, ENDING),
    "wrong arguments": lambda: openai(Turn(Call("look", {"nam": 1})), CALLING, ENDING),
    "an unknown tool": lambda: openai(Turn(Call("lok", {}), Call("look", {"name": "a"})), ENDING),
    "too many rounds": lambda: openai(CALLING, CALLING, CALLING, CALLING, CALLING),
    "no answer": lambda: openai(ENDING, faults={0: SERVER_ERROR}),
    "no answer to the results": lambda: anthropic(CALLING, ENDING, faults={1: SERVER_ERROR}),
    "an answer cut off": lambda: anthropic(CALLING, ENDING, faults={0: Disconnect(after_bytes=900)}),
    "an answer cut off at its start": lambda: anthropic(ENDING, faults={0: Disconnect(after_bytes=500)}),
    "a refusal": lambda: openai(Turn(Call("look", {"name": "a"})), ENDING, faults={1: REFUSED}),
    "refusals": lambda: openai(ENDING, faults={0: REFUSED, 1: REFUSED, 2: REFUSED}),
}


@pytest.mark.alternating
@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.requirement("U-03")
async def test_the_log_yields_the_same_events_as_the_stream(scene: str) -> None:
    limits = RuntimeLimits(max_rounds=4)
    async with scripted(SCENES[scene](), tools=[look], limits=limits) as (_, runtime, session):
        events = [await gather_events(session, "Do it."), await gather_events(session, "And?")]
        live = [each for part in events for each in durable_json(part)]
        assert len(live) > 10
        assert ask_events(events_of_log(runtime, session)) == live


async def test_calls_that_never_started_are_reported_when_their_turn_ends() -> None:
    limits = RuntimeLimits(max_rounds=4)
    async with scripted(SCENES["too many rounds"](), tools=[look], limits=limits) as (_, runtime, session):
        events = await gather_events(session, "Do it.")
        closed = [event for event in log(runtime, session) if isinstance(event, Cancelled)]
    assert {event.reason for event in closed} == {"never_started"}
    ends = {
        end.call_id: end.outcome
        for event in events
        if isinstance(event, ToolResultsEvent)
        for end in event.results
    }
    assert {ends[event.call_id] for event in closed} == {"never_started"}
    assert ends.keys() == {event.call_id for event in events if isinstance(event, ToolCallEvent)}


@pytest.mark.requirement("U-03")
async def test_the_log_yields_the_same_events_after_a_failover() -> None:
    pools = {"pool": PoolSettings(members=("a", "b"), policy="failover")}
    here, there = openai(ENDING, faults={0: SERVER_ERROR, 1: SERVER_ERROR}), anthropic(CALLING, ENDING)
    async with runtime_with(pools=pools, a=here, b=there) as runtime:
        session = await runtime.open("pool", tools=[look])
        live = durable_json(await gather_events(session, "Do it."))
        assert [each["backend"] for each in live if each["type"] == "failover"] == ["b"]
        assert ask_events(events_of_log(runtime, session)) == live


@pytest.mark.parametrize("at", ["thinking", "message", "request_rendered"])
@pytest.mark.requirement("U-03")
async def test_the_log_yields_the_same_events_after_a_cancel(at: str) -> None:
    gate = Gate()
    gate.open("b")
    turns = (
        Turn(Think("Let me see. " * 20), Call("work", {"name": "a"}), Call("work", {"name": "b"})),
        ENDING,
    )
    server = openai(*turns) if at == "message" else openai(*turns, faults={0: Stall(after_bytes=900)})
    async with runtime_with(a=server, b=openai(ENDING)) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        events: list[SessionEvent] = []
        async with session.stream("Do it.") as stream, anyio.create_task_group() as tasks:
            async for event in stream:
                events.append(event)
                if at == event.type:
                    await session.switch("b")
                    tasks.start_soon(session.cancel)
        live = durable_json(events)
        assert [each["result"]["status"] for each in live if each["type"] == "complete"] == ["cancelled"]
        assert ask_events(events_of_log(runtime, session)) == live


@pytest.mark.requirement("U-03")
async def test_every_event_fits_its_schema_and_its_sse_frame() -> None:
    judge = jsonschema_rs.validator_for(SCHEMA)
    refusing = openai(
        Turn(Call("look", {"name": "a"})), ENDING, faults={1: REFUSED, 2: REFUSED, 3: SERVER_ERROR}
    )
    async with runtime_with(a=anthropic(CALLING, ENDING), b=refusing) as runtime:
        for target in ("a", "b"):
            session = await runtime.open(target, tools=[look])
            live = await gather_events(session, "Do it.")
            publisher = Publisher()
            late = [live for event in log(runtime, session) for live in publisher.publish(event)]
            for event in [*live, *late]:
                as_json = event_json(event)
                assert [error.message for error in judge.iter_errors(as_json)] == []
                *place, kind, data = sse_frame(event).decode().removesuffix("\n\n").split("\n")
                assert (kind, json.loads(data.removeprefix("data: "))) == (f"event: {event.type}", as_json)
                is_place = isinstance(event, DurableEvent) and not as_json.get("more")
                assert place == ([f"id: {as_json['seq']}"] if is_place else [])


@pytest.mark.requirement("U-03")
async def test_a_subscriber_resumes_only_after_all_events_with_one_number() -> None:
    async with scripted("openai_chat", CALLING, ENDING, tools=[look]) as (_, runtime, session):
        await session.ask("Do it.")
        groups = groupby(events_of_log(runtime, session), key=lambda each: int(each["seq"]))
        more = [[each.get("more", False) for each in group] for _, group in groups]
        assert [each for each in more if len(each) > 1] == [[True, True, False], [True, False]]
        assert {each[-1] for each in more} == {False}


@pytest.mark.parametrize("retried", [True, False])
@pytest.mark.parametrize("ends", ["provided", "cancelled"])
@pytest.mark.requirement("U-03")
async def test_the_log_yields_the_same_events_for_an_ask_that_waits(ends: str, retried: bool) -> None:
    find = Tool.external("find", "Finds something, elsewhere.", {"type": "object"}, read_only=True)
    asking = Turn(Say("Wait."), Call("find", {"n": 1}), Call("look", {"name": "a"}), Call("find", {"n": 2}))
    server = openai(asking, ENDING, faults={0: Status(429, retry_after="0")} if retried else {})
    async with runtime_with(a=server, backend=BackendLimits(attempts=2)) as runtime:
        session = await runtime.open("a", tools=[find, look])
        live = durable_json(await gather_events(session, "Do it."))
        assert [each["result"]["status"] for each in live if each["type"] == "complete"] == ["awaiting"]
        assert ask_events(events_of_log(runtime, session)) == live
        first, second = (each.call.id for each in session.pending)
        if ends == "cancelled":
            await session.cancel()
        else:
            async with session.stream(results={first: 1, second: 2}) as stream:
                live += durable_json([event async for event in stream])
            assert ask_events(events_of_log(runtime, session)) == live
        last = events_of_log(runtime, session)[-1]
        assert (last["type"], last["result"]["status"]) == (
            "complete",
            "cancelled" if ends == "cancelled" else "complete",
        )
        assert [each["status"] for each in last["result"]["attempts"]] == ["retried"] * retried + [
            last["result"]["status"]
        ]
        late = [event_json(event) async for event in session.events(follow=False)]
        assert late == events_of_log(runtime, session)
