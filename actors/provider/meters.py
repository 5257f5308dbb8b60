"""Meters: what a runtime's stats are read from. They are raised where things happen, and reading them asks nobody."""

from collections.abc import Callable

from msgspec import Struct, field

from actors.core.settings.spending import total
from actors.core.stats.measures import AskCounts, RequestCounts, ToolMeasures, bounded_label
from actors.core.stats.stats import BackendStats, ModelStats, ToolCounts, ToolStats
from actors.core.values.identity import Binding
from actors.core.values.stream import Usage
from actors.journal.outage import JournalMeter
from actors.provider.provider_actor import Meter


class Meters(Struct):
    """All meters of a runtime.

    Args:
        tools: How tool calls fare, by backend.
        providers: Of provider actors, with the binding; those of one that was given up too.
        on_slow: Called with what held up all others, after it was counted.
        slow: How often that was.
        journal: Of the journal.
        asks: Of the sessions' asks.
        calls: Of their tools.
    """

    on_slow: Callable[[str, str, float], object]
    tools: dict[str, ToolCounts] = field(default_factory=dict)
    providers: list[tuple[Binding, Meter]] = field(default_factory=list)
    slow: int = 0
    journal: JournalMeter = field(default_factory=JournalMeter)
    asks: AskCounts = field(default_factory=AskCounts)
    calls: ToolMeasures = field(default_factory=ToolMeasures)

    def provider(self, binding: Binding) -> Meter:
        """Return the meter of a new provider actor."""
        meter = Meter()
        self.providers.append((binding, meter))
        return meter

    def slowed(self, actor: str, message: str, seconds: float) -> None:
        """Count a handler that held up all others."""
        self.slow += 1
        self.on_slow(actor, message, seconds)

    @property
    def work(self) -> tuple[dict[str, int], int, int, int, dict[str, ToolStats]]:
        """What sessions do, in the order in which the stats have it."""
        asks, stages = self.asks, self.asks.stages
        outcomes = {str(outcome): count for outcome, count in asks.outcomes.items()}
        queues = asks.queued, stages["asking"], stages["waiting"]
        return outcomes, *queues, self.calls.stats

    def backends(self, cost: Callable[[Binding, Usage], float | None]) -> dict[str, BackendStats]:
        """Return the stats of each backend that was used. `cost`: of usage; None where a price is not known."""
        names = dict.fromkeys([*self.tools, *[binding.backend for binding, _ in self.providers]])
        return {name: self._backend(name, cost) for name in names}

    def _backend(self, name: str, cost: Callable[[Binding, Usage], float | None]) -> BackendStats:
        meters = [meter for binding, meter in self.providers if binding.backend == name]
        admitted = [meter.admission for meter in meters if meter.admission is not None]
        return BackendStats(
            self.tools.get(name, ToolCounts()).plus(ToolCounts()),  # a copy
            sum(meter.counters["requests"] for meter in meters),
            sum(meter.counters["retries"] for meter in meters),
            sum(each.in_flight for each in admitted),
            sum(each.waiting for each in admitted),
            any(each.breaker.until is not None for each in admitted),
            sum(meter.counters["refused_media"] for meter in meters),
            sum(meter.counters["refused_parameter"] for meter in meters),
            self._models(name, cost),
        )

    def _models(self, backend: str, cost: Callable[[Binding, Usage], float | None]) -> dict[str, ModelStats]:
        counts, costs = dict[str, RequestCounts](), dict[str, float | None]()
        for binding, meter in self.providers:
            if binding.backend == backend:
                model = bounded_label(binding.model, counts)
                counts.setdefault(model, RequestCounts()).add(meter.requests)
                costs[model] = total((costs.get(model, 0.0), cost(binding, meter.requests.usage)))
        return {model: each.stats(costs[model]) for model, each in counts.items()}
