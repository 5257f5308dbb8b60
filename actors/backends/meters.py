"""Meters: what a runtime's stats are read from. They are raised where things happen, and reading them asks nobody."""

from collections.abc import Callable

from msgspec import Struct, field

from actors.core.stats import BackendStats, ToolCounts
from actors.logs.outage import JournalMeter
from actors.provider import Meter


class Meters(Struct):
    """All meters of a runtime.

    Args:
        tools: How tool calls fare, by backend.
        providers: Of provider actors, with the backend's name; those of one that was given up too.
        on_slow: Called with what held up all others, after it was counted.
        slow: How often that was.
        journal: Of the journal.
    """

    on_slow: Callable[[str, str, float], object]
    tools: dict[str, ToolCounts] = field(default_factory=dict)
    providers: list[tuple[str, Meter]] = field(default_factory=list)
    slow: int = 0
    journal: JournalMeter = field(default_factory=JournalMeter)

    def provider(self, backend: str) -> Meter:
        """Return the meter of a new provider actor."""
        meter = Meter()
        self.providers.append((backend, meter))
        return meter

    def slowed(self, actor: str, message: str, seconds: float) -> None:
        """Count a handler that held up all others."""
        self.slow += 1
        self.on_slow(actor, message, seconds)

    def backends(self) -> dict[str, BackendStats]:
        """Return the stats of each backend that was used."""
        names = dict.fromkeys([*self.tools, *[name for name, _ in self.providers]])
        return {name: self._backend(name) for name in names}

    def _backend(self, name: str) -> BackendStats:
        meters = [meter for each, meter in self.providers if each == name]
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
        )
