"""Recount the figures of `runtime.stats()` from the logs, servers and tools of a simulation.

In:  the world of a run, and the checks that followed it.
Out: the expected value of each figure; or, for figures that only the runtime knows, why it is not counted again.

The table is total: a figure that is neither counted again nor excused fails a test.
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
    """Figures of a run from other sources than the runtime."""

    def __init__(self, world: World, witness: Witness, features: FeatureInvariants) -> None:
        self.requests: Counter[str] = Counter(world.network.requests)
        self.retries: Counter[str] = witness.retries
        self.running: int = world.toolbox.running.total()
        self.sessions: int = sum(not sighting.closed for sighting in witness.seen.values())
        self.tools: dict[str, ToolCounts] = defaultdict(ToolCounts)
        for session in witness.seen:
            for backend, counts in recount(world.journal.read(session)).items():
                if backend != RUNTIME.backend:  # no model made the calls of a program
                    self.tools[backend] = self.tools[backend].plus(counts)
        shared = features.shared
        self.shared: int | None = None if shared.sessions & world.crashed else shared.tokens


def _of_tools(name: str) -> Callable[[Recount, str], int]:
    return lambda seen, backend: int(getattr(seen.tools[backend], name))


OF_A_BACKEND: Mapping[str, Callable[[Recount, str], int]] = {
    "requests": lambda seen, name: seen.requests[name],
    "retries": lambda seen, name: seen.retries[name],
    "in_flight": lambda seen, name: 0,
    "waiting": lambda seen, name: 0,
    "refused_media": lambda seen, name: 0,
    "refused_parameters": lambda seen, name: 0,
    "models.requests": lambda seen, name: seen.requests[name],
    **{f"tools.{name}": _of_tools(name) for name in COUNTERS},
}
"""Recounted figures of each backend."""
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
"""Recounted figures of the runtime; None if a crash destroyed the evidence.

A transcript that the judge refuses is a problem of its own.
"""
EXCUSED: Mapping[str, str] = {
    "is_open": "a state and no count: a breaker closes with time, and with what others ask",
    "models.usage": "a round that a crash ended is in no log, and its tokens are counted",
    "models.cost": "by the tokens",
    "models.first_token": "by the clock of the machine, which no run decides",
    "models.answer": "by the clock of the machine, which no run decides",
    "asks": "callers are told, each of its own",
    "awaiting": "a state and no count: who waits is looked at session by session",
    "tools": "by the clock of the machine, which no run decides",
    "active": "which idle sessions have actors is nothing that a log or a server knows",
    "memory": "which sessions have lanes is nothing that a log knows; `judge` compares each part with what was folded",
    "memory_limit": "what is allowed",
    "reuse": "which idle sessions are in memory is nothing that a log or a server knows",
    "loop_lag": "by the clock of the machine, which no run decides",
    "slow_handlers": "by the clock of the machine, which no run decides",
    "stalls": "by the clock of the machine, which no run decides",
    "learned": "words of servers, none of which refuses a parameter here",
    "journal.durability": "a name",
    "journal.unavailable_since": "a state and no count",
    "journal.why": "words",
    "journal.damage": "words",
    "journal.lag": "a time",
    "journal.lease": "a setting",
    "journal.lease_age": "a time",
    "journal.sizes": "logs in memory have no files",
    "journal.commits": "by the clock of the machine, which no run decides",
    "budgets.rounds": "what is allowed",
    "budgets.used_rounds": "counted by the same call as the tokens, which are counted again",
    "budgets.tokens": "what is allowed",
    "budgets.money": "what is allowed",
    "budgets.used_money": "counted where money is allowed, by the tokens that are counted again",
    "budgets.refused": "turns and asks tell it in words, each in its own",
    "budgets.left_seconds": "a state and no count",
}
"""Figures that are not recounted, with the reason."""


def figures(stats: RuntimeStats, backends: Iterable[str]) -> Iterator[tuple[str, str, int]]:
    """Yield name, backend (if any) and value of each recounted figure."""
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
