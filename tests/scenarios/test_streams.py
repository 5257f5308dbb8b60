"""Run scenarios 46, 47 and 49 with a runtime over strict servers."""

import json
from collections.abc import Callable

import pytest

from actors.config import BackendLimits, PoolSettings
from actors.core.log.events import TurnEnded
from actors.core.stream_events.ask_events import ErrorEvent
from actors.strict.server import LoopbackServer
from actors.testing import (
    QUOTA,
    SERVER_ERROR,
    Call,
    InjectedFault,
    OpenRouterServer,
    Say,
    Status,
    Think,
    Turn,
)
from tests.runtime_support import (
    Gate,
    anthropic,
    assert_paired,
    bodies,
    gather_events,
    log,
    openai,
    results,
    runtime_with,
    synthetic,
)
from tests.scripted import scripted

pytestmark = pytest.mark.anyio

POOL = {"pool": PoolSettings(members=("a", "b"), policy="failover")}
TOO_LARGE = Status(
    429,
    type="tokens",
    code="rate_limit_exceeded",
    message="Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 34307.",
)
UNREADABLE = Status(
    400, code="tool_use_failed", message="Failed to call a function. See 'failed_generation'."
)


@pytest.mark.parametrize("fault", [QUOTA, SERVER_ERROR], ids=["quota", "500"])
@pytest.mark.parametrize(("first", "second"), [(openai, anthropic), (anthropic, openai)])
async def test_calls_are_completed_if_their_backend_then_fails_and_the_next_backend_answers(
    first: Callable[..., LoopbackServer], second: Callable[..., LoopbackServer], fault: InjectedFault
) -> None:
    gate = Gate()
    gate.open("x", "y")
    batch = Turn(Call("work", {"name": "x"}), Call("work", {"name": "y"}))
    one, two = first(batch, faults={1: fault}), second(Turn(Say("Both are done.")))
    async with runtime_with(a=one, b=two, pools=POOL) as runtime:
        session = await runtime.open("pool", tools=[gate.tool])
        answer = await session.ask("Do both.")
        assert (answer.status, answer.binding.backend) == ("complete", "b")
        ends = [event.status for event in log(runtime, session) if isinstance(event, TurnEnded)]
        assert ends == ["handed_over", "complete"]
    assert sorted(gate.runs) == ["x", "y"]
    (body,) = bodies(two)
    assert_paired(body)
    assert synthetic(body) == []
    assert list(results(body).values()) == ["x is done", "y is done"]
    assert two.refusals == []


async def test_a_request_too_large_for_the_rate_limit_bucket_fails_over_without_waiting() -> None:
    one, two = openai(faults={0: TOO_LARGE}), anthropic(Turn(Say("Here.")))
    async with runtime_with(a=one, b=two, pools=POOL, backend=BackendLimits(attempts=4)) as runtime:
        session = await runtime.open("pool")
        answer = await session.ask("A long story.")
        assert (answer.status, answer.binding.backend) == ("complete", "b")
    assert one.received == 1


@pytest.mark.usefixtures("short_waits")
async def test_an_unreadable_call_is_retried_and_not_kept() -> None:
    gate = Gate()
    gate.open("x")
    one = openai(Turn(Call("work", {"name": "x"})), Turn(Say("Done.")), faults={0: UNREADABLE})
    async with scripted(one, tools=[gate.tool], backend=BackendLimits(attempts=3)) as (_, _, session):
        answer = await session.ask("Do it.")
        assert (answer.status, answer.text) == ("complete", "Done.")
        roles = [message.role for message in await session.history()]
        assert roles == ["user", "assistant", "tool", "assistant"]
    assert gate.runs == ["x"]
    assert one.received == 3
    assert bodies(one)[0] == bodies(one)[1]


async def test_reasoning_from_another_upstream_is_dropped_and_the_session_continues() -> None:
    """The upstream is known only from an answer, so only the first request after a change may be rejected."""
    gate = Gate()
    gate.open("x")
    turns = [
        Turn(Think("north"), Call("work", {"name": "x"})),
        Turn(Think("south"), Say("Done.")),
        Turn(Say("Bye.")),
    ]
    one = OpenRouterServer(turns, upstreams=["Anthropic", "Google"])
    async with runtime_with(a=one) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        assert (await session.ask("Do it.")).text == "Done."
        assert (await session.ask("And?")).text == "Bye."
        assert runtime._refused_requests.count == len(one.refusals)
    assert [refusal.rule for refusal in one.refusals] == ["ORT-03"]
    assert gate.runs == ["x"]
    assert "north" not in json.dumps(bodies(one)[-1])


@pytest.mark.usefixtures("short_waits")
async def test_a_turn_fails_after_a_few_unreadable_calls() -> None:
    one = openai(faults=dict.fromkeys(range(20), UNREADABLE))
    async with scripted(one, backend=BackendLimits(attempts=3)) as (_, _, session):
        events = await gather_events(session, "Do it.")
        assert isinstance(events[-1], ErrorEvent)
        assert [message.role for message in await session.history()] == ["user"]
    assert one.received == 3
