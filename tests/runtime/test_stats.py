"""`runtime.stats()`: its counters equal a recount of the logs, and Prometheus shows them."""

from collections.abc import Callable
from dataclasses import replace

import anyio
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from actors import subagent, tool
from actors.cli.stats import recount_events
from actors.config import PoolSettings, RuntimeLimits
from actors.core.log.events import EpochBegan, EpochReason, RequestSent, TurnStarted
from actors.core.session.publishing import Publisher
from actors.core.stats.stats import COUNTERS, Stalls, ToolCounts, recount
from actors.core.stream_events.event_json import Fields, event_json
from actors.core.turn.guards import Repeats
from actors.core.values.identity import Binding
from actors.events import ApprovalDecision
from actors.runtime.runtime import Runtime
from actors.strict.server import LoopbackServer
from actors.telemetry import PrometheusCollector
from actors.testing import SERVER_ERROR, Call, Disconnect, Say, Stall, Status, Turn
from tests.runtime.test_rebuild import crash
from tests.runtime_support import Gate, anthropic, gather_events, log, openai, runtime_with
from tests.scripted import scripted

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


def recount_logs(runtime: Runtime) -> dict[str, ToolCounts]:
    whole: dict[str, ToolCounts] = {}
    for name in runtime.sessions:
        for backend, counts in recount(log(runtime, runtime.session(name))).items():
            whole[backend] = counts.plus(whole.get(backend, ToolCounts()))
    return whole


def recount_published_events(runtime: Runtime) -> dict[str, ToolCounts]:
    """Recount the events that a later reader of the logs receives."""
    shown = list[Fields]()
    for name in runtime.sessions:
        publisher = Publisher()
        for event in log(runtime, runtime.session(name)):
            shown += map(event_json, publisher.publish(event))
    return recount_events(shown)


def counters(runtime: Runtime) -> dict[str, ToolCounts]:
    tools = {name: backend.tools for name, backend in runtime.stats().backends.items()}
    return {name: counts for name, counts in tools.items() if counts != ToolCounts()}


@pytest.mark.requirement("U-08", "U-14")
async def test_the_counters_equal_recounts_of_the_logs_and_of_the_events() -> None:
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
    limits, shown = RuntimeLimits(max_rounds=3), list[Fields]()
    async with runtime_with(pools=pools, limits=limits, a=here, b=there) as runtime:
        for target in ("a", "b", "pool", "a", "pool"):
            session = await runtime.open(target, tools=[look])
            for words in ("Do it.", "And?", "And again?"):
                shown += map(event_json, await gather_events(session, words))
        assert (
            counters(runtime)
            == recount_logs(runtime)
            == recount_events(shown)
            == recount_published_events(runtime)
        )
        a, b = counters(runtime)["a"], counters(runtime)["b"]
        assert a.tool_api_400_total == 4
        assert a.tool_calls_invalid_args * 2 == a.tool_calls_total > 0
        assert b.tool_loop_max_iterations > 0
        assert 0 < b.invalid_rate < a.invalid_rate == 0.5
        assert runtime.stats().total == a.plus(b)


@pytest.mark.requirement("U-08")
@pytest.mark.parametrize("make_server", [openai, anthropic])
async def test_a_call_of_an_undeclared_tool_counts_as_invalid(
    make_server: Callable[..., LoopbackServer],
) -> None:
    unknown = (Call("search", {"name": "a"}), Call("lookup", {}), Call("look ", {"name": "b"}))
    server = make_server(
        Turn(*unknown, Call("look", {"name": "c"})), Turn(Call("LOOK", {"name": "d"})), ENDING
    )
    shown = list[Fields]()
    async with runtime_with(a=server, b=openai(ENDING)) as runtime:
        session = await runtime.open("a", tools=[look])
        shown += map(event_json, await gather_events(session, "Do it."))
        await session.switch("b")
        await session.ask("And?")
        assert counters(runtime) == {"a": ToolCounts(tool_calls_total=5, tool_calls_invalid_args=4)}
        assert (
            counters(runtime)
            == recount_logs(runtime)
            == recount_events(shown)
            == recount_published_events(runtime)
        )
        ends = [known.status for known in (await session.ledger()).interactions()]
        assert ends.count("complete") == 1
        registry = CollectorRegistry()
        registry.register(PrometheusCollector(runtime.stats))
        lines = generate_latest(registry).decode().splitlines()
    assert 'actors_tool_calls_invalid_args_total{backend="a"} 4.0' in lines
    assert 'actors_tool_calls_invalid_args_total{backend="b"} 0.0' in lines


@pytest.mark.requirement("U-08")
@pytest.mark.parametrize(("repeats", "noticed"), [("warn", 3), ("stop", 1), ("allow", 0)])
async def test_repeated_calls_have_the_same_count_in_stats_logs_and_events(
    repeats: Repeats, noticed: int
) -> None:
    """Four equal calls precede two failing calls; a pending approval accompanies the last call of each group."""
    asks = tool(approval="ask")(look.function)
    waits = replace(asks, name="other")
    one, other = Call("look", {"name": "a"}), Call("other", {"name": "b"})
    server = openai(Turn(one), Turn(one), Turn(one, other), Turn(one), Turn(one), ENDING)
    shown = list[Fields]()
    async with runtime_with(a=server) as runtime:
        session = await runtime.open("a", tools=[look, waits], on_repeat=repeats)
        shown += map(event_json, await gather_events(session, "Do it."))
        ((waiting, *_),) = [session.pending]
        async with session.stream(approvals={waiting.call.id: ApprovalDecision("allow")}) as events:
            shown += [event_json(event) async for event in events]
        counts = runtime.stats().backends["a"].tools
        assert counts.tool_calls_repeated == noticed
        assert (
            counters(runtime)
            == recount_logs(runtime)
            == recount_events(shown)
            == recount_published_events(runtime)
        )


@pytest.mark.requirement("U-08")
async def test_calls_ended_by_a_crash_have_the_same_count_in_stats_and_log() -> None:
    """One call of the batch was rejected, which is recorded; the other runs when the session crashes."""
    gate = Gate()
    batch = Turn(Call("work", {"nam": "b"}), Call("work", {"name": "a"}))
    async with scripted("openai_chat", batch, ENDING, tools=[gate.tool]) as (_, runtime, session):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.ask, "Do it.")
            await gate.started("a")
            await crash(session, "session")
        assert counters(runtime) == recount_logs(runtime)
        assert runtime.stats().total == ToolCounts(tool_calls_total=2, tool_calls_invalid_args=1)


@pytest.mark.requirement("U-08")
async def test_stats_are_a_snapshot_of_the_current_state() -> None:
    long = Turn(Say("word " * 200))
    async with runtime_with(a=openai(long, faults={0: Stall(after_bytes=6000)})) as runtime:
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
async def test_prometheus_shows_the_stats_by_backend_and_name() -> None:
    gate = Gate()
    gate.open("a")
    async with runtime_with(a=openai(Turn(Call("work", {"name": "a"})), ENDING)) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        await gather_events(session, "Do it.")
        registry = CollectorRegistry()
        registry.register(PrometheusCollector(runtime.stats))
        text = generate_latest(registry).decode()
        backend = runtime.stats().backends["a"]
    for name in COUNTERS:
        shown = (
            f'actors_{name.removesuffix("_total")}_total{{backend="a"}} {float(getattr(backend.tools, name))}'
        )
        assert shown in text.splitlines()
    assert 'actors_requests_total{backend="a",model="gpt",status="200"} 2.0' in text
    assert 'actors_sessions{state="idle"} 1.0' in text
    assert "actors_sessions_hibernated 0.0" in text
    assert float(text.partition("\nactors_sessions_bytes ")[2].partition("\n")[0]) > 100


@pytest.mark.usefixtures("short_graces")
async def test_quarantined_calls_and_stalls_are_in_the_stats() -> None:
    stopped, release = anyio.Event(), anyio.Event()

    async def ignore_cancellation() -> str:
        """Swallow every cancellation."""
        stopped.set()
        with anyio.CancelScope(shield=True):
            await release.wait()
        return "late"

    async with runtime_with(a=openai(Turn(Call("ignore_cancellation")), ENDING)) as runtime:
        session = await runtime.open("a", tools=[ignore_cancellation])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.ask, "Do it.")
            await stopped.wait()
            assert runtime.stats().quarantined == {}  # it runs, and no cancel has been requested
            assert await session.cancel()
        during = runtime.stats()
        registry = CollectorRegistry()
        registry.register(PrometheusCollector(runtime.stats))
        text = generate_latest(registry).decode().splitlines()
        release.set()
        while runtime.stats().quarantined:
            await anyio.lowlevel.checkpoint()
    assert (during.quarantined, during.stalls) == ({"ignore_cancellation": 1}, Stalls(0, 0.0))
    assert 'actors_quarantined{tool="ignore_cancellation"} 1.0' in text
    assert {"actors_stalls_total 0.0", "actors_stall_seconds_total 0.0"} <= {*text}


async def test_calls_of_subagents_are_counted_with_their_own_backend() -> None:
    helper = subagent("helper", "Helps.", target="b", tools=[look])
    wrong = Turn(Call("helper", {"tusk": "c"}))
    above = openai(Turn(Call("helper", {"task": "a"}), Call("helper", {"task": "b"})), wrong, ENDING)
    async with runtime_with(a=above, b=anthropic(CALLING, CALLING, ENDING, ENDING)) as runtime:
        session = await runtime.open("a", tools=[helper])
        shown = map(event_json, await gather_events(session, "Have it done."))
        assert recount_events(shown) == counters(runtime)
        assert counters(runtime)["a"] == ToolCounts(tool_calls_total=3, tool_calls_invalid_args=1)
        assert counters(runtime)["b"] == ToolCounts(tool_calls_total=4, tool_calls_invalid_args=2)


@pytest.mark.parametrize("reason", ["refusal", "thinking", "configured", "compaction"])
async def test_a_new_epoch_counts_as_a_refusal_only_after_a_request_of_the_same_turn(
    reason: EpochReason,
) -> None:
    here = Binding("a", "openai_chat", "", "", "gpt")
    bound, sent = TurnStarted(1, 1, here), RequestSent(1, 1, here, 0, 1)
    begins = EpochBegan(here, 1, reason)
    refused = {"a": ToolCounts(tool_api_400_total=1)} if reason in ("refusal", "thinking") else {}
    assert recount([bound, sent, begins]) == refused
    assert recount([bound, sent, TurnStarted(2, 2, here), begins]) == {}


async def test_a_recount_counts_the_round_limit_once_and_ignores_failed_calls() -> None:
    def event(name: str, **fields: object) -> Fields:
        return {"type": name, **fields}

    turn = [
        event("turn_started", binding="a:model"),
        event("request_sent"),
        event(
            "tool_results",
            results=[{"call_id": "1", "outcome": "failed"}, {"call_id": "2", "outcome": "refused"}],
        ),
        event("request_sent", tools_off=True),
        event("lane_rewritten", reason="refusal"),
        event("request_sent", tools_off=True),
    ]
    expected = ToolCounts(tool_calls_invalid_args=1, tool_api_400_total=1, tool_loop_max_iterations=1)
    assert recount_events(turn) == {"a": expected}
    shorter = [turn[0], turn[1], event("lane_rewritten", reason="compaction")]
    assert recount_events(shorter) == recount_events([turn[0], turn[1], turn[0], turn[4]]) == {}
    assert recount_events([*turn, *turn]) == {"a": expected.plus(expected)}
