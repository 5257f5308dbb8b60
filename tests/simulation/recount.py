"""Recount the figures of `runtime.stats()` from the logs, servers and tools of a simulation.

In:  the world of a run, and the checks that followed it.
Out: the expected value of each figure, or the reason why only the runtime knows it.

The table is complete: a figure without a recount or a reason fails a test.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from typing import Any

from msgspec.structs import fields

from actors.core.stats.stats import (
    COUNTERS,
    BackendStats,
    BudgetStats,
    JournalStats,
    ModelStats,
    RuntimeStats,
    ToolCounts,
    recount,
)
from actors.core.values.identity import RUNTIME
from actors.testing.simulation.world import World
from tests.simulation.invariants import FeatureInvariants
from tests.simulation.witness import Witness


class Recount:
    """The figures of a run from sources other than the runtime."""

    def __init__(self, world: World, witness: Witness, features: FeatureInvariants) -> None:
        self.requests: Counter[str] = Counter(world.network.requests)
        self.retries: Counter[str] = witness.retries
        self.running: int = world.toolbox.running.total()
        self.sessions: int = sum(not sighting.closed for sighting in witness.seen.values())
        self.tools: dict[str, ToolCounts] = defaultdict(ToolCounts)
        for session in witness.seen:
            for backend, counts in recount(world.journal.read(session)).items():
                if backend != RUNTIME.backend:  # calls made by the program have no model
                    self.tools[backend] = self.tools[backend].plus(counts)
        shared = features.shared
        self.shared: int | None = None if shared.sessions & world.crashed else shared.tokens


def _tool_metrics(name: str) -> Callable[[Recount, str], int]:
    return lambda seen, backend: int(getattr(seen.tools[backend], name))


OF_A_BACKEND: Mapping[str, Callable[[Recount, str], int]] = {
    "requests": lambda seen, name: seen.requests[name],
    "retries": lambda seen, name: seen.retries[name],
    "in_flight": lambda seen, name: 0,
    "waiting": lambda seen, name: 0,
    "refused_media": lambda seen, name: 0,
    "refused_parameters": lambda seen, name: 0,
    "models.requests": lambda seen, name: seen.requests[name],
    **{f"tools.{name}": _tool_metrics(name) for name in COUNTERS},
}
"""The recounted figures of each backend."""
OF_ALL: Mapping[str, Callable[[Recount], int | None]] = {
    "sessions": lambda seen: seen.sessions,
    "refused": lambda seen: sum(each.tool_api_400_total for each in seen.tools.values()),
    "quarantined": lambda seen: seen.running,
    "journal.refused": lambda seen: 0,
    "journal.waiting": lambda seen: 0,
    "asks_waiting": lambda seen: 0,
    "asking": lambda seen: 0,
    "threads_waiting": lambda seen: 0,
    "budgets.used_tokens": lambda seen: seen.shared,
    "budgets.reserved_tokens": lambda seen: 0,
    "budgets.in_flight": lambda seen: 0,
}
"""The recounted figures of the runtime; None if a crash destroyed the evidence.

A transcript that the judge refuses is reported separately.
"""
EXCUSED: Mapping[str, str] = {
    "is_open": "a state, not a count: a breaker closes with time and with other requests",
    "models.usage": "its tokens include rounds that a crash removed from the log",
    "models.cost": "by the tokens",
    "models.first_token": "measured by the real clock",
    "models.answer": "measured by the real clock",
    "asks": "each caller receives only its own result",
    "is_draining": "a state, not a count: no host here drains",
    "awaiting": "a state, not a count: paused turns are checked per session",
    "tools": "measured by the real clock",
    "active": "neither logs nor servers show which idle sessions have actors",
    "memory": "logs do not show which sessions have lanes; `judge` compares each part with the fold",
    "memory_limit": "what is allowed",
    "reuse": "neither logs nor servers show which idle sessions are in memory",
    "loop_lag": "measured by the real clock",
    "slow_handlers": "measured by the real clock",
    "stalls": "measured by the real clock",
    "learned": "learned from refusals of parameters, which the servers here never send",
    "journal.durability": "a name",
    "journal.unavailable_since": "a state, not a count",
    "journal.reason": "words",
    "journal.damage": "words",
    "journal.lag": "a time",
    "journal.lease": "a setting",
    "journal.lease_age": "a time",
    "journal.sizes": "logs in memory have no files",
    "journal.commits": "measured by the real clock",
    "budgets.rounds": "what is allowed",
    "budgets.used_rounds": "counted by the same call as the tokens, which are recounted",
    "budgets.tokens": "what is allowed",
    "budgets.money": "what is allowed",
    "budgets.used_money": "computed from the tokens, which are recounted",
    "budgets.refused": "turns and asks report it only as text",
    "budgets.left_seconds": "a state, not a count",
}
"""Figures that are not recounted, with the reason."""


def figures(stats: RuntimeStats, backends: Iterable[str]) -> Iterator[tuple[str, str, int]]:
    """Yield the name, backend (if any) and value of each recounted figure."""
    for backend in backends:
        each = stats.backends.get(backend, BackendStats(ToolCounts()))
        for name in OF_A_BACKEND:
            yield name, backend, _figure(each, name)
    for name in OF_ALL:
        yield name, "", _figure(stats, name)


def _figure(stats: object, name: str) -> int:
    if isinstance(stats, RuntimeStats) and name.startswith("budgets."):
        return sum(getattr(each, name.removeprefix("budgets.")) for each in stats.budgets.values())
    if isinstance(stats, BackendStats) and name == "models.requests":
        return sum(sum(model.requests.values()) for model in stats.models.values())
    value: Any = reduce(getattr, name.split("."), stats)  # Any: a number, or some by name
    return sum(value.values()) if isinstance(value, dict) else int(value)


def stats_differences(stats: RuntimeStats, seen: Recount) -> Iterator[str]:
    """Yield a line for each figure that differs from its recount."""
    for name, backend, value in figures(stats, {**stats.backends, **seen.requests, **seen.tools}):
        must = OF_A_BACKEND[name](seen, backend) if backend else OF_ALL[name](seen)
        if must is not None and value != must:
            yield f"{name} of {backend or 'all'}: {value}, and {must} were seen"


def names_of(kind: Any = RuntimeStats, within: str = "") -> Iterator[str]:  # Any: a struct
    """Yield the name of each figure in the stats."""
    for each in fields(kind):
        if (part := _PARTS.get((kind, each.name))) is not None:
            yield from names_of(*part)
        else:
            yield within + each.name


_PARTS = {
    (RuntimeStats, "backends"): (BackendStats, ""),
    (BackendStats, "tools"): (ToolCounts, "tools."),
    (BackendStats, "models"): (ModelStats, "models."),
    (RuntimeStats, "journal"): (JournalStats, "journal."),
    (RuntimeStats, "budgets"): (BudgetStats, "budgets."),
}
