"""Stress runs with custom tools and backends, over HTTP on this machine."""

import os
from typing import Any

import pytest

from actors.config import BackendLimits, Config, FileSettings
from actors.errors import ConfigError
from actors.testing import Call, OpenAIServer, Say, Status, Turn, serve, simulate, stress
from actors.testing.stressing import LoadTally, ResourceCounts, find_leaks
from actors.tools import tool
from tests.runtime_support import backend_at

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"sessions": 0}, "sessions= must be an integer of at least 1, not 0"),
        ({"turns": 1.5}, "turns= must be an integer of at least 1, not 1.5"),
        ({"switching": 20}, "switching= must be a probability from 0 to 1, not 20"),
        ({"cancelling": -0.1}, "cancelling= must be a probability from 0 to 1, not -0.1"),
        ({"think": -1}, "think= must be a number of seconds, at least 0, not -1"),
        ({"seconds": 0}, "seconds= must be a number of seconds above 0, or None, not 0"),
    ],
)
async def test_invalid_stress_arguments_are_refused_with_a_one_line_error(
    given: Any, says: str
) -> None:  # Any: invalid arguments
    with pytest.raises(ConfigError) as refused:
        await stress(**given)
    assert str(refused.value) == says


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"mode": "livenes"}, "mode= must be 'safety' or 'liveness', not 'livenes'"),
        ({"sessions": 0}, "sessions= must be an integer of at least 1, not 0"),
        ({"turns": -1}, "turns= must be an integer of at least 1, not -1"),
    ],
)
def test_invalid_simulation_arguments_are_refused_with_a_one_line_error(
    given: Any, says: str
) -> None:  # Any: as above
    with pytest.raises(ConfigError) as refused:
        simulate(1, **given)
    assert str(refused.value) == says


async def test_stress_calls_every_tool_without_refusals_or_leaks() -> None:
    ran: list[str] = []

    @tool
    async def weather(city: str) -> str:
        """Weather of a city."""
        ran.append("weather")
        return f"{city}: 21 C"

    @tool
    def price(nights: int) -> int:
        """Price of some nights."""
        ran.append("price")
        return 90 * nights

    report = await stress(tools=[weather, price], sessions=8, turns=4, cancelling=0)
    assert report.is_sound, report
    assert report.asks == {"complete": 32}
    assert report.rounds == report.counters["requests"] == 64
    assert (ran.count("weather") > 8, ran.count("price") > 8, len(ran)) == (True, True, 32)
    assert report.switches > 0
    assert 0 < report.latency["p50"] <= report.latency["p90"] <= report.latency["p99"] <= report.seconds
    assert report.leaks == {"tasks": 0, "threads": 0, "descriptors": 0}


async def test_stress_reports_failures_by_cause_and_excludes_cancels() -> None:
    server = OpenAIServer(faults=lambda number, request: Status(401) if number % 2 else None)
    async with serve(server):
        config = Config(FileSettings(backends={"mine": backend_at(server)}), {})
        report = await stress("mine", config=config, sessions=3, turns=4, cancelling=0)
    assert report.asks == {"complete": 6, "failed": 6}
    assert dict(report.failures) == {"config": 6}
    assert not report.is_sound


async def test_a_stress_run_with_cancelled_asks_has_no_leak_or_refusal() -> None:
    @tool
    async def work(name: str) -> str:
        """Do a piece of work."""
        return name

    report = await stress(tools=[work], sessions=6, turns=5, cancelling=1.0, seed=3)
    assert report.is_sound, report
    assert sum(report.asks.values()) == 30
    assert report.asks["cancelled"] > 0


async def test_a_stress_run_ends_at_its_time_limit() -> None:
    server = OpenAIServer([Turn(Call("none", {})), Turn(Say("ok"))])
    async with serve(server):
        config = Config(FileSettings(backends={"mine": backend_at(server, BackendLimits())}), {})
        report = await stress("mine", config=config, sessions=2, turns=10_000, think=0.01, seconds=0.3)
    assert 0 < sum(report.asks.values()) < 1000


@pytest.mark.parametrize("target", ["openai:gpt-5.2", "anthropic:claude-sonnet-5"])
async def test_stress_contacts_other_machines_only_on_request(target: str) -> None:
    config = Config(FileSettings(), {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"})
    with pytest.raises(ConfigError, match=r"is at api\..*--allow-network"):
        await stress(target, config=config, sessions=1, turns=1)
    here = Config(FileSettings(), {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "ANTHROPIC_API_KEY": "k"})
    with pytest.raises(ConfigError, match=r"at api\.anthropic\.com"):
        await stress("openai:gpt-5.2", config=here, switches=("anthropic:claude-sonnet-5",))


async def test_percentiles_cover_only_completed_asks() -> None:
    tally = LoadTally()
    tally.latencies = [float(number) for number in range(100, 0, -1)]
    assert [tally.percentile(share) for share in (0.5, 0.9, 0.99, 1.0)] == [50.0, 90.0, 99.0, 100.0]
    assert LoadTally().percentile(0.99) == 0.0


async def test_a_stress_run_reports_leaks() -> None:
    before = ResourceCounts.now()
    ours, theirs = os.pipe()
    assert ResourceCounts.now().increase_since(before) == {"tasks": 0, "threads": 0, "descriptors": 2}
    os.close(ours)
    os.close(theirs)
    assert await find_leaks(before) == {"tasks": 0, "threads": 0, "descriptors": 0}
