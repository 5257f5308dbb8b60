"""Export a runtime's statistics as Prometheus metrics.

    registry.register(PrometheusCollector(runtime.stats))
    generate_latest(registry)

The collector needs `prometheus-client` (extra `prometheus`). It stores nothing between scrapes.
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
    "tool_calls_invalid_args": "Tool calls rejected for their name or arguments.",
    "tool_calls_repaired": "Tool calls with invalid arguments of which exactly one interpretation fits the schema.",
    "answers_repaired": "Answers for output= of which exactly one interpretation fits the schema.",
    "tool_api_400_total": "Requests that the provider rejected for their structure, or accepted only in part.",
    "tool_loop_max_iterations": "Turns that the runtime ended with a request without tools.",
    "tool_calls_repeated": "Tool calls detected as repeats of an earlier call with the same result.",
    "retries": "Attempts of requests after the first.",
    "refused_media": "Requests that the provider rejected because of an attachment.",
    "refused_parameters": "Requests that the provider rejected because of an optional parameter.",
}
_GAUGES = {
    "in_flight": ("in_flight", "Requests that are sent and not yet answered."),
    "waiting": ("waiting", "Requests that wait for a free slot."),
    "circuit_open": ("is_open", "1 while the circuit breaker is open."),
}
"""For each metric of a backend: the field of its statistics, and the description."""
_TOKENS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_tokens",
    "cache_write": "cache_write_tokens",
}
_REUSE = {
    "hits": "Uses of sessions that were still in memory.",
    "rebuilds": "Uses of sessions that had to be rebuilt from their logs.",
    "dropped": "Sessions removed from memory to free space; their logs remain.",
}
_BUDGETS = {
    "rounds": "Rounds that the sessions of the budget may use in total.",
    "used_rounds": "Rounds that the sessions of the budget have used.",
    "tokens": "Tokens that the sessions of the budget may use in total.",
    "used_tokens": "Tokens that the sessions of the budget have used.",
    "reserved_tokens": "Estimated tokens of the budget's requests in flight.",
    "money": "Money that the sessions of the budget may spend in total.",
    "used_money": "Money that the sessions of the budget have spent.",
    "refused": "Asks and requests rejected because the budget was used up.",
}


class PrometheusCollector:
    """A Prometheus collector that reads the statistics of a runtime at each scrape.

    If a scrape runs in another thread than the runtime, the figures may come from slightly different moments.

    Raises:
        ConfigError: `prometheus-client` is not installed.
    """

    def __init__(self, stats: Callable[[], RuntimeStats]) -> None:
        try:
            # If the package is missing, fail now instead of at the first scrape.
            import_module("prometheus_client")
        except ImportError:
            raise ConfigError(
                'Prometheus metrics need prometheus-client: pip install "llm-actors[prometheus]"'
            ) from None
        self._stats = stats

    def collect(self) -> "Iterator[Metric]":
        """Yield the metrics. A label is a configured name or a value from a fixed list, and never an id."""
        stats = self._stats()
        yield from _ask_metrics(stats)
        yield from _backend_metrics(stats)
        yield from _model_metrics(stats)
        yield from _tool_metrics(stats)
        yield from _session_metrics(stats)
        yield _histogram("loop_lag", _LAG, [((), stats.loop_lag)])
        for name, text, value in _loop_counters(stats):
            yield _counter(name, text, [((), value)])
        yield from _budget_metrics(stats)
        yield from _journal_metrics(stats)


_LAG = "Delay of the event loop while turns compute."
Labelled: TypeAlias = Iterable[tuple[tuple[str, ...], T]]
"""Samples of a metric. Each sample is a pair of its label values and its value."""


def _counter(name: str, description: str, values: Labelled[float], *labels: str) -> "Metric":
    from prometheus_client.core import CounterMetricFamily

    family = CounterMetricFamily(f"actors_{name}", description, labels=labels)
    for of_labels, value in values:
        family.add_metric(of_labels, float(value))
    return family


def _gauge(name: str, description: str, values: Labelled[float], *labels: str) -> "Metric":
    from prometheus_client.core import GaugeMetricFamily

    family = GaugeMetricFamily(f"actors_{name}", description, labels=labels)
    for of_labels, value in values:
        family.add_metric(of_labels, float(value))
    return family


def _histogram(name: str, description: str, values: Labelled[Durations], *labels: str) -> "Metric":
    from prometheus_client.core import HistogramMetricFamily

    family = HistogramMetricFamily(f"actors_{name}_seconds", description, labels=labels)
    for of_labels, took in values:
        bounds = ("+Inf" if bound == inf else str(bound) for bound in took.counts)
        family.add_metric(
            of_labels, list(zip(bounds, accumulate(took.counts.values()), strict=True)), took.seconds
        )
    return family


def _ask_metrics(stats: RuntimeStats) -> "Iterator[Metric]":
    ended = [((outcome,), count) for outcome, count in stats.asks.items()]
    yield _counter("asks", "Asks that have ended, by outcome.", ended, "outcome")
    yield _gauge(
        "asks_waiting", "Asks that wait for an earlier ask of their session.", [((), stats.asks_waiting)]
    )


def _backend_metrics(stats: RuntimeStats) -> "Iterator[Metric]":
    backends = stats.backends.items()
    for name, text in _HELP.items():
        counted = [((backend,), _read_value(each, name)) for backend, each in backends]
        yield _counter(name.removesuffix("_total"), text, counted, "backend")
    for name, (field, text) in _GAUGES.items():
        yield _gauge(
            name, text, [((backend,), getattr(each, field)) for backend, each in backends], "backend"
        )


def _model_metrics(stats: RuntimeStats) -> "Iterator[Metric]":
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
    yield _counter("tokens", "Tokens by kind; input includes the cached tokens.", tokens, *by, "kind")
    costs = [(of, each.cost) for of, each in models if each.cost is not None]
    yield _counter("cost", "Cost of requests to models with a known price.", costs, *by)
    shares = [(of, each.cache_share) for of, each in models]
    yield _gauge("cache_share", "Share of input tokens read from a cache since the start.", shares, *by)
    first = [(of, each.first_token) for of, each in models]
    yield _histogram("first_token", "Time from a request to the first token of its answer.", first, *by)
    complete = [(of, each.answer) for of, each in models]
    yield _histogram("answer", "Time from a request to the end of its answer.", complete, *by)


def _tool_metrics(stats: RuntimeStats) -> "Iterator[Metric]":
    tools = stats.tools.items()
    took = [((tool,), each.durations) for tool, each in tools]
    yield _histogram("tool", "Duration of tool calls that have ended.", took, "tool")
    failed = [((tool,), each.failures) for tool, each in tools]
    yield _counter("tool_failures", "Tool calls that raised or timed out.", failed, "tool")
    held = Counter[str](dict.fromkeys(stats.tools, 0))
    for tool, count in stats.quarantined.items():
        held[tool if tool in stats.tools else OTHER] += count
    running = [((tool,), count) for tool, count in held.items()]
    yield _gauge("quarantined", "Abandoned tool calls that still run.", running, "tool")
    yield _gauge("threads_waiting", "Tool calls that wait for a thread.", [((), stats.threads_waiting)])


def _session_metrics(stats: RuntimeStats) -> "Iterator[Metric]":
    states = {"active": stats.asking, "waiting": stats.awaiting, "idle": stats.idle}
    yield _gauge(
        "sessions", "Open sessions, by state.", [((name,), n) for name, n in states.items()], "state"
    )
    for name, text, value in (
        ("sessions_hibernated", "Open sessions without actors in memory.", stats.hibernated),
        ("sessions_bytes", "Bytes of memory that sessions use.", stats.memory),
        ("sessions_bytes_limit", "Bytes of memory that sessions may use.", stats.memory_limit),
    ):
        yield _gauge(name, text, [((), value)])
    for name, text in _REUSE.items():
        yield _counter(f"sessions_{name}", text, [((), getattr(stats.reuse, name))])


def _journal_metrics(stats: RuntimeStats) -> "Iterator[Metric]":
    journal = stats.journal
    for name, text, value in (
        ("available", "1 while the journal can write.", journal.is_available),
        ("damaged", "1 if the journal is damaged.", bool(journal.damage)),
        ("waiting", "Commands that wait for the journal.", journal.waiting),
        ("lag_seconds", "Estimated wait of a new command for the journal.", journal.lag),
    ):
        yield _gauge(f"journal_{name}", text, [((), value)])
    if journal.lease is not None:
        yield _gauge(
            "journal_lease_age_seconds", "Time since the lease was renewed.", [((), journal.lease_age)]
        )
        yield _gauge("journal_lease_seconds", "Time after which the lease expires.", [((), journal.lease)])
    yield _counter("journal_refused", "Events that the journal could not write.", [((), journal.refused)])
    yield _histogram("journal_commit", "Duration of commits to the journal.", [((), journal.commits)])
    for name, text, size in (
        ("file_bytes", "Size of the journal's file.", journal.sizes.file_bytes),
        ("log_bytes", "Size of the journal's write-ahead log.", journal.sizes.log_bytes),
        (
            "checkpoint_lag_bytes",
            "Bytes of the write-ahead log that are not in the file yet.",
            journal.sizes.checkpoint_lag_bytes,
        ),
    ):
        if size is not None:  # only a journal in a file reports sizes
            yield _gauge(f"journal_{name}", text, [((), size)])


def _budget_metrics(stats: RuntimeStats) -> "Iterator[Metric]":
    for name, text in _BUDGETS.items():
        figures = ((budget, getattr(each, name)) for budget, each in stats.budgets.items())
        known = [((budget,), value) for budget, value in figures if value is not None]
        yield (_counter if name == "refused" else _gauge)(f"budget_{name}", text, known, "budget")


def _loop_counters(stats: RuntimeStats) -> tuple[tuple[str, str, float], ...]:
    return (
        ("slow_handlers", "Message handlers that blocked the event loop.", stats.slow_handlers),
        ("stalls", "Times that an async tool blocked the event loop.", stats.stalls.count),
        ("stall_seconds", "Seconds that async tools blocked the event loop.", stats.stalls.seconds),
    )


def _read_value(backend: BackendStats, name: str) -> float:
    """Return the statistic `name` of a backend, or of `backend.tools` for the counters of tool calls."""
    return float(getattr(backend.tools if name in COUNTERS else backend, name))
