"""Metrics for alerts: the runtime's counts of asks, requests, tools and sessions, in the stats and in Prometheus."""

import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from actors import Budget, Price, Runtime, Session, Tool, tool
from actors.config import BackendLimits, Config, FileSettings, PoolSettings, RuntimeLimits
from actors.core.stats.measures import (
    BOUNDS,
    MOST_NAMES,
    AskCounts,
    DurationCounts,
    RequestCounts,
    ToolMeasures,
    status_label,
)
from actors.core.stats.stats import RuntimeStats
from actors.core.values.identity import Binding, CallId
from actors.core.values.stream import Usage
from actors.errors import AskFailed, Fenced, QueueFull
from actors.journal.storage.sqlite import SqliteStorage
from actors.provider.providers import Meters
from actors.strict.server import serve
from actors.telemetry import PrometheusCollector
from actors.testing import SERVER_ERROR, Call, Disconnect, Say, Stall, Status, Turn
from tests.naming import case
from tests.runtime_support import Gate, anthropic, backend_at, openai, runtime_with
from tests.scripted import scripted
from tests.telemetry.promql import missing_references

DOCS = Path(__file__).parents[2] / "docs"
DASHBOARD, PAGE = DOCS / "reference" / "grafana.json", DOCS / "how-to" / "operate.md"
ANSWER = Turn(Say("Done."))
LOOK = Tool.external("look", "Looks something up, elsewhere.", {"type": "object"}, read_only=True)


@tool
async def fails(name: str) -> str:
    """Fail."""
    raise LookupError(name)


def scrape(runtime: Runtime) -> list[Sample]:
    """Return the samples of a Prometheus scrape."""
    registry = CollectorRegistry()
    registry.register(PrometheusCollector(runtime.stats))
    text = generate_latest(registry).decode()
    return [sample for family in text_string_to_metric_families(text) for sample in family.samples]


def value(samples: Sequence[Sample], name: str, **labels: str) -> float:
    """Return the sum of a metric over the samples with these labels."""
    found = [each.value for each in samples if each.name == name and labels.items() <= each.labels.items()]
    assert found, f"{name} {labels}"
    return sum(found)


@asynccontextmanager
async def busy_runtime(path: Path) -> AsyncIterator[tuple[Runtime, RuntimeStats, list[Sample]]]:
    """Yield a runtime that has used every metric, with its stats and its Prometheus samples.

    One ask is in flight, one ask waits in the queue, and one turn is paused.
    """
    gate = Gate()
    pool = PoolSettings(members=("a", "b"), policy="failover", cooldown=0)
    working = [Turn(Call("fails", {"name": "x"}), Call("work", {"name": "quick"})), ANSWER]
    a = openai(
        *working, ANSWER, ANSWER, Turn(Call("look", {})), Turn(Call("work", {"name": "long"})), ANSWER,
        faults={3: Status(429, message="Too many requests."), 5: SERVER_ERROR, 6: SERVER_ERROR},
    )  # fmt: skip
    b = anthropic(ANSWER, faults={1: Status(401, message="No.")})
    with anyio.fail_after(300):
        async with serve(a, b):
            settings = FileSettings(
                backends={"a": backend_at(a, BackendLimits(attempts=2)), "b": backend_at(b)},
                pools={"pool": pool},
                limits=RuntimeLimits(max_queued_asks=1),
            )
            runtime = Runtime(
                Config(settings, {}),
                journal=SqliteStorage(path / "journal.db"),
                seed=1,
                prices={"gpt": Price(1.0, 2.0, 0.5)},
                budgets={"tenants.acme": Budget(tokens=1_000_000)},
            )
            async with runtime, anyio.create_task_group() as tasks:
                gate.open("quick")
                first = await runtime.open("a", tools=[gate.tool, fails], tenant="acme")
                await first.ask("Do it.")  # with a tool that fails
                await first.ask("Again.")  # as far as possible from the cache
                await first.ask("Retried.")
                pooled = await runtime.open("pool")
                await pooled.ask("Hello.")  # b takes over
                with pytest.raises(AskFailed):
                    await (await runtime.open("b")).ask("Hello.")
                waiting = await runtime.open("a", tools=[LOOK])
                assert (await waiting.ask("Look.")).status == "awaiting"
                tasks.start_soon(ask_quietly, first, "Take long.")
                await gate.started("long")
                tasks.start_soon(ask_quietly, first, "Wait.")
                while not runtime.stats().asks_waiting:
                    await anyio.lowlevel.checkpoint()
                with pytest.raises(QueueFull):
                    await first.ask("One too many.")
                yield runtime, runtime.stats(), scrape(runtime)
                tasks.start_soon(first.cancel)
                gate.open("long")


async def ask_quietly(session: Session, words: str) -> None:
    """Ask and ignore a failure; its outcome is counted."""
    await session.ask(words, check=False)


@pytest.mark.anyio
@pytest.mark.usefixtures("short_waits")
async def test_every_metric_that_alerts_need_is_in_the_stats_and_in_prometheus(tmp_path: Path) -> None:
    async with busy_runtime(tmp_path) as (runtime, stats, samples):
        assert stats.asks == {**AskCounts().outcomes, "complete": 4, "failed": 1, "refused": 1}
        assert value(samples, "actors_asks_total", outcome="complete") == 4
        assert value(samples, "actors_asks_total", outcome="failed") == 1
        assert value(samples, "actors_asks_total", outcome="refused") == 1
        here, there = stats.backends["a"].models["gpt"], stats.backends["b"].models["claude"]
        assert here.requests == {"200": 6, "429": 1, "500": 2}
        assert there.requests == {"200": 1, "401": 1}
        assert sum(here.requests.values()) == stats.backends["a"].requests
        for status, count in here.requests.items():
            about = {"backend": "a", "model": "gpt", "status": status}
            assert value(samples, "actors_requests_total", **about) == count
        assert here.first_token.count == here.answer.count == 6
        assert 0 < here.first_token.seconds <= here.answer.seconds
        assert value(samples, "actors_answer_seconds_count", backend="a", model="gpt") == 6
        assert value(samples, "actors_first_token_seconds_sum", backend="b") == there.first_token.seconds
        assert here.cost == pytest.approx(Price(1.0, 2.0, 0.5).of(here.usage))
        assert there.cost is None
        assert value(samples, "actors_cost_total", backend="a") == pytest.approx(here.cost)
        usage = here.usage
        kinds = usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens
        for kind, count in zip(("input", "output", "cache_read", "cache_write"), kinds, strict=True):
            assert value(samples, "actors_tokens_total", backend="a", kind=kind) == count
        assert value(samples, "actors_cache_share", backend="a") == here.cache_share
        assert (stats.tools["fails"].failures, stats.tools["work"].failures) == (1, 0)
        assert value(samples, "actors_tool_failures_total", tool="fails") == 1
        assert value(samples, "actors_tool_seconds_count", tool="work") == 1
        assert (stats.asks_waiting, stats.asking, stats.awaiting, stats.idle) == (1, 1, 1, 2)
        states = {"active": 1, "waiting": 1, "idle": 2}
        assert {
            each.labels["state"]: each.value for each in samples if each.name == "actors_sessions"
        } == states
        assert value(samples, "actors_asks_waiting") == 1
        assert value(samples, "actors_threads_waiting") == 0
        assert value(samples, "actors_loop_lag_seconds_count") > 0
        ids = set(runtime.sessions)
        assert not ids & {each for sample in samples for each in sample.labels.values()}
        journal = stats.journal
        assert value(samples, "actors_journal_commit_seconds_count") >= journal.commits.count > 0
        assert value(samples, "actors_journal_file_bytes") > 0
        assert value(samples, "actors_journal_lease_seconds") == runtime._storage.lease


@pytest.mark.anyio
@pytest.mark.usefixtures("short_waits")
async def test_dashboard_and_alert_queries_name_only_existing_metrics_and_labels(tmp_path: Path) -> None:
    queries = {**dict(dashboard_queries()), **dict(alert_queries())}
    async with busy_runtime(tmp_path) as (_, _, samples):
        missing = {name: [*missing_references(query, samples)] for name, query in queries.items()}
    assert {name: lacks for name, lacks in missing.items() if lacks} == {}
    assert len(queries) > 40


def dashboard_queries() -> list[tuple[str, str]]:
    """Return the queries of the dashboard's panels, by title and legend."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    targets = [(panel["title"], target) for panel in panels for target in panel["targets"]]
    return [(f"{title}: {target['legendFormat']}", target["expr"]) for title, target in targets]


def alert_queries() -> list[tuple[str, str]]:
    """Return the queries of the alerts on the page on operations."""
    return re.findall(r"alert: (\w+)\n\s+expr: (.+)\n", PAGE.read_text())


def test_a_dashboard_legend_uses_only_labels_that_its_query_groups_by() -> None:
    for title, query in dashboard_queries():
        with case(title):
            grouped = [
                part.strip() for found in re.findall(r"by \(([^)]*)\)", query) for part in found.split(",")
            ]
            assert set(re.findall(r"\{\{(\w+)\}\}", title)) == {*grouped} - {"le"}


def test_a_query_of_an_unknown_metric_label_or_value_is_detected() -> None:
    samples = [Sample("actors_asks_total", {"outcome": "failed"}, 1.0)]
    good = 'sum by (outcome) (rate(actors_asks_total{outcome=~"failed"}[5m]))'
    assert [*missing_references(good, samples)] == []
    for query, lack in (
        (good.replace("asks", "askings"), "no metric actors_askings_total"),
        (good.replace("by (outcome)", "by (session)"), "actors_asks_total has no label session"),
        (good.replace('"failed"', '"failed|lost"'), "actors_asks_total has no outcome=lost"),
        (good.replace("=~", "!="), "Selector"),
    ):
        assert lack in " ".join(missing_references(query, samples))


# ---- counting


@pytest.mark.anyio
async def test_disconnected_requests_have_no_status_and_stopped_requests_count_as_cancelled() -> None:
    long = Turn(Say("word " * 200))
    server = openai(ANSWER, long, faults={0: Disconnect(after_bytes=100), 2: Stall(after_bytes=6000)})
    async with runtime_with(a=server, backend=BackendLimits(attempts=2)) as runtime:
        session = await runtime.open("a")
        await session.ask("Hello.")
        async with session.stream("Long.") as events:
            async for event in events:
                if event.type == "text":
                    break
            during = runtime.stats()
            await session.cancel()
        after = runtime.stats()
    model = after.backends["a"].models["gpt"]
    assert during.backends["a"].models["gpt"].requests == {"none": 1, "200": 1}
    assert model.requests == {"none": 1, "200": 1, "cancelled": 1}
    assert (model.first_token.count, model.answer.count) == (2, 1)
    assert (during.asking, after.asking, after.asks["cancelled"]) == (1, 0, 1)


@pytest.mark.anyio
async def test_session_counts_do_not_depend_on_active_actors() -> None:
    server = openai(Turn(Call("look", {})), ANSWER, ANSWER)
    async with scripted(server, tools=[LOOK]) as (_, runtime, session):
        assert stages(runtime) == (0, 0, 1)
        await session.ask("Look.")
        assert stages(runtime) == (0, 1, 0)
        assert session._lifecycle.passivate()
        assert stages(runtime) == (0, 1, 0)
        await session.ask(results={CallId("hist_tool_1"): "found"})
        assert stages(runtime) == (0, 0, 1)
        await session.ask("And now?")
        assert runtime.stats().asks["complete"] == 2
        await session.close()
        assert stages(runtime) == (0, 0, 0)


@pytest.mark.anyio
async def test_a_session_taken_over_by_another_host_is_no_longer_counted() -> None:
    async with scripted("openai_chat", Turn(Call("look", {})), tools=[LOOK]) as (_, runtime, session):
        await session.ask("Look.")
        runtime._storage.claim(session.id)
        with pytest.raises(Fenced):
            await session.ask(results={CallId("hist_tool_1"): "found"})
        while list(runtime.sessions):  # its actors end a moment later
            await anyio.lowlevel.checkpoint()
        assert stages(runtime) == (0, 0, 0)


def stages(runtime: Runtime) -> tuple[int, int, int]:
    stats = runtime.stats()
    return stats.asking, stats.awaiting, stats.idle


@pytest.mark.anyio
async def test_the_stats_count_the_tokens_reported_to_callers() -> None:
    server = openai(Turn(Call("fails", {"name": "a"})), ANSWER, ANSWER)
    async with runtime_with(a=server) as runtime:
        session = await runtime.open("a", tools=[fails])
        told = [(await session.ask(words)).usage for words in ("One.", "Two.")]
        counted = runtime.stats().backends["a"].models["gpt"].usage
    assert counted == told[0] + told[1]


def test_usage_and_cost_of_surplus_models_are_counted_under_the_name_other() -> None:
    meters, prices = Meters(lambda *_: None), {"model-65": None}
    for number in range(MOST_NAMES + 3):
        requests = meters.add_meter(Binding("a", "openai_chat", "", "", f"model-{number}")).requests
        requests.record_end(1, 200)
        requests.add_usage(Usage(10, 5))
    cost = {number: prices.get(f"model-{number}", 2.0) for number in range(MOST_NAMES + 3)}
    models = meters.backend_stats(lambda binding, _: cost[int(binding.model.partition("-")[2])])["a"].models
    assert len(models) == MOST_NAMES + 1
    assert (models["other"].requests, models["other"].usage) == ({"200": 3}, Usage(30, 15))
    assert (models["other"].cost, models["model-3"].cost) == (None, 2.0)


def test_calls_of_surplus_tools_are_counted_under_the_name_other() -> None:
    measures = ToolMeasures()
    for number in range(MOST_NAMES + 5):
        measures.record_call(f"tool{number}", 0.2, failed=number % 2 == 0)
    measures.record_call("tool3", 7.0, failed=True)
    stats = measures.stats
    assert len(stats) == MOST_NAMES + 1
    assert (stats["other"].durations.count, stats["other"].failures) == (5, 3)
    assert (stats["tool3"].durations.count, stats["tool3"].failures) == (2, 1)
    assert stats["tool3"].durations.counts[0.25] == stats["tool3"].durations.counts[10.0] == 1


def test_a_histogram_counts_each_duration_in_exactly_one_bucket() -> None:
    counts = DurationCounts()
    buckets = counts.counts
    for seconds in (*BOUNDS, 0.0, 1e9):
        counts.record(seconds)
    assert counts.counts is buckets  # taking a sample copies nothing
    assert counts.stats.count == len(BOUNDS) + 2
    assert [*counts.stats.counts.values()] == [2, *[1] * len(BOUNDS)]
    both = DurationCounts()
    both.add(counts)
    both.add(counts)
    assert both.stats.count == 2 * counts.stats.count
    assert (both.stats.longest, both.stats.seconds) == (1e9, 2 * counts.seconds)


def test_requests_are_counted_by_http_status_code() -> None:
    counts = RequestCounts()
    counts.record_end(3, 529)  # an answer that was continued, twice
    counts.record_end(0, 200)  # nothing was sent
    counts.record_end(1, None)
    counts.record_end(1, None, stopped=True)
    counts.record_end(1, 799)
    assert counts.statuses == {"200": 2, "529": 1, "none": 1, "cancelled": 1, "other": 1}
    assert len({status_label(status) for status in range(1000)}) < 100
    counts.add_usage(Usage(3, 4))
    assert counts.stats(1.5).cost == 1.5
