"""Delete sessions that have not been used for long, and sessions that a program wants deleted.

A sweep deletes many sessions in one transaction, and pauses between transactions so that other sessions can write.
Deletion on request works session by session. The age of a session depends on the wall clock, which may be wrong. So a
sweep deletes only sessions that have expired by the time that the journal trusts, and logs the number of those that
have expired by the wall clock alone (`actors.journal.storage.clock`).
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import aclosing
from time import time

import anyio
from msgspec import Struct

from actors.errors import (
    ActorStopped,
    JournalDamaged,
    JournalError,
    JournalUnavailable,
    ReentrantCall,
    SessionExists,
    SessionLeased,
    ShuttingDown,
)
from actors.journal.commands import FindSession, JournalCommand, ListSessions, ObserveClock, Vacuum
from actors.journal.read_throttle import ReadThrottle
from actors.journal.storage.clock import ObservedClock
from actors.journal.storage.deletion import Deletion, RemainingData
from actors.journal.storage.directory import SessionFilter, StoredSession
from actors.kernel import Ref
from actors.runtime.deletion import existing_logs, goes_with
from actors.telemetry import logger

EVERY = 3600.0
"""Seconds between two sweeps."""
BATCH, BYTES = 16, 4 * 1024 * 1024
"""Most sessions, and most bytes of their logs, in one transaction of a sweep. A longer log is deleted alone."""
PAUSE = 0.05
"""Seconds between two transactions of a sweep."""
PAGE = 256
BEHIND = "~"
"""Sorts after every id."""
REWRITTEN = 256 * 1024 * 1024
"""Largest file, in bytes, that a sweep rewrites: the rewrite blocks all writers."""
REWRITES = 86_400
"""Minimum seconds between two rewrites."""
READERS = 2.0
"""Most seconds to wait for readers of a file."""
PASSES = 16
"""Most passes over a list of sessions, whose entries may move to the front while it is read."""

Delete = Callable[[str, float | None], Awaitable[Collection[str]]]
"""Deletes a session with its subagents, unless it was used at this time or later; returns the deleted ids."""
DeleteUnused = Callable[[Sequence[StoredSession]], Awaitable[Collection[str]]]
"""Deletes sessions with their subagents, except those used since they were listed; returns the deleted ids."""
_LEFT = (SessionLeased, SessionExists, ReentrantCall, JournalDamaged)
"""Errors that prevent the deletion of one session, but not of others."""


async def list_sessions(
    journal: Ref[JournalCommand], tenant: str | None = None, before: float | None = None
) -> AsyncGenerator[StoredSession]:
    """Yield the sessions of a tenant, or sessions last used before a time, most recently used first."""
    page = None if before is None else (-before, BEHIND)
    while found := await journal.ask(ListSessions("", SessionFilter(tenant), limit=PAGE, page=page)):
        for each in found:
            yield each
        page = found[-1].page


async def select_sessions(
    journal: Ref[JournalCommand],
    names: Sequence[str],
    tenant: str | None,
    before: float | None,
    throttle: ReadThrottle,
) -> list[str]:
    """Return the sessions that `delete_all` would delete, including subagent sessions."""
    found = dict[str, None]()
    async with aclosing(_matching(journal, names, tenant, before)) as sessions:
        async for name in sessions:
            if name not in found:
                found |= dict.fromkeys(await existing_logs(journal, name, throttle))
    return list(found)


async def delete_all(
    journal: Ref[JournalCommand],
    delete: Delete,
    names: Sequence[str],
    tenant: str | None,
    before: float | None,
) -> Deletion:
    """Delete the sessions that meet every condition, and remove every byte of them from the storage's files.

    A session that is used during the deletion moves to the front of the list, where the reader misses it. So the list
    is read again until a pass deletes nothing, at most `PASSES` times.

    Args:
        journal: The journal actor.
        delete: Deletes one session.
        names: Ids of the sessions; if empty, all sessions that meet the other conditions.
        tenant: Only sessions of this tenant; None for all.
        before: Only sessions last used before this time, in seconds since 1970; None for all.

    Raises:
        SessionLeased: Another host has one of the sessions. All others are deleted.
        JournalError: One of the sessions cannot be deleted and all others are, or the journal cannot be written.
    """
    gone, left = dict[str, None](), dict[str, Exception]()
    for _ in range(PASSES):
        is_done, left = True, {}
        async with aclosing(_matching(journal, names, tenant, before)) as sessions:
            async for name in sessions:
                try:
                    deleted = await delete(name, before)
                except _LEFT as error:
                    left[name] = error
                else:
                    is_done &= not deleted
                    gone |= dict.fromkeys(deleted)
        if is_done or names:
            break
    left_data = await vacuum(journal) if gone or not left else ()
    for why in left.values():
        raise why
    return Deletion(tuple(gone), left_data)


async def vacuum(journal: Ref[JournalCommand], most: int | None = None) -> tuple[RemainingData, ...]:
    """Remove every byte of deleted sessions from the storage's files; return the remaining data and the reasons.

    Readers of a file prevent that, so wait up to `READERS` seconds for them. A file larger than `most` bytes is not
    rewritten.
    """
    try:
        found = await journal.ask(Vacuum(most=most))
        with anyio.move_on_after(READERS):
            while any(each.is_temporary for each in found):
                await anyio.sleep(PAUSE)
                found = await journal.ask(Vacuum(most=most))
    except JournalUnavailable as error:
        return (RemainingData("the journal", str(error), is_temporary=True),)
    return tuple(found)


async def _matching(
    journal: Ref[JournalCommand], names: Sequence[str], tenant: str | None, before: float | None
) -> AsyncGenerator[str]:
    """Yield the ids of the sessions that meet every condition."""
    if not names:
        async with aclosing(list_sessions(journal, tenant, before)) as sessions:
            async for each in sessions:
                yield each.id
        return
    for name in dict.fromkeys(names):
        if tenant is None and before is None:
            yield name  # without looking up its entry, which may be damaged
            continue
        entry = await journal.ask(FindSession(name))
        if entry is not None and tenant in (None, entry.tenant) and (before is None or entry.used < before):
            yield name


class Retention(Struct):
    """Deletes sessions that were not used for `retention` seconds: when the runtime is entered, and every hour.

    Open sessions count as used, here or on another live host. A session that waits for results or an approval expires
    too. Subagents are deleted with their parent, whatever their age.

    Args:
        journal: The journal actor.
        retention: Seconds after its last use at which a session expires.
        delete: Deletes many sessions.
        clock: The wall clock, in seconds since 1970.
        steady: A monotonic clock, in seconds.
    """

    journal: Ref[JournalCommand]
    retention: float
    delete: DeleteUnused
    clock: Callable[[], float] = time
    steady: Callable[[], float] = anyio.current_time
    _looked: float | None = None
    _vacuumed: float | None = None
    _is_vacuum_due: bool = False

    async def run(self) -> None:
        """Sweep every `EVERY` seconds until the journal has ended."""
        while True:
            try:
                await self.sweep()
            except (ActorStopped, ShuttingDown):
                return
            except JournalError as error:  # the next sweep tries again
                logger.retention_failed(error)
            await anyio.sleep(EVERY)

    async def sweep(self) -> int:
        """Delete the sessions that have expired by the trusted time; return their number."""
        clock = await self._look()
        count, expired = 0, list[StoredSession]()
        waiting, examples = 0, list[str]()
        async with aclosing(list_sessions(self.journal, None, clock.last - self.retention)) as sessions:
            async for each in sessions:
                if each.used >= clock.earliest_now - self.retention:
                    if each.owner is None:
                        waiting += 1
                        if len(examples) < logger.MOST:
                            examples.append(each.id)
                    continue
                if len(expired) == BATCH or sum(one.bytes for one in expired) + each.bytes > BYTES:
                    count += await self._expire(expired)
                    expired = []
                expired.append(each)
            count += await self._expire(expired)
        if waiting:
            logger.retention_waits(examples, waiting, clock.seconds_of_doubt)
        if count:
            logger.retention_deleted(count)
        await self._vacuum_daily()
        return count

    async def _look(self) -> ObservedClock:
        """Read the clock, and report to the journal how much time has passed since the last reading."""
        looked = self.steady()
        elapsed = 0 if self._looked is None else int(looked - self._looked)
        clock = await self.journal.ask(ObserveClock(now=int(self.clock()), elapsed=elapsed))
        self._looked = looked
        return clock

    async def _expire(self, sessions: Sequence[StoredSession]) -> int:
        """Delete expired sessions, except those in use and subagents of kept parents; return their number."""
        count = 0
        while alone := [each for each in sessions if await goes_with(self.journal, each.id) is None]:
            deleted = {*await self.delete(alone)}
            self._is_vacuum_due |= bool(deleted)
            count += len(deleted & {each.id for each in sessions})
            sessions = [each for each in sessions if each not in alone and each.id not in deleted]
            await anyio.sleep(PAUSE)
        return count

    async def _vacuum_daily(self) -> None:
        """Remove the data of deleted sessions from the files, at most once a day; log data that remains, and why.

        Data that a reader or an outage protects is tried again the next day, even if no more sessions have expired.
        """
        now = self.steady()
        if not self._is_vacuum_due or (self._vacuumed is not None and now - self._vacuumed <= REWRITES):
            return
        found = await vacuum(self.journal, REWRITTEN)
        self._vacuumed, self._is_vacuum_due = now, any(each.is_temporary for each in found)
        if found:
            logger.deleted_data_remains([each.place for each in found], [each.reason for each in found])
