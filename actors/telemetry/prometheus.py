"""Export a runtime's stats as Prometheus metrics, by `prometheus-client` (extra `prometheus`). There is no global
state.

registry.register(PrometheusCollector(runtime.stats))
generate_latest(registry)
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from itertools import accumulate
from math import inf
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from actors.core.stats.measures import OTHER
from actors.core.stats.stats import COUNTERS, BackendStats, Durations, RuntimeStats
from actors.errors import ConfigError

if TYPE_CHECKING:
    from prometheus_client.core import Metric

T = TypeVar("T")

_HELP = {
    "tool_calls_total": "Tool calls that models made.",
    "tool_calls_invalid_args": "Tool calls refused for their name or arguments.",
    "tool_calls_repaired": "Tool calls whose arguments had a slip, and exactly one reading that fits.",
    "answers_repaired": "Answers of output= that had a slip, and exactly one reading that fits.",
    "tool_api_400_total": "Requests refused by the provider for their structure.",
    "tool_loop_max_iterations": "Turns that were ended with tools off.",
    "tool_calls_repeated": "Tool calls that were noticed to repeat, with the same result.",
    "retries": "Tries that were not their round's first.",
    "refused_media": "Tries that the provider refused for an attachment.",
    "refused_parameters": "Tries that the provider refused for an optional parameter.",
}
_GAUGES = {
    "in_flight": "Requests that are being answered.",
    "waiting": "Requests that wait for a place.",
    "is_open": "1 while the breaker is open.",
}
_TOKENS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_tokens",
    "cache_write": "cache_write_tokens",
}
_REUSE = {
    "hits": "Uses of sessions that were still in memory.",
    "rebuilds": "Uses for which a session was made of its log again.",
    "dropped": "Sessions of which all but the log was dropped to make room.",
}
_BUDGETS = {
    "rounds": "Rounds that sessions may use together.",
    "used_rounds": "Rounds that they have used.",
    "tokens": "Tokens that sessions may use together.",
    "used_tokens": "Tokens that they have used.",
    "reserved_tokens": "Tokens that their requests in flight are estimated to come to.",
    "money": "Money that sessions may use together.",
    "used_money": "Money that they have used.",
    "refused": "Asks and requests for which it was used up.",
}


class PrometheusCollector:
    """Collects the stats of a runtime at each scrape: `PrometheusCollector(runtime.stats)`.

    It stores no state. In a thread other than the runtime's, the figures of one scrape may come from different moments.

    Raises:
        ConfigError: `prometheus-client` is not installed.
    """

    def __init__(self, stats: Callable[[], RuntimeStats]) -> None:
        try:
            import_module("prometheus_client")  # fail here and not at the first scrape
        except ImportError:
            raise ConfigError(
                'Prometheus metrics need prometheus-client: pip install "llm-actors[prometheus]"'
            ) from None
        self._stats = stats

    def collect(self) -> "Iterator[Metric]":
        """Yield the metrics. Labels are configured names and values of fixed lists, never ids."""
        stats = self._stats()
        yield from _of_asks(stats)
        yield from _of_backends(stats)
        yield from _of_models(stats)
        yield from _of_tools(stats)
        yield from _of_sessions(stats)
        yield _histogram("loop_lag", _LAG, [((), stats.loop_lag)])
        for name, text, value in _of_the_loop(stats):
            yield _counter(name, text, [((), value)])
        yield from _of_budgets(stats)
        yield from _of_the_journal(stats)


_LAG = "How long the event loop took to come round when turns computed."
Labelled: TypeAlias = Iterable[tuple[tuple[str, ...], T]]
"""Pairs of label values and a value."""


def _counter(name: str, text: str, values: Labelled[float], *labels: str) -> "Metric":
    from prometheus_client.core import CounterMetricFamily

    family = CounterMetricFamily(f"actors_{name}", text, labels=labels)
    for of_labels, value in values:
        family.add_metric(of_labels, float(value))
    return family


def _gauge(name: str, text: str, values: Labelled[float], *labels: str) -> "Metric":
    from prometheus_client.core import GaugeMetricFamily

    family = GaugeMetricFamily(f"actors_{name}", text, labels=labels)
    for of_labels, value in values:
        family.add_metric(of_labels, float(value))
    return family


def _histogram(name: str, text: str, values: Labelled[Durations], *labels: str) -> "Metric":
    from prometheus_client.core import HistogramMetricFamily

    family = HistogramMetricFamily(f"actors_{name}_seconds", text, labels=labels)
    for of_labels, took in values:
        bounds = ("+Inf" if bound == inf else str(bound) for bound in took.counts)
        family.add_metric(
            of_labels, list(zip(bounds, accumulate(took.counts.values()), strict=True)), took.seconds
        )
    return family


def _of_asks(stats: RuntimeStats) -> "Iterator[Metric]":
    ended = [((outcome,), count) for outcome, count in stats.asks.items()]
    yield _counter("asks", "Asks that have ended, by how.", ended, "outcome")
    yield _gauge("asks_waiting", "Asks that wait for the one before them.", [((), stats.asks_waiting)])


def _of_backends(stats: RuntimeStats) -> "Iterator[Metric]":
    backends = stats.backends.items()
    for name, text in _HELP.items():
        counted = [((backend,), _value(each, name)) for backend, each in backends]
        yield _counter(name.removesuffix("_total"), text, counted, "backend")
    for name, text in _GAUGES.items():
        yield _gauge(name, text, [((backend,), getattr(each, name)) for backend, each in backends], "backend")


def _of_models(stats: RuntimeStats) -> "Iterator[Metric]":
    models = [
        ((backend, model), each)
        for backend, of_backend in stats.backends.items()
        for model, each in of_backend.models.items()
    ]
    by = ("backend", "model")
    requests = [((*of, status), count) for of, each in models for status, count in each.requests.items()]
    yield _counter("requests", "Requests that have ended, by status.", requests, *by, "status")
    tokens = [
        ((*of, kind), getattr(each.usage, name)) for of, each in models for kind, name in _TOKENS.items()
    ]
    yield _counter("tokens", "Tokens; those of the cache are part of input.", tokens, *by, "kind")
    costs = [(of, each.cost) for of, each in models if each.cost is not None]
    yield _counter("cost", "What they cost, where the price is known.", costs, *by)
    shares = [(of, each.cache_share) for of, each in models]
    yield _gauge("cache_share", "The part of input that came from a cache, since the start.", shares, *by)
    first = [(of, each.first_token) for of, each in models]
    yield _histogram("first_token", "From a request to the first piece of its answer.", first, *by)
    whole = [(of, each.answer) for of, each in models]
    yield _histogram("answer", "From a request to the end of its answer.", whole, *by)


def _of_tools(stats: RuntimeStats) -> "Iterator[Metric]":
    tools = stats.tools.items()
    took = [((tool,), each.seconds) for tool, each in tools]
    yield _histogram("tool", "How long calls took that have ended.", took, "tool")
    failed = [((tool,), each.failures) for tool, each in tools]
    yield _counter("tool_failures", "Calls that raised, or took too long.", failed, "tool")
    held = Counter[str](dict.fromkeys(stats.tools, 0))
    for tool, count in stats.quarantined.items():
        held[tool if tool in stats.tools else OTHER] += count
    running = [((tool,), count) for tool, count in held.items()]
    yield _gauge("quarantined", "Calls that are closed and run on.", running, "tool")
    yield _gauge("threads_waiting", "Calls that wait for a thread.", [((), stats.threads_waiting)])


def _of_sessions(stats: RuntimeStats) -> "Iterator[Metric]":
    states = {"active": stats.asking, "waiting": stats.awaiting, "idle": stats.idle}
    yield _gauge(
        "sessions", "Open sessions, by state.", [((name,), n) for name, n in states.items()], "state"
    )
    for name, text, value in (
        ("sessions_hibernated", "Those without actors.", stats.hibernated),
        ("sessions_bytes", "Bytes that sessions hold.", stats.memory),
        ("sessions_bytes_limit", "Bytes that they may hold.", stats.memory_limit),
    ):
        yield _gauge(name, text, [((), value)])
    for name, text in _REUSE.items():
        yield _counter(f"sessions_{name}", text, [((), getattr(stats.reuse, name))])


def _of_the_journal(stats: RuntimeStats) -> "Iterator[Metric]":
    journal = stats.journal
    for name, text, value in (
        ("available", "1 while it can write.", journal.is_available),
        ("damaged", "1 if damage was found in it.", bool(journal.damage)),
        ("waiting", "What waits for the journal.", journal.waiting),
        ("lag_seconds", "How long one more would wait.", journal.lag),
    ):
        yield _gauge(f"journal_{name}", text, [((), value)])
    if journal.lease is not None:
        yield _gauge("journal_lease_age_seconds", "Since this host was heard of.", [((), journal.lease_age)])
        yield _gauge("journal_lease_seconds", "How long others wait for it.", [((), journal.lease)])
    yield _counter("journal_refused", "Events it could not write.", [((), journal.refused)])
    yield _histogram("journal_commit", "How long commits of events took.", [((), journal.commits)])
    for name, text, size in (
        ("file_bytes", "The journal's file.", journal.sizes.file_bytes),
        ("log_bytes", "Its write-ahead log.", journal.sizes.log_bytes),
        ("checkpoint_lag_bytes", "What of that is not in the file yet.", journal.sizes.checkpoint_lag_bytes),
    ):
        if size is not None:  # a database server has no figures of this kind
            yield _gauge(f"journal_{name}", text, [((), size)])


def _of_budgets(stats: RuntimeStats) -> "Iterator[Metric]":
    for name, text in _BUDGETS.items():
        figures = ((budget, getattr(each, name)) for budget, each in stats.budgets.items())
        known = [((budget,), value) for budget, value in figures if value is not None]
        yield (_counter if name == "refused" else _gauge)(f"budget_{name}", text, known, "budget")


def _of_the_loop(stats: RuntimeStats) -> tuple[tuple[str, str, float], ...]:
    return (
        ("slow_handlers", "Handlers that held up others.", stats.slow_handlers),
        ("stalls", "Times an async tool held up the event loop.", stats.stalls.count),
        ("stall_seconds", "Seconds for which async tools held it up.", stats.stalls.seconds),
    )


def _value(backend: BackendStats, name: str) -> float:
    return float(getattr(backend.tools if name in COUNTERS else backend, name))
