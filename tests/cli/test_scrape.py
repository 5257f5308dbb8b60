"""`actors stats` of Prometheus metrics."""

import json
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from actors.cli import stats
from actors.config import BackendLimits
from actors.telemetry import PrometheusCollector
from actors.testing import SERVER_ERROR, Call, Say, Turn
from actors.tools import tool
from tests.cli.command import actors_now
from tests.runtime_support import openai, runtime_with


@tool
async def fails(name: str) -> str:
    """Fail."""
    raise LookupError(name)


@pytest.mark.anyio
async def test_every_metric_is_printed(tmp_path: Path) -> None:
    server = openai(Turn(Call("fails", {"name": "a"})), Turn(Say("Done.")), faults={0: SERVER_ERROR})
    async with runtime_with(a=server, backend=BackendLimits(attempts=2)) as runtime:
        session = await runtime.open("a", tools=[fails])
        await session.ask("Do it.")
        registry = CollectorRegistry()
        registry.register(PrometheusCollector(runtime.stats))
        families = [*registry.collect()]
        text = generate_latest(registry).decode()
        stats = runtime.stats()
    kept = tmp_path / "metrics.txt"
    kept.write_text(text)
    found = json.loads(actors_now("stats", str(kept), "--json").out)
    named = {
        family.name + ("_total" if family.type == "counter" else "") for family in families if family.samples
    }
    assert {f"actors_{name}" for name in found} == named
    (took,) = found["tool_seconds"]
    seconds = stats.tools["fails"].durations
    assert took == {
        "labels": {"tool": "fails"},
        "count": 1,
        "mean": round(seconds.seconds, 6),
        "p50": took["p50"],
        "p95": took["p50"],
    }
    assert took["p50"] >= seconds.longest
    statuses = {each["labels"]["status"]: each["value"] for each in found["requests_total"]}
    assert statuses == {"200": 2.0, "500": 1.0}
    lines = actors_now("stats", "-", stdin=text).out.splitlines()
    assert len(lines) == sum(map(len, found.values()))
    rows = {line.split()[0]: line.split()[1:] for line in lines}
    assert rows["tool_failures_total"] == ["tool=fails", "1"]
    assert rows["asks_waiting"] == ["0"]
    assert rows["first_token_seconds"][:4] == ["backend=a", "model=gpt", "2", "mean"]


def test_special_characters_in_metric_labels_are_escaped() -> None:
    text = '# TYPE actors_quarantined gauge\nactors_quarantined{tool="a\\n\\"b\x1b[2J"} 1.0\nother 2.0\n'
    assert stats.read_metrics(text.splitlines()).values == {"quarantined": {(("tool", 'a\n"b\x1b[2J'),): 1.0}}
    (line,) = actors_now("stats", "-", stdin=text).out.splitlines()[-1:]
    assert line.endswith('"b\\x1b[2J  1')


def test_the_stats_command_counts_outcomes_requests_and_tokens_in_printed_events() -> None:
    began = {"type": "turn_started", "binding": "a:m"}
    usage = {"input_tokens": 100, "output_tokens": 7, "cache_read_tokens": 25, "cache_write_tokens": 0}
    said = {"type": "message", "message": {"calls": []}, "usage": usage}
    events = [
        began,
        {
            "type": "request_failed",
            "cause": {"kind": "transient", "status": 503},
            "retry_after": 1.0,
        },
        said,
        {"type": "tool_results", "results": [{"call_id": "1", "outcome": "failed"}]},
        {"type": "request_failed", "cause": {"kind": "transient", "status": None}},
        {**said, "error": "ProviderFailed"},
        {"type": "error", "result": {"status": "failed"}},
        {"type": "subagent", "session": "s", "event": began},
        {"type": "subagent", "session": "s", "event": {"type": "complete", "result": {"status": "complete"}}},
        {"type": "complete", "result": {"status": "awaiting"}},
    ]
    shown = actors_now("stats", "-", stdin="\n".join(map(json.dumps, events))).out.splitlines()
    assert shown[-3:] == [
        "asks: failed 1, complete 1; failed calls: 1",
        "requests to a:m: 503 1, 200 1, none 1",
        "tokens of a:m: input 200, output 14, cache_read 50, cache_write 0; cache share 25.0%",
    ]
