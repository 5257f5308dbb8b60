"""Record outages of the journal: their start, their cause, and the delay of writers.

The journal actor records them, and `Runtime.stats` reads them without sending a message.
"""

from collections.abc import Callable
from math import ceil
from time import monotonic, time
from typing import TypeVar

from msgspec import Struct, field

from actors.core.stats.measures import DurationCounts
from actors.core.stats.stats import LAG, JournalStats, StorageSizes
from actors.telemetry import logger

__all__ = ["LAG", "JournalHealth"]

R = TypeVar("R")

LONGEST = 300
"""Most characters of the cause that are kept."""


class JournalHealth(Struct):
    """The measurements of the journal actor.

    Args:
        damage: The first damage found, in the words of the storage; empty without damage.
        refused: Events that could not be written.
        since: The start of the outage, by `clock`; None while the journal works.
        why: The storage's error at that time.
        began: The start of the running write, by the loop's clock; None without one.
        took: Seconds that the last write took.
        queued: Commands that the actor has received and not started.
        beaten: The time of the last lease renewal, by the loop's clock; None before the first.
        commits: Durations of commits.
        clock: The wall clock, in seconds since 1970.
    """

    damage: str = ""
    refused: int = 0
    since: float | None = None
    why: str = ""
    began: float | None = None
    took: float = 0.0
    queued: int = 0
    beaten: float | None = None
    commits: DurationCounts = field(default_factory=DurationCounts)
    clock: Callable[[], float] = time

    def time_commit(self, commit: Callable[[], R]) -> R:
        """Commit, in the thread of the storage, and record the duration. Failed commits are not counted."""
        began = monotonic()
        written = commit()
        self.commits.record(monotonic() - began)
        return written

    def record_failure(self, error: Exception) -> None:
        """Record that the journal is unavailable."""
        if self.since is None:
            self.since, self.why = self.clock(), str(error)[:LONGEST]
            logger.journal_unavailable(self.why)

    def found_damaged(self, error: Exception) -> None:
        """Record that a part of the journal is damaged, for the rest of the runtime's life."""
        if not self.damage:
            self.damage = str(error)[:LONGEST]
            logger.journal_damaged(self.damage)

    def record_success(self) -> None:
        """Record a successful write, which ends an outage."""
        if self.since is not None:
            logger.journal_available(self.clock() - self.since)
            self.since, self.why = None, ""

    def record_beat(self, now: float) -> None:
        """Record a renewal of the lease."""
        self.beaten = now

    def begin(self, now: float) -> None:
        """Record the start of a batch."""
        self.began = now

    def end(self, now: float) -> None:
        """Record the end of a batch."""
        if (began := self.began) is not None:
            self.began, self.took = None, now - began

    def lag(self, waiting: int, batch: int, now: float) -> float:
        """Return the seconds that another command would wait behind `waiting` messages, written in batches of
        `batch`."""
        under_way = 0.0 if self.began is None else now - self.began
        return under_way + ceil((waiting + self.queued) / batch) * self.took

    def stats(
        self, durability: str, lease: float | None, sizes: StorageSizes, waiting: int, batch: int, now: float
    ) -> JournalStats:
        """Return the stats of the journal, with `waiting` messages in the mailbox, written in batches of `batch`."""
        lag = round(self.lag(waiting, batch, now), 3)
        age = 0.0 if self.beaten is None else round(now - self.beaten, 3)
        queued = waiting + self.queued
        unavailable = self.since, self.why, self.refused
        return JournalStats(
            durability, *unavailable, queued, self.damage, lag, lease, age, sizes, self.commits.stats
        )
