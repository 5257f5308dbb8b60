"""Export the statistics, traces and metrics of a runtime.

    async with Runtime(tracing=Tracing()) as runtime:
        registry.register(PrometheusCollector(runtime.stats))

`Runtime.stats` returns a `RuntimeStats`, and most other classes here are parts of it. Log events need nothing from this
module: the loggers `actors` and `actors.tools` of `logging` or structlog receive them. Each name is imported when it is
first used, because `Tracing` needs the extra `otel`, and `PrometheusCollector` the extra `prometheus`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from actors.core.stats.stats import (
        BackendStats,
        BudgetStats,
        Durations,
        JournalStats,
        LearnedFact,
        LoopLag,
        ModelStats,
        ReuseStats,
        RuntimeStats,
        Stalls,
        ToolCounts,
        ToolStats,
    )
    from actors.telemetry.otel import Tracing
    from actors.telemetry.prometheus import PrometheusCollector

__all__ = [
    "BackendStats",
    "BudgetStats",
    "Durations",
    "JournalStats",
    "LearnedFact",
    "LoopLag",
    "ModelStats",
    "PrometheusCollector",
    "ReuseStats",
    "RuntimeStats",
    "Stalls",
    "ToolCounts",
    "ToolStats",
    "Tracing",
]

_HOMES = {"PrometheusCollector": "actors.telemetry.prometheus", "Tracing": "actors.telemetry.otel"}
"""Names that are not defined in `actors.core.stats.stats`, with their modules."""


if not TYPE_CHECKING:  # hidden from type checkers, which would otherwise accept any name

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_HOMES.get(name, "actors.core.stats.stats")), name)
