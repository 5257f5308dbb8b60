"""Outages of the journal: since when it cannot write and why, and how long it makes those wait who write.

The journal actor notes it, `Runtime.stats` tells it, and reading it asks nobody.
"""

from collections.abc import Callable
from math import ceil
from time import monotonic, time
from typing import TypeVar

from msgspec import Struct, field

from actors import telemetry
from actors.core.stats.measures import DurationCounts
from actors.core.stats.stats import LAG, JournalStats, StorageSizes

__all__ = ["LAG", "JournalMeter"]

R = TypeVar("R")

LONGEST = 300
"""Characters that are kept of why."""


class JournalMeter(Struct):
    """What the journal actor notes.

    Args:
        damage: The first damage that was found, in the words of the storage; empty while there is none.
        refused: Events that could not be written.
        since: The time when it became unavailable, by `clock`; None while it works.
        why: What the storage said then.
        began: When what is being written was begun, by the clock of the loop; None if nothing is.
        took: Seconds that it took the last time.
        queued: What the actor has taken from its mailbox, and not begun.
        beaten: When the lease was last prolonged, by the clock of the loop; None before the first time.
        commits: How long commits took.
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
        """Commit, in the thread of the storage, and note how long that took; a commit that fails is not counted."""
        began = monotonic()
        written = commit()
        self.commits.note(monotonic() - began)
        return written

    def failed(self, error: Exception) -> None:
        """Note that the journal is unavailable."""
        if self.since is None:
            self.since, self.why = self.clock(), str(error)[:LONGEST]
            telemetry.journal_unavailable(self.why)

    def found_damaged(self, error: Exception) -> None:
        """Note that a part of the journal is damaged. That stays so until the runtime is left."""
        if not self.damage:
            self.damage = str(error)[:LONGEST]
            telemetry.journal_damaged(self.damage)

    def worked(self) -> None:
        """Note that something was written."""
        if self.since is not None:
            telemetry.journal_available(self.clock() - self.since)
            self.since, self.why = None, ""

    def beat(self, now: float) -> None:
        """Note that the lease was prolonged."""
        self.beaten = now

    def begin(self, now: float) -> None:
        """Note that a batch is being written."""
        self.began = now

    def end(self, now: float) -> None:
        """Note that it is done with."""
        if (began := self.began) is not None:
            self.began, self.took = None, now - began

    def lag(self, waiting: int, batch: int, now: float) -> float:
        """Return the seconds that one more would wait, where `waiting` are in the mailbox, written `batch` at once."""
        under_way = 0.0 if self.began is None else now - self.began
        return under_way + ceil((waiting + self.queued) / batch) * self.took

    def stats(
        self, level: str, lease: float | None, sizes: StorageSizes, waiting: int, batch: int, now: float
    ) -> JournalStats:
        """Return how the journal stands, where `waiting` are in the mailbox, written `batch` at once."""
        lag = round(self.lag(waiting, batch, now), 3)
        age = 0.0 if self.beaten is None else round(now - self.beaten, 3)
        waits = waiting + self.queued
        unavailable = self.since, self.why, self.refused
        return JournalStats(
            level, *unavailable, waits, self.damage, lag, lease, age, sizes, self.commits.stats
        )
