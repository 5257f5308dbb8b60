"""Statistics, traces and metrics of a runtime.

    async with Runtime(tracing=Tracing()) as runtime:
        registry.register(PrometheusCollector(runtime.stats))

`Runtime.stats` returns a `RuntimeStats`, which consists of the other classes here. Log events need no name of this
module: the loggers `actors` and `actors.tools` of `logging` or structlog receive them. Names are imported when they are
first used: `Tracing` needs the extra `otel`, `PrometheusCollector` the extra `prometheus`.
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
"""The modules of the names that are not statistics."""


if not TYPE_CHECKING:  # a type checker sees the imports above, and no other name

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_HOMES.get(name, "actors.core.stats.stats")), name)
