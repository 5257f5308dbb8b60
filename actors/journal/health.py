"""Record the outages of the journal: when an outage began, its cause, and how long writers wait.

The journal actor updates these measurements. `Runtime.stats` reads them directly, without sending a message.
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
"""Maximum characters of an error message that are stored."""


class JournalHealth(Struct):
    """The measurements of the journal actor.

    Args:
        damage: The storage's message about the first damage that it found; empty without damage.
        refused: Number of events that could not be written.
        since: Start of the current outage, by `clock`; None while the journal works.
        why: The storage's error message at the start of the outage.
        began: Start of the write in progress, by the event loop's clock; None between writes.
        took: Duration of the last write, in seconds.
        queued: Number of commands that the actor has received but has not started to run.
        renewed_at: Time of the last lease renewal, by the event loop's clock; None before the first renewal.
        commits: Durations of commits.
        clock: Returns the wall-clock time in seconds since 1970.
    """

    damage: str = ""
    refused: int = 0
    since: float | None = None
    why: str = ""
    began: float | None = None
    took: float = 0.0
    queued: int = 0
    renewed_at: float | None = None
    commits: DurationCounts = field(default_factory=DurationCounts)
    clock: Callable[[], float] = time

    def time_commit(self, commit: Callable[[], R]) -> R:
        """Call `commit`, record the duration of the call, and return the result. Failed commits are not counted."""
        began = monotonic()
        written = commit()
        self.commits.record(monotonic() - began)
        return written

    def record_failure(self, error: Exception) -> None:
        """Record the start of an outage. Later failures during the outage have no effect."""
        if self.since is None:
            self.since, self.why = self.clock(), str(error)[:LONGEST]
            logger.journal_unavailable(self.why)

    def record_damage_found(self, error: Exception) -> None:
        """Record that the journal is damaged. Only the first call has an effect."""
        if not self.damage:
            self.damage = str(error)[:LONGEST]
            logger.journal_damaged(self.damage)

    def record_success(self) -> None:
        """Record a successful write. If there was an outage, it is now over."""
        if self.since is not None:
            logger.journal_available(self.clock() - self.since)
            self.since, self.why = None, ""

    def record_renewal_time(self, now: float) -> None:
        """Record that the lease was renewed at the time `now`."""
        self.renewed_at = now

    def begin_batch(self, now: float) -> None:
        """Record that a batch of commands started at the time `now`."""
        self.began = now

    def end_batch(self, now: float) -> None:
        """Record that the batch ended at the time `now`."""
        if (began := self.began) is not None:
            self.began, self.took = None, now - began

    def lag(self, mailbox_size: int, max_batch: int, now: float) -> float:
        """Estimate how many seconds a new command would wait.

        Args:
            mailbox_size: Number of messages in the actor's mailbox.
            max_batch: Maximum number of commands that are written together.
            now: The current time, by the event loop's clock.
        """
        elapsed = 0.0 if self.began is None else now - self.began
        return elapsed + ceil((mailbox_size + self.queued) / max_batch) * self.took

    def stats(
        self,
        durability: str,
        lease: float | None,
        sizes: StorageSizes,
        mailbox_size: int,
        max_batch: int,
        now: float,
    ) -> JournalStats:
        """Return the statistics of the journal.

        Args:
            durability: The worst kind of failure that acknowledged events survive.
            lease: The duration of a lease, in seconds; None if the storage has no leases.
            sizes: The sizes of the storage's files.
            mailbox_size: Number of messages in the actor's mailbox.
            max_batch: Maximum number of commands that are written together.
            now: The current time, by the event loop's clock.
        """
        lag = round(self.lag(mailbox_size, max_batch, now), 3)
        age = 0.0 if self.renewed_at is None else round(now - self.renewed_at, 3)
        queued = mailbox_size + self.queued
        unavailable = self.since, self.why, self.refused
        return JournalStats(
            durability, *unavailable, queued, self.damage, lag, lease, age, sizes, self.commits.stats
        )
