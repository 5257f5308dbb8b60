"""Track the health of the journal: its outages, and the last acknowledged event of each log that this host writes.

The journal actor updates the measurements of outages. `Runtime.stats` reads them directly, without sending a message.

A storage may lose acknowledged events: a database fails over to a replica that lagged, or a backup is restored. So
every append states the number of the last acknowledged event. A storage that lacks this event rejects the append
instead of reusing the lost numbers. The loss is then recorded in the log before any new event.
"""

from collections.abc import Callable, Iterable, Iterator
from math import ceil
from time import monotonic, time
from typing import TypeVar

from msgspec import Struct, field

from actors.core.log.events import EventsLost
from actors.core.stats.measures import DurationCounts
from actors.core.stats.stats import LAG, JournalStats, StorageSizes
from actors.errors import JournalBehind
from actors.journal.storage import Claim, Entry
from actors.telemetry import logger

__all__ = ["LAG", "JournalHealth"]

R = TypeVar("R")
MAX_MESSAGE = 300
"""Maximum number of characters of an error message that are stored."""


class JournalHealth(Struct):
    """The measurements of the journal actor.

    Args:
        damage: The storage's message about the first damage that it found; empty without damage.
        refused: Number of events that could not be written.
        outage_began: Start of the current outage, by `clock`; None while the journal works.
        outage_reason: The storage's error message at the start of the outage.
        batch_began: Start of the batch that is being written, by the event loop's clock; None between batches.
        batch_duration: Duration of the last batch, in seconds.
        queued: Number of commands that the actor has received but has not started to run.
        renewed_at: Time of the last lease renewal, by the event loop's clock; None before the first renewal.
        commits: Durations of commits.
        clock: Returns the wall-clock time in seconds since 1970.
    """

    damage: str = ""
    refused: int = 0
    outage_began: float | None = None
    outage_reason: str = ""
    batch_began: float | None = None
    batch_duration: float = 0.0
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
        if self.outage_began is None:
            self.outage_began, self.outage_reason = self.clock(), str(error)[:MAX_MESSAGE]
            logger.journal_unavailable(self.outage_reason)

    def record_damage_found(self, error: Exception) -> None:
        """Record that the journal is damaged. Only the first call has an effect."""
        if not self.damage:
            self.damage = str(error)[:MAX_MESSAGE]
            logger.journal_damaged(self.damage)

    def record_success(self) -> None:
        """Record a successful write. If there was an outage, it is now over."""
        if self.outage_began is not None:
            logger.journal_available(self.clock() - self.outage_began)
            self.outage_began, self.outage_reason = None, ""

    def record_renewal_time(self, now: float) -> None:
        """Record that the lease was renewed at the time `now`."""
        self.renewed_at = now

    def begin_batch(self, now: float) -> None:
        """Record that a batch of commands started at the time `now`."""
        self.batch_began = now

    def end_batch(self, now: float) -> None:
        """Record that the batch ended at the time `now`."""
        if (began := self.batch_began) is not None:
            self.batch_began, self.batch_duration = None, now - began

    def lag(self, mailbox_size: int, max_batch: int, now: float) -> float:
        """Estimate how many seconds a new command would wait.

        Args:
            mailbox_size: Number of messages in the actor's mailbox.
            max_batch: Maximum number of commands that are written together.
            now: The current time, by the event loop's clock.
        """
        elapsed = 0.0 if self.batch_began is None else now - self.batch_began
        return elapsed + ceil((mailbox_size + self.queued) / max_batch) * self.batch_duration

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
        unavailable = self.outage_began, self.outage_reason, self.refused
        return JournalStats(
            durability, *unavailable, queued, self.damage, lag, lease, age, sizes, self.commits.stats
        )


class ClaimedLogs:
    """The logs that this host has claimed, with the fencing number and the last acknowledged event of each log."""

    __slots__ = ("_fences", "_last_seqs", "_lost")

    def __init__(self) -> None:
        self._last_seqs: dict[str, int] = {}
        self._fences: dict[str, int] = {}
        self._lost: dict[str, Entry] = {}  # `EventsLost` records that are not written yet, by session

    def add_predecessors(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Yield copies of the entries in which `Entry.after` is the number of the last acknowledged event of the log.

        If `entries` contains several entries of one session, each of these entries follows the previous one.
        """
        ends = dict[tuple[str, int], int]()
        for entry in entries:
            after = ends.get(entry.writer, self._last_seqs.get(entry.session))
            if after is not None:
                ends[entry.writer] = after + len(entry.events)
            yield Entry(entry.session, entry.fence, entry.events, after)

    def record_claim(self, session: str, claim: Claim) -> None:
        """Store the fencing number and the last event number of a new claim. Report a takeover from another host."""
        self._lost.pop(session, None)
        if claim.taken_from:
            logger.session_taken_over(session, claim.taken_from)
        if claim.fence:
            self._last_seqs[session], self._fences[session] = claim.last, claim.fence

    def record_write(self, session: str, last_seq: int) -> None:
        """Record that the storage has acknowledged a session's events up to number `last_seq`."""
        self._last_seqs[session] = last_seq

    def forget(self, *sessions: str) -> None:
        """Stop tracking sessions that this host no longer writes."""
        for session in sessions:
            self._last_seqs.pop(session, None)
            self._fences.pop(session, None)
            self._lost.pop(session, None)

    def fence(self, session: str) -> int:
        """Return the fencing number of this host's claim of a session, or 0 if this host has no claim."""
        return self._fences.get(session, 0)

    def record_loss(self, error: JournalBehind, fence: int) -> None:
        """Prepare the `EventsLost` entry that must be written after events were lost; see `pending_loss`.

        If several appends fail because of the same loss, only the first call has an effect.

        Args:
            error: Names the session and the lost events.
            fence: The fencing number of the entry.
        """
        session, first, last = error.session, error.first, error.last
        if self._last_seqs.get(session, first) < first:
            return
        if (before := self._lost.get(session)) is not None:  # the previous loss is not recorded yet
            last = max(last, *(event.last for event in before.events if isinstance(event, EventsLost)))
        self._last_seqs[session] = first - 1
        self._lost[session] = Entry(session, fence, (EventsLost(first, last),), first - 1)
        logger.events_lost(session, first, last)

    def visible_end(self, session: str, last_seq: int) -> int:
        """Return the number of the last log event that readers may see.

        If this host writes the log, readers may see acknowledged events only. Otherwise they may see all events up to
        `last_seq`.
        """
        return self._last_seqs.get(session, last_seq)

    def missing_events_error(self, session: str, last_seq: int) -> JournalBehind | None:
        """Return an error if the storage has lost acknowledged events of a session; otherwise return None.

        `last_seq` is the number of the last event that the storage has.
        """
        known = self._last_seqs.get(session, 0)
        return Entry(session, 0, ()).behind_error(last_seq, known) if last_seq < known else None

    def pending_loss(self, session: str) -> Entry | None:
        """Return the `EventsLost` entry that must be written to a session's log next, or None if no loss is pending."""
        return self._lost.get(session)

    def confirm_loss(self, entry: Entry) -> None:
        """Record that the `EventsLost` entry was written to the log."""
        del self._lost[entry.session]
        self._last_seqs[entry.session] = (entry.after or 0) + 1
