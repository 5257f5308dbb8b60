"""The reference sequence, over HTTP, against servers that refuse whatever the real ones refuse.

[thinking][call][result][thinking][5 calls][1 result][thinking][text], then a switch of family, then alternation
between A and B, then failover. No request is refused, and the requests of each provider are inspected.
"""

import anyio
import pytest

from actors.config import PoolSettings
from actors.core.stream_events.ask_events import SwitchOutcome
from actors.runtime.runtime import Runtime
from actors.testing import OVERLOADED, Call, Say, Think, Turn
from tests.runtime_support import (
    Gate,
    anthropic,
    assert_paired,
    assert_prefixes,
    blocks,
    bodies,
    calls,
    openai,
    results,
    runtime_with,
    synthetic,
    wait_for_result,
)

pytestmark = pytest.mark.anyio

FIVE = [Call("work", {"name": name}) for name in "bcdef"]
REFERENCE = (
    Turn(Think("One piece first."), Call("work", {"name": "a"})),
    Turn(Think("Now five at once."), *FIVE),
    Turn(Think("Only one came back."), Say("b is done, the others were stopped.")),
)


async def play_reference(runtime: Runtime, target: str) -> None:
    """Play the sequence: five calls of which one returns, a cancel, and a second message."""
    gate = Gate()
    gate.open("a", "b")
    session = await runtime.open(target, tools=[gate.tool], id="reference")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.ask, "Do it all.")
        await gate.started(*"bcdef")
        await wait_for_result(session, "hist_tool_2")
        assert await session.cancel()
    answer = await session.ask("What do we have?")
    assert (answer.status, answer.text) == ("complete", "b is done, the others were stopped.")


@pytest.mark.requirement(
    "REQ-915-005",
    "REQ-915-011",
    "REQ-915-012",
    "REQ-915-013",
    "REQ-915-044",
    "PROMISE-1",
    "PROMISE-2",
    "PROMISE-11",
)
async def test_cancelled_calls_get_synthetic_results_and_finished_calls_keep_real_results() -> None:
    server = anthropic(*REFERENCE)
    async with runtime_with(a=server) as runtime:
        await play_reference(runtime, "a")
    assert server.refusals == []
    last = bodies(server)[-1]
    assert_paired(last)
    assert len(calls(last)) == 6
    assert len(synthetic(last)) == 4
    told = [content for content in results(last).values() if content not in synthetic(last)]
    assert told[:2] == ["a is done", "b is done"]
    thoughts = [block for _, block in blocks(last) if '"thinking"' in block]
    assert len(thoughts) == 2
    assert_prefixes(server)


@pytest.mark.requirement("REQ-915-004", "REQ-915-041", "PROMISE-1", "PROMISE-4")
async def test_a_session_with_cancelled_calls_continues_on_another_provider_and_back() -> None:
    one, two = (
        anthropic(*REFERENCE, Turn(Think("Back."), Say("Here again."))),
        openai(Turn(Say("I took over."))),
    )
    async with runtime_with(a=one, b=two) as runtime:
        await play_reference(runtime, "a")
        session = runtime.session("reference")
        assert await session.switch("b") == SwitchOutcome("b", "applied")
        assert (await session.ask("And you?")).text == "I took over."
        assert await session.switch("a") == SwitchOutcome("a", "applied")
        assert (await session.ask("And now?")).text == "Here again."
    assert one.refusals == two.refusals == []
    (taken,) = bodies(two)
    assert_paired(taken)
    assert len(synthetic(taken)) == 4
    assert list(results(taken).values())[:2] == ["a is done", "b is done"]
    assert not any("thinking" in block for _, block in blocks(taken))
    assert_prefixes(one)
    assert any("I took over." in block for _, block in blocks(bodies(one)[-1]))


@pytest.mark.requirement("REQ-915-004", "REQ-915-042", "REQ-915-043", "PROMISE-1")
async def test_pools_and_failover_serve_a_session_with_cancelled_calls() -> None:
    more = [Turn(Think("mine"), Call("work", {"name": "a"})), Turn(Say("a"))]
    one = anthropic(*REFERENCE, *more, *more, faults={7: OVERLOADED})
    two = openai(*[Turn(Call("work", {"name": "a"}), Call("work", {"name": "a"})), Turn(Say("b"))] * 3)
    pools = {
        "turns": PoolSettings(members=("a", "b"), policy="round_robin", cooldown=0),
        "order": PoolSettings(members=("a", "b"), policy="failover", cooldown=0),
    }
    async with runtime_with(a=one, b=two, pools=pools) as runtime:
        await play_reference(runtime, "a")
        session = runtime.session("reference")
        await session.switch("turns")
        served = [(await session.ask(f"Turn {number}")).binding.backend for number in range(4)]
        assert served == ["a", "b", "a", "b"]
        await session.switch("order")
        answer = await session.ask("Last")
        assert [attempt.binding.backend for attempt in answer.attempts] == ["a", "b"]
        assert (answer.status, answer.text) == ("complete", "b")
    assert one.refusals == two.refusals == []
    for body in (*bodies(one), *bodies(two)):
        assert_paired(body)
    assert_prefixes(one)
    assert_prefixes(two)
