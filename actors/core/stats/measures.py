"""Count asks, requests and tool calls as they happen, for a runtime's stats.

Counting an event costs a few additions, because the buckets of a histogram are allocated once. The number of labels is
bounded: up to `MOST_NAMES` names of models or tools are counted separately, and all later names are counted together as
`OTHER`.
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
"""Maximum number of models, or of tools, that are counted separately."""
OTHER = "other"
"""The label under which all later names are counted."""

BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""Upper bounds of a histogram's buckets, in seconds. One more bucket counts longer durations."""

AskOutcome: TypeAlias = Literal["complete", "cancelled", "failed", "interrupted", "refused", "dropped"]
"""The outcome of an ask: the status of its result, `refused` if the ask was not accepted, or `dropped` if the session
ended first.
"""
SessionStage: TypeAlias = Literal["idle", "asking", "waiting"]
"""The stage of a session: without an ask, with an ask in flight, or waiting for results or an approval."""

NO_RESPONSE, CANCELLED, UNUSUAL = "none", "cancelled", "other"
"""Labels of requests without a known status: the response is missing or incomplete; the request was cancelled; the
status is unknown.
"""
_STATUSES = frozenset(
    (
        *(100, 101, 102, 103, 200, 201, 202, 203, 204, 205, 206, 207, 208, 226, 300, 301, 302, 303, 304, 305),
        *(307, 308, *range(400, 419), *range(421, 427), 428, 429, 431, 451, 498, 499, *range(500, 512)),
        *range(520, 531),
    )
)
"""Known HTTP statuses, including those of gateways in front of providers."""


class DurationCounts(Struct):
    """A histogram of durations.

    `counts` has one number per bucket of `BOUNDS`, and a last number for longer durations.
    """

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    seconds: float = 0.0
    longest: float = 0.0

    def record(self, seconds: float) -> None:
        """Count a duration, given in seconds."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds
        self.longest = max(self.longest, seconds)

    def add(self, other: "DurationCounts") -> None:
        """Add the counts of another histogram."""
        self.counts = [own + added for own, added in zip(self.counts, other.counts, strict=True)]
        self.seconds += other.seconds
        self.longest = max(self.longest, other.longest)

    @property
    def stats(self) -> Durations:
        """The current counts as an immutable value that shares no data with this object."""
        return Durations(dict(zip((*BOUNDS, inf), self.counts, strict=True)), self.seconds, self.longest)


class RequestCounts(Struct):
    """The outcomes of requests to one model.

    Args:
        statuses: Number of ended requests by HTTP status, or by `none`, `cancelled` or `other`.
        first_token, answer: Durations until the first fragment and until the end of an answer.
        usage: Tokens of all requests.
    """

    statuses: Counter[str] = field(default_factory=Counter[str])
    first_token: DurationCounts = field(default_factory=DurationCounts)
    answer: DurationCounts = field(default_factory=DurationCounts)
    usage: Usage = field(default_factory=Usage)

    def record_end(self, sent: int, status: int | None, *, stopped: bool = False) -> None:
        """Count the requests of one attempt to get an answer.

        All of the `sent` requests except the last one were answered. `status` is the HTTP status of the last request,
        and `stopped` is True if the last request was cancelled.
        """
        if sent > 1:
            self.statuses["200"] += sent - 1
        if sent:
            self.statuses[CANCELLED if stopped else status_label(status)] += 1

    def add_usage(self, usage: Usage) -> None:
        """Add the tokens of an answer."""
        self.usage += usage

    def add(self, other: "RequestCounts") -> None:
        """Add the counts of another model."""
        self.statuses.update(other.statuses)
        self.first_token.add(other.first_token)
        self.answer.add(other.answer)
        self.usage += other.usage

    def stats(self, cost: float | None) -> ModelStats:
        """Return the current counts as an immutable value.

        `cost` is the price of the tokens; None if a price is unknown.
        """
        return ModelStats(dict(self.statuses), self.usage, cost, self.first_token.stats, self.answer.stats)


def status_label(status: int | None) -> str:
    """Return the label under which a request with this HTTP status is counted; None means that no response arrived."""
    if status is None:
        return NO_RESPONSE
    return str(status) if status in _STATUSES else UNUSUAL


class ToolTimes(Struct):
    """Durations and failures of the calls of one tool."""

    durations: DurationCounts = field(default_factory=DurationCounts)
    failures: int = 0


class ToolMeasures(Struct):
    """Durations and failures of tool calls, by tool name."""

    tools: dict[str, ToolTimes] = {}

    def record_call(self, tool: str, seconds: float, *, failed: bool) -> None:
        """Count a completed call of a tool and its duration in seconds."""
        times = self.tools.get(tool)
        if times is None:
            times = self.tools.setdefault(bounded_label(tool, self.tools), ToolTimes())
        times.durations.record(seconds)
        times.failures += failed

    @property
    def stats(self) -> dict[str, ToolStats]:
        """The current counts as immutable values."""
        return {name: ToolStats(times.failures, times.durations.stats) for name, times in self.tools.items()}


class AskCounts(Struct):
    """Counters for the asks of all sessions.

    Args:
        outcomes: Number of ended asks by outcome.
        queued: Number of asks that wait for another ask of their session.
        stages: Number of sessions in each stage. The entry `idle` is not meaningful.
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


def bounded_label(name: str, known: Collection[str]) -> str:
    """Return the label under which to count a name: the name itself, or `OTHER` if too many names are known."""
    return name if name in known or len(known) < MOST_NAMES else OTHER
