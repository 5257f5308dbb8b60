"""Delete sessions that have not been used for a long time, and sessions that a program asks to delete.

A sweep deletes many sessions in one transaction, and pauses between transactions so that other sessions can write.
Sessions are deleted on request one at a time. The age of a session depends on the wall clock, which may be wrong. So a
sweep deletes only sessions that have expired by the time that the journal trusts (`actors.journal.storage.clock`). The
sweep logs how many other sessions have expired by the wall clock alone.
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
from actors.journal.pages import ReadThrottle
from actors.journal.storage.clock import ObservedClock
from actors.journal.storage.directory import Deletion, RemainingData, SessionFilter, StoredSession
from actors.kernel import Ref
from actors.runtime.deletion import existing_parent, ids_with_subagents
from actors.telemetry import logger
from actors.telemetry.emission import MAX_ENTRIES

SWEEP_INTERVAL = 3600.0
"""Seconds between two sweeps."""
BATCH, BYTES = 16, 4 * 1024 * 1024
"""Maximum number of sessions in one transaction of a sweep, and maximum size of their logs in bytes. A longer log is
deleted in a separate transaction.
"""
PAUSE = 0.05
"""Seconds between two transactions of a sweep."""
PAGE = 256
"""Number of sessions to read at once from the list of sessions."""
AFTER_ALL_IDS = "~"
"""A string that sorts after every session id."""
MAX_REWRITE = 256 * 1024 * 1024
"""Maximum size in bytes of a file that a sweep rewrites. A rewrite blocks all writers."""
REWRITE_INTERVAL = 86_400
"""Minimum seconds between two rewrites by sweeps."""
READER_TIMEOUT = 2.0
"""Maximum number of seconds that `vacuum` waits for readers of a file."""
PASSES = 16
"""Maximum number of passes over the list of sessions. A session that is used during a pass moves to the front of the
list.
"""

Delete = Callable[[str, float | None], Awaitable[Collection[str]]]
"""Deletes a session with its subagents, unless it was used at or after a time (seconds since 1970). Returns the deleted
ids.
"""
DeleteUnused = Callable[[Sequence[StoredSession]], Awaitable[Collection[str]]]
"""Deletes sessions with their subagents, except sessions that were used since they were listed. Returns the deleted
ids.
"""
_SINGLE_SESSION_ERRORS = (SessionLeased, SessionExists, ReentrantCall, JournalDamaged)
"""Errors that prevent the deletion of one session, but not of other sessions."""


async def list_sessions(
    journal: Ref[JournalCommand], tenant: str | None = None, before: float | None = None
) -> AsyncGenerator[StoredSession]:
    """Yield sessions, most recently used first.

    Args:
        journal: The journal actor.
        tenant: Only sessions of this tenant; None for all.
        before: Only sessions last used before this time, in seconds since 1970; None for all.
    """
    page = None if before is None else (-before, AFTER_ALL_IDS)
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
    """Return the ids of the sessions that `delete_all` would delete, including subagents."""
    found = dict[str, None]()
    async with aclosing(_matching_ids(journal, names, tenant, before)) as sessions:
        async for name in sessions:
            if name not in found:
                found |= dict.fromkeys(await ids_with_subagents(journal, name, throttle))
    return list(found)


async def delete_all(
    journal: Ref[JournalCommand],
    delete: Delete,
    names: Sequence[str],
    tenant: str | None,
    before: float | None,
) -> Deletion:
    """Delete the sessions that meet every condition, and remove all their data from the storage's files.

    A session that is used during the deletion moves to the front of the list, so the current pass misses it. Therefore,
    the list is read again until a pass deletes nothing, at most `PASSES` times.

    Args:
        journal: The journal actor.
        delete: Deletes one session.
        names: Ids of the sessions; if empty, all sessions that meet the other conditions.
        tenant: Only sessions of this tenant; None for all.
        before: Only sessions last used before this time, in seconds since 1970; None for all.

    Raises:
        SessionLeased: Another host has claimed one of the sessions. All others are deleted.
        JournalError: The journal cannot be written; or one of the sessions cannot be deleted, but all others are
            deleted.
    """
    gone, left = dict[str, None](), dict[str, Exception]()
    for _ in range(PASSES):
        is_done, left = True, {}
        async with aclosing(_matching_ids(journal, names, tenant, before)) as sessions:
            async for name in sessions:
                try:
                    deleted = await delete(name, before)
                except _SINGLE_SESSION_ERRORS as error:
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


async def vacuum(journal: Ref[JournalCommand], max_bytes: int | None = None) -> tuple[RemainingData, ...]:
    """Remove all data of deleted sessions from the storage's files. Return the data that remains, with the reasons.

    A process that reads a file prevents the removal, so wait up to `READER_TIMEOUT` seconds for readers. A file larger
    than `max_bytes` is not rewritten.
    """
    try:
        found = await journal.ask(Vacuum(max_bytes=max_bytes))
        with anyio.move_on_after(READER_TIMEOUT):
            while any(each.is_temporary for each in found):
                await anyio.sleep(PAUSE)
                found = await journal.ask(Vacuum(max_bytes=max_bytes))
    except JournalUnavailable as error:
        return (RemainingData("the journal", str(error), is_temporary=True),)
    return tuple(found)


async def _matching_ids(
    journal: Ref[JournalCommand], names: Sequence[str], tenant: str | None, before: float | None
) -> AsyncGenerator[str]:
    """Yield the ids of the sessions that meet all conditions, as described in `delete_all`."""
    if not names:
        async with aclosing(list_sessions(journal, tenant, before)) as sessions:
            async for each in sessions:
                yield each.id
        return
    for name in dict.fromkeys(names):
        if tenant is None and before is None:
            yield name  # the entry of the session is not read, because it may be damaged
            continue
        entry = await journal.ask(FindSession(name))
        if entry is not None and tenant in (None, entry.tenant) and (before is None or entry.used < before):
            yield name


class Retention(Struct):
    """A periodic task that deletes sessions that have not been used for `retention` seconds.

    The task runs when the runtime is entered, and every hour. Sessions that are open in this runtime or on another live
    host count as used. Sessions that wait for results or an approval can expire. Subagents are deleted with their
    parents, regardless of their age.

    Args:
        journal: The journal actor.
        retention: Seconds after its last use at which a session expires.
        delete: Deletes many sessions.
        clock: Returns the wall-clock time in seconds since 1970.
        steady: A monotonic clock, in seconds.
    """

    journal: Ref[JournalCommand]
    retention: float
    delete: DeleteUnused
    clock: Callable[[], float] = time
    steady: Callable[[], float] = anyio.current_time
    _observed_at: float | None = None
    _vacuumed: float | None = None
    _is_vacuum_due: bool = False

    async def run(self) -> None:
        """Sweep every `SWEEP_INTERVAL` seconds until the journal actor has ended. Errors are logged."""
        while True:
            try:
                await self.sweep()
            except (ActorStopped, ShuttingDown):
                return
            except JournalError as error:  # the next sweep tries again
                logger.retention_failed(error)
            await anyio.sleep(SWEEP_INTERVAL)

    async def sweep(self) -> int:
        """Delete the sessions that have expired according to the journal's trusted time, and return their number."""
        clock = await self._observe_clock()
        count, expired = 0, list[StoredSession]()
        waiting, examples = 0, list[str]()
        async with aclosing(list_sessions(self.journal, None, clock.last - self.retention)) as sessions:
            async for each in sessions:
                if each.used >= clock.earliest_now - self.retention:  # expired only by the wall clock
                    if each.owner is None:
                        waiting += 1
                        if len(examples) < MAX_ENTRIES:
                            examples.append(each.id)
                    continue
                if len(expired) == BATCH or sum(one.bytes for one in expired) + each.bytes > BYTES:
                    count += await self._delete_expired(expired)
                    expired = []
                expired.append(each)
            count += await self._delete_expired(expired)
        if waiting:
            logger.retention_waits(examples, waiting, clock.seconds_of_doubt)
        if count:
            logger.retention_deleted(count)
        await self._vacuum_daily()
        return count

    async def _observe_clock(self) -> ObservedClock:
        """Read the clock, and report to the journal how many seconds have passed since the last reading."""
        looked = self.steady()
        elapsed = 0 if self._observed_at is None else int(looked - self._observed_at)
        clock = await self.journal.ask(ObserveClock(now=int(self.clock()), elapsed=elapsed))
        self._observed_at = looked
        return clock

    async def _delete_expired(self, sessions: Sequence[StoredSession]) -> int:
        """Delete expired sessions, and return their number.

        Sessions in use are kept, as are subagents whose parents still exist.
        """
        count = 0
        # Deleting a session deletes its subagents, so only sessions without a parent are deleted explicitly.
        while alone := [each for each in sessions if await existing_parent(self.journal, each.id) is None]:
            deleted = {*await self.delete(alone)}
            self._is_vacuum_due |= bool(deleted)
            count += len(deleted & {each.id for each in sessions})
            sessions = [each for each in sessions if each not in alone and each.id not in deleted]
            await anyio.sleep(PAUSE)
        return count

    async def _vacuum_daily(self) -> None:
        """Remove the data of deleted sessions from the files, at most once a day, and log the data that remains.

        If a reader or an outage prevented the removal, try again a day later, even if no more sessions have expired.
        """
        now = self.steady()
        if not self._is_vacuum_due or (
            self._vacuumed is not None and now - self._vacuumed <= REWRITE_INTERVAL
        ):
            return
        found = await vacuum(self.journal, MAX_REWRITE)
        self._vacuumed, self._is_vacuum_due = now, any(each.is_temporary for each in found)
        if found:
            logger.deleted_data_remains([each.place for each in found], [each.reason for each in found])
