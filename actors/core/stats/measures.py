"""Measures: what a runtime counts of asks, requests and tools as they happen, for its stats.

Each is raised where the thing happens, and costs a few additions: the buckets of a histogram are made once. What they
are counted by is bounded. Names that others choose, of models and tools, are kept apart up to `MOST_NAMES`; what comes
after that is counted together as `OTHER`.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection
from math import inf
from typing import Literal, TypeAlias

from msgspec import Struct, field

from actors.core.stats.stats import Durations, ModelStats, ToolStats
from actors.core.values.stream import Usage

MOST_NAMES = 64
"""Names of one kind that are counted apart."""
OTHER = "other"
"""What the others are counted as."""

BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""Seconds up to which durations are counted, each by itself; one more count has the longer ones."""

AskOutcome: TypeAlias = Literal["complete", "cancelled", "failed", "interrupted", "refused", "dropped"]
"""How an ask came out: as its result says; or it was refused, at once or later; or its session ended before it did."""
SessionStage: TypeAlias = Literal["idle", "asking", "waiting"]
"""Whether an ask of a session is in flight, or waits for its caller: for results, or an approval."""

NO_RESPONSE, CANCELLED, UNUSUAL = "none", "cancelled", "other"
"""What a request is counted as that has no status: no response came, or it broke off; it was stopped. And one that no
standard knows."""
_STATUSES = frozenset(
    (
        *(100, 101, 102, 103, 200, 201, 202, 203, 204, 205, 206, 207, 208, 226, 300, 301, 302, 303, 304, 305),
        *(307, 308, *range(400, 419), *range(421, 427), 428, 429, 431, 451, 498, 499, *range(500, 512)),
        *range(520, 531),
    )
)
"""The statuses of HTTP that are known, those of gateways in front of providers included."""


class DurationCounts(Struct):
    """How long something took each time, by `BOUNDS`."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    seconds: float = 0.0
    longest: float = 0.0

    def note(self, seconds: float) -> None:
        """Count one."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds
        self.longest = max(self.longest, seconds)

    def add(self, other: "DurationCounts") -> None:
        """Count what another has counted too."""
        self.counts = [mine + its for mine, its in zip(self.counts, other.counts, strict=True)]
        self.seconds += other.seconds
        self.longest = max(self.longest, other.longest)

    @property
    def stats(self) -> Durations:
        """What was counted, as it is now."""
        return Durations(dict(zip((*BOUNDS, inf), self.counts, strict=True)), self.seconds, self.longest)


class RequestCounts(Struct):
    """How requests to one model fare.

    Args:
        statuses: How many ended so: with a status of HTTP, or as the constants above say.
        first_token, answer: How long it took until an answer began, and until it was whole.
        usage: The tokens of all of them.
    """

    statuses: Counter[str] = field(default_factory=Counter)
    first_token: DurationCounts = field(default_factory=DurationCounts)
    answer: DurationCounts = field(default_factory=DurationCounts)
    usage: Usage = field(default_factory=Usage)

    def end(self, sent: int, status: int | None, *, stopped: bool = False) -> None:
        """Count a try that sent so many requests: all but the last were answered."""
        if sent > 1:
            self.statuses["200"] += sent - 1
        if sent:
            self.statuses[CANCELLED if stopped else status_label(status)] += 1

    def use(self, usage: Usage) -> None:
        """Count the tokens of an answer."""
        self.usage += usage

    def add(self, other: "RequestCounts") -> None:
        """Count what another has counted too."""
        self.statuses.update(other.statuses)
        self.first_token.add(other.first_token)
        self.answer.add(other.answer)
        self.usage += other.usage

    def stats(self, cost: float | None) -> ModelStats:
        """Return what was counted, as it is now. `cost`: of the usage."""
        return ModelStats(dict(self.statuses), self.usage, cost, self.first_token.stats, self.answer.stats)


def status_label(status: int | None) -> str:
    """Return what a request is counted as that ended with a status, or without one."""
    if status is None:
        return NO_RESPONSE
    return str(status) if status in _STATUSES else UNUSUAL


class ToolTimes(Struct):
    """How calls of one tool fare: how long they took, and how many of them failed."""

    took: DurationCounts = field(default_factory=DurationCounts)
    failures: int = 0


class ToolMeasures(Struct):
    """How calls of tools fare, by the tool's name."""

    tools: dict[str, ToolTimes] = field(default_factory=dict)

    def end(self, tool: str, seconds: float, *, failed: bool) -> None:
        """Count a call that has ended."""
        times = self.tools.get(tool)
        if times is None:
            times = self.tools.setdefault(bounded(tool, self.tools), ToolTimes())
        times.took.note(seconds)
        times.failures += failed

    @property
    def stats(self) -> dict[str, ToolStats]:
        """What was counted, as it is now."""
        return {name: ToolStats(times.failures, times.took.stats) for name, times in self.tools.items()}


class AskCounts(Struct):
    """The asks of all sessions.

    Args:
        outcomes: How many came out so.
        queued: How many wait for the one in flight.
        stages: How many sessions are at each, but for the idle ones.
    """

    outcomes: dict[AskOutcome, int] = field(
        default_factory=lambda: dict.fromkeys(
            ("complete", "cancelled", "failed", "interrupted", "refused", "dropped"), 0
        )
    )
    queued: int = 0
    stages: dict[SessionStage, int] = field(
        default_factory=lambda: dict.fromkeys(("idle", "asking", "waiting"), 0)
    )


def bounded(name: str, known: Collection[str]) -> str:
    """Return what a name is counted as, beside those that are known."""
    return name if name in known or len(known) < MOST_NAMES else OTHER
