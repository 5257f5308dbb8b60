"""`runtime.stats()`: what it counts is what a recount of the logs gives, and what Prometheus is shown."""

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from actors import tool
from actors.config import PoolSettings, RuntimeLimits
from actors.core.stats import COUNTERS, ToolCounts, recount
from actors.runtime import Runtime
from actors.telemetry.prometheus import PrometheusCollector
from actors.testing import SERVER_ERROR, Call, Disconnect, Say, Stall, Status, Turn
from tests.runtime_support import Gate, anthropic, gathered, hosting, log, openai

pytestmark = pytest.mark.anyio

REFUSED = Status(
    400,
    message="An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    "'tool_call_id'. The following tool_call_ids did not have response messages: call_A1",
)
CALLING = Turn(Call("look", {"name": "a"}), Call("look", {"nam": "b"}))
ENDING = Turn(Say("Done."))


@tool
def look(name: str) -> str:
    """Look something up."""
    return f"{name} is there"


def recounted(runtime: Runtime) -> dict[str, ToolCounts]:
    whole: dict[str, ToolCounts] = {}
    for name in runtime.sessions:
        for backend, counts in recount(log(runtime, runtime.session(name))).items():
            whole[backend] = counts.plus(whole.get(backend, ToolCounts()))
    return whole


def counted(runtime: Runtime) -> dict[str, ToolCounts]:
    tools = {name: backend.tools for name, backend in runtime.stats().backends.items()}
    return {name: counts for name, counts in tools.items() if counts != ToolCounts()}


@pytest.mark.requirement("U-08")
async def test_a_recount_of_the_logs_gives_the_counters() -> None:
    pools = {"pool": PoolSettings(members=("a", "b"), policy="failover", cooldown=0)}
    faults = {
        1: REFUSED,
        4: SERVER_ERROR,
        7: Disconnect(after_bytes=200),
        9: REFUSED,
        10: REFUSED,
        11: REFUSED,
    }
    here = openai(*[CALLING, ENDING] * 12, faults=faults)
    there = anthropic(*[CALLING, CALLING, CALLING, ENDING] * 8)
    limits = RuntimeLimits(rounds=3)
    async with hosting(pools=pools, limits=limits, a=here, b=there) as runtime:
        for target in ("a", "b", "pool", "a", "pool"):
            session = await runtime.open(target, tools=[look])
            for words in ("Do it.", "And?", "And again?"):
                await session.ask(words)
        assert counted(runtime) == recounted(runtime)
        a, b = counted(runtime)["a"], counted(runtime)["b"]
        assert a.tool_api_400_total == 4
        assert a.tool_calls_invalid_args * 2 == a.tool_calls_total > 0
        assert b.tool_loop_max_iterations > 0
        assert 0 < b.invalid_rate < a.invalid_rate == 0.5
        assert runtime.stats().total == a.plus(b)


@pytest.mark.requirement("U-08")
async def test_stats_say_what_goes_on_now_and_do_not_change_afterwards() -> None:
    long = Turn(Say("word " * 200))
    async with hosting(a=openai(long, faults={0: Stall(after_bytes=6000)})) as runtime:
        session = await runtime.open("a")
        async with session.stream("Do it.") as events:
            async for event in events:
                if event.type == "text":
                    break
            during = runtime.stats()
            await session.cancel()
        after = runtime.stats()
        assert (during.backends["a"].in_flight, after.backends["a"].in_flight) == (1, 0)
        assert (during.backends["a"].requests, during.sessions, during.active) == (1, 1, 1)
        assert not during.backends["a"].is_open


@pytest.mark.requirement("U-08")
async def test_prometheus_is_shown_the_stats_by_backend_and_by_name() -> None:
    gate = Gate()
    gate.open("a")
    async with hosting(a=openai(Turn(Call("work", {"name": "a"})), ENDING)) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        await gathered(session, "Do it.")
        registry = CollectorRegistry()
        registry.register(PrometheusCollector(runtime))
        text = generate_latest(registry).decode()
        backend = runtime.stats().backends["a"]
    for name in COUNTERS:
        shown = (
            f'actors_{name.removesuffix("_total")}_total{{backend="a"}} {float(getattr(backend.tools, name))}'
        )
        assert shown in text.splitlines()
    assert 'actors_requests_total{backend="a"} 2.0' in text
    assert "actors_sessions 1.0" in text
