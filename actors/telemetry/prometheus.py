"""A runtime's stats as Prometheus metrics, by `prometheus-client` (extra `prometheus`). There is no global state.

registry.register(PrometheusCollector(runtime))
generate_latest(registry)
"""

from collections.abc import Iterator
from itertools import accumulate
from math import inf
from typing import TYPE_CHECKING, Protocol

from actors.core.stats import COUNTERS, BackendStats, LoopLag, RuntimeStats
from actors.errors import ConfigError

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_HELP = {
    "tool_calls_total": "Tool calls that models made.",
    "tool_calls_invalid_args": "Tool calls refused for their name or arguments.",
    "tool_calls_repaired": "Tool calls whose arguments had a slip, and exactly one reading that fits.",
    "answers_repaired": "Answers of output= that had a slip, and exactly one reading that fits.",
    "tool_api_400_total": "Requests refused by the provider for their structure.",
    "tool_loop_max_iterations": "Turns that were ended with tools off.",
    "tool_calls_repeated": "Tool calls that were noticed to repeat, with the same result.",
    "requests": "Tries that were sent.",
    "retries": "Tries that were not their round's first.",
    "refused_media": "Tries that the provider refused for an attachment.",
    "refused_parameters": "Tries that the provider refused for an optional parameter.",
}
_GAUGES = {
    "in_flight": "Requests that are being answered.",
    "waiting": "Requests that wait for a place.",
    "is_open": "1 while the breaker is open.",
}
_REUSE = {
    "hits": "Uses of sessions that were still in memory.",
    "rebuilds": "Uses for which a session was made of its log again.",
    "dropped": "Sessions of which all but the log was dropped to make room.",
}
_BUDGETS = {
    "tokens": "Tokens that sessions may use together.",
    "used_tokens": "Tokens that they have used.",
    "reserved_tokens": "Tokens that their requests in flight are estimated to come to.",
    "money": "Money that sessions may use together.",
    "used_money": "Money that they have used.",
    "refused": "Asks and requests for which it was used up.",
}


class Measured(Protocol):
    """What has stats: a `Runtime`."""

    def stats(self) -> RuntimeStats:
        """Return them, as they are now."""


class PrometheusCollector:
    """Collects at each scrape; it holds nothing. Scrape on the runtime's thread, or expect figures of nearby moments.

    Raises:
        ConfigError: `prometheus-client` is not installed.
    """

    def __init__(self, runtime: Measured) -> None:
        try:
            import prometheus_client  # noqa: F401  said here and not at the first scrape
        except ImportError:
            raise ConfigError(
                'Prometheus metrics need prometheus-client: pip install "llm-actors[prometheus]"'
            ) from None
        self._runtime = runtime

    def collect(self) -> "Iterator[Metric]":
        """Yield the metrics, each with the label `backend` where it is one's."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        stats = self._runtime.stats()
        for name, text in _HELP.items():
            counter = CounterMetricFamily(f"actors_{name.removesuffix('_total')}", text, labels=["backend"])
            for backend, each in stats.backends.items():
                counter.add_metric([backend], _value(each, name))
            yield counter
        for name, text in _GAUGES.items():
            gauge = GaugeMetricFamily(f"actors_{name}", text, labels=["backend"])
            for backend, each in stats.backends.items():
                gauge.add_metric([backend], float(getattr(each, name)))
            yield gauge
        yield GaugeMetricFamily("actors_sessions", "Open sessions.", stats.sessions)
        yield GaugeMetricFamily("actors_sessions_hibernated", "Those without actors.", stats.hibernated)
        yield GaugeMetricFamily("actors_sessions_bytes", "Bytes that sessions hold.", stats.memory)
        limit, reuse = stats.memory_limit, stats.reuse
        yield GaugeMetricFamily("actors_sessions_bytes_limit", "Bytes that they may hold.", limit)
        for name, text in _REUSE.items():
            yield CounterMetricFamily(f"actors_sessions_{name}", text, getattr(reuse, name))
        held = GaugeMetricFamily("actors_quarantined", "Calls that are closed and run on.", labels=["tool"])
        for tool, count in stats.quarantined.items():
            held.add_metric([tool], count)
        yield held
        yield _lag(stats.loop_lag)
        for name, text, value in _of_the_loop(stats):
            yield CounterMetricFamily(f"actors_{name}", text, value)
        yield from _of_budgets(stats)
        journal = stats.journal
        yield GaugeMetricFamily("actors_journal_available", "1 while it can write.", journal.is_available)
        yield GaugeMetricFamily(
            "actors_journal_damaged", "1 if damage was found in it.", bool(journal.damage)
        )
        yield GaugeMetricFamily("actors_journal_waiting", "What waits for the journal.", journal.waiting)
        yield GaugeMetricFamily("actors_journal_lag_seconds", "How long one more would wait.", journal.lag)
        if journal.lease is not None:
            age = "Since this host was heard of."
            yield GaugeMetricFamily("actors_journal_lease_age_seconds", age, journal.lease_age)
        yield CounterMetricFamily("actors_journal_refused", "Events it could not write.", journal.refused)


def _lag(lag: LoopLag) -> "Metric":
    from prometheus_client.core import HistogramMetricFamily

    text = "Seconds that the event loop took to come round when turns computed."
    bounds = ("+Inf" if bound == inf else str(bound) for bound in lag.counts)
    buckets = list(zip(bounds, accumulate(lag.counts.values()), strict=True))
    return HistogramMetricFamily("actors_loop_lag_seconds", text, buckets, lag.seconds)


def _of_budgets(stats: RuntimeStats) -> "Iterator[Metric]":
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    for name, text in _BUDGETS.items():
        kind = CounterMetricFamily if name == "refused" else GaugeMetricFamily
        family = kind(f"actors_budget_{name}", text, labels=["budget"])
        for budget, each in stats.budgets.items():
            if (value := getattr(each, name)) is not None:
                family.add_metric([budget], float(value))
        yield family


def _of_the_loop(stats: RuntimeStats) -> tuple[tuple[str, str, float], ...]:
    return (
        ("slow_handlers", "Handlers that held up others.", stats.slow_handlers),
        ("stalls", "Times an async tool held up the event loop.", stats.stalls.count),
        ("stall_seconds", "Seconds for which async tools held it up.", stats.stalls.seconds),
    )


def _value(backend: BackendStats, name: str) -> float:
    return float(getattr(backend.tools if name in COUNTERS else backend, name))
