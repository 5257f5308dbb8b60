"""Every kind of ask runs its calls on the session's own scheduler, and only results are sent back.

`tests/cli/test_modes.py` compares the modes of the command line event by event and byte by byte.
"""

import json
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import anyio
import pytest

from actors import Session, subagent, tool
from actors.core.log.call_events import CallEventBase, Failed, Returned
from actors.core.log.events import Closed, LogEvent, Opened
from actors.scheduler.scheduler_actor import RunBatch, SchedulerActor, SchedulerCommand
from actors.strict.server import LoopbackServer
from actors.testing import (
    AnthropicServer,
    BedrockServer,
    Call,
    GeminiServer,
    OpenAIServer,
    ResponsesServer,
    Say,
    Turn,
)
from tests.runtime_support import gather_events, openai, runtime_with
from tests.scripted import scripted

pytestmark = pytest.mark.anyio


@tool
async def price(hotel: str) -> str:
    """Price of a night."""
    if hotel == "none":
        raise LookupError("no such hotel")
    return f"{hotel}: 120"


CALLING = Turn(Say("Let me see."), Call("price", {"hotel": "Astoria"}), Call("price", {"hotel": "Dante"}))
DONE = Turn(Say("Both cost 120."))


@pytest.mark.requirement("REQ-915-030", "REQ-915-029")
async def test_every_batch_of_a_session_runs_on_the_scheduler_of_that_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[tuple[SchedulerActor, tuple[str, ...]]] = []
    receive = SchedulerActor.receive

    def receive_and_note(self: SchedulerActor, command: SchedulerCommand) -> None:
        if isinstance(command, RunBatch):
            ran.append((self, tuple(call.name for call in command.calls)))
        receive(self, command)

    monkeypatch.setattr(SchedulerActor, "receive", receive_and_note)

    async def run_every_way(session: Session) -> SchedulerActor:
        """Run calls in every way that a session offers; return the only scheduler involved."""
        ran.clear()
        await session.ask("Prices?")
        await gather_events(session, "Prices?")
        await session.call_tool("price", {"hotel": "Astoria"})
        assert [names for _, names in ran] == [("price", "price"), ("price", "price"), ("price",)]
        (scheduler,) = {id(each): each for each, _ in ran}.values()
        return scheduler

    async with runtime_with(
        a=openai(*[CALLING, DONE] * 4),
        b=openai(CALLING, DONE),
        c=openai(Turn(Call("helper", {"task": "Find the prices."})), DONE),
    ) as runtime:
        first, second = [await runtime.open("a", tools=[price]) for _ in range(2)]
        schedulers = [await run_every_way(first), await run_every_way(second)]
        assert schedulers[0] is not schedulers[1]
        ran.clear()
        helper = subagent("helper", "Helps.", target="b", tools=[price])
        await (await runtime.open("c", tools=[helper])).ask("Have the prices found.")
    assert [names for _, names in ran] == [("helper",), ("price", "price")]
    assert len({id(each) for each in (*schedulers, *[each for each, _ in ran])}) == 4


@pytest.mark.requirement("REQ-915-045", "REQ-915-029")
async def test_a_turn_of_five_calls_has_the_same_log_in_a_session_and_a_subagent() -> None:
    @tool(approval="deny")
    async def book(hotel: str) -> str:
        """Book a hotel."""
        return f"{hotel}: booked"

    five = Turn(
        Say("Let me see."),
        Call("price", {"hotel": "Astoria"}),
        Call("price", raw='{"hot'),
        Call("book", {"hotel": "Astoria"}),
        Call("price", {"hotel": "none"}),
        Call("spa", {"hotel": "Astoria"}),
        ids="restart",
    )
    task, prompt, offered = "Price and book the hotels.", "Be brief.", [price, book]
    above = openai(Turn(Call("helper", {"task": task})), DONE)
    below = openai(five, DONE, five, DONE)
    async with runtime_with(a=above, b=below) as runtime:
        session = await runtime.open("b", tools=offered, system=prompt)
        await session.ask(task)
        helper = subagent("helper", "Helps.", target="b", system=prompt, tools=offered)
        await (await runtime.open("a", tools=[helper], id="trip")).ask("Go on.")
        logs = [_comparable(runtime._storage.read(name)) for name in (session.id, "trip-c1")]
    assert below.refusals == []
    first, second = _requests(below)[:2], _requests(below)[2:]
    assert first == second
    assert logs[0] == logs[1]
    ends = [type(event).__name__ for event in logs[0] if isinstance(event, CallEventBase)]
    assert sorted(ends) == sorted(
        ["Returned", "Refused", "Denied", "Failed", "Refused", *["Scheduled"] * 5, *["Started"] * 2]
    )


def _requests(server: LoopbackServer) -> list[dict[str, Any]]:  # Any: JSON values
    """Return the request bodies without the key of the session's cache."""
    bodies = [json.loads(exchange.body) for exchange in server.requests]
    return [{name: value for name, value in body.items() if name != "prompt_cache_key"} for body in bodies]


def _comparable(log: Sequence[LogEvent]) -> list[LogEvent]:
    """Return a log without session-specific events, with the ends of concurrent calls in the order of their ids."""
    kept = [event for event in log if not isinstance(event, Opened | Closed)]
    return sorted(kept, key=lambda event: event.call_id if isinstance(event, Returned | Failed) else "")


@pytest.mark.requirement("REQ-915-032")
@pytest.mark.parametrize(
    "make_server", [OpenAIServer, AnthropicServer, ResponsesServer, GeminiServer, BedrockServer]
)
async def test_the_request_after_a_batch_adds_only_one_result_per_call(
    make_server: Callable[..., LoopbackServer],
) -> None:
    server = make_server([CALLING, DONE])
    with anyio.fail_after(30):
        async with scripted(server, tools=[price]) as (_, _, session):
            await session.ask("Prices?")
    before, after = [_items(json.loads(exchange.body)) for exchange in server.requests]
    new = [_kinds(item) for item in after[len(before) :]]
    last = max(at for at, kinds in enumerate(new) if "call" in kinds)
    assert [*chain(*new[: last + 1])] == ["call", "call"]
    assert [*chain(*new[last + 1 :])] == ["result", "result"]


def _items(body: dict[str, Any]) -> list[dict[str, Any]]:  # Any: JSON values
    """Return the messages or items of a body, without the system prompt."""
    items: list[dict[str, Any]] = body.get("messages") or body.get("input") or body["contents"]
    return [item for item in items if item.get("role") != "system"]


def _kinds(item: dict[str, Any]) -> list[str]:  # Any: JSON values
    """Return the kinds of a message's parts, `call` or `result`, in any dialect."""
    if item.get("role") == "tool" or item.get("type") == "function_call_output":
        return ["result"]
    if item.get("type") == "function_call":
        return ["call"]
    parts = item.get("tool_calls") or item.get("content") or item.get("parts") or []
    return [kind for part in parts if isinstance(part, dict) for kind in _kind(part)]


def _kind(part: dict[str, Any]) -> list[str]:  # Any: JSON values
    if "function" in part or part.get("type") == "tool_use" or part.keys() & {"toolUse", "functionCall"}:
        return ["call"]
    is_result = part.get("type") == "tool_result" or part.keys() & {"toolResult", "functionResponse"}
    return ["result"] if is_result else []
