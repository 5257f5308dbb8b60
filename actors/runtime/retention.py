"""Retention: sessions that nobody has used for long are deleted, and those that somebody wants deleted.

A sweep deletes many sessions in one transaction, and other sessions are written between two of them; what somebody
wants deleted is deleted session by session. Only a wall clock tells how old a session is, so a sweep deletes those that
have expired by the time that the journal trusts, and logs those that have expired by the clock alone
(`actors.journal.storage.clock`).
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
from actors.journal.storage.clock import ObservedClock
from actors.journal.storage.deletion import Deletion, RemainingData
from actors.journal.storage.directory import SessionFilter, StoredSession
from actors.kernel import Ref
from actors.runtime.deletion import existing_logs, goes_with
from actors.telemetry import logger

EVERY = 3600.0
"""Seconds between two sweeps."""
BATCH, BYTES = 16, 4 * 1024 * 1024
"""Sessions, and bytes of their logs, that a sweep deletes together; a longer log is deleted by itself."""
PAUSE = 0.05
"""Seconds between two transactions of a sweep."""
PAGE = 256
BEHIND = "~"
"""Behind every id."""
REWRITTEN = 256 * 1024 * 1024
"""Bytes of a file that a sweep may rewrite, which holds up whoever writes."""
REWRITES = 86_400
"""Seconds between two rewrites, at least."""
READERS = 2.0
"""Seconds for which readers of a file are waited for."""
PASSES = 16
"""How often a list is read, at most, of which entries may move to the front meanwhile."""

Delete = Callable[[str, float | None], Awaitable[Collection[str]]]
"""Deletes a session and those below it, unless it was used at this time or since, and returns their ids."""
DeleteUnused = Callable[[Sequence[StoredSession]], Awaitable[Collection[str]]]
"""Deletes sessions, as they were listed, that nobody has used since, and those below them; returns their ids."""
_LEFT = (SessionLeased, SessionExists, ReentrantCall, JournalDamaged)
"""Why one session is not deleted, and others are."""


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
    journal: Ref[JournalCommand], names: Sequence[str], tenant: str | None, before: float | None
) -> list[str]:
    """Return the sessions that `delete_all` would delete, including subagent sessions."""
    found = dict[str, None]()
    async with aclosing(_matching(journal, names, tenant, before)) as sessions:
        async for name in sessions:
            if name not in found:
                found |= dict.fromkeys(await existing_logs(journal, name))
    return list(found)


async def delete_all(
    journal: Ref[JournalCommand],
    delete: Delete,
    names: Sequence[str],
    tenant: str | None,
    before: float | None,
) -> Deletion:
    """Delete the sessions that meet every condition, and remove every byte of them from the storage's files.

    A session that is used meanwhile may move past the reader of the list, so the list is read until it has nothing
    new. One that is opened all the time is not waited for.

    Args:
        journal: Of these sessions.
        delete: Deletes one.
        names: Their ids; if empty, all sessions that meet the other conditions.
        tenant: Of sessions of this tenant; None for everybody's.
        before: Of sessions that were last used before this time, in seconds since 1970; None for any.

    Raises:
        SessionLeased: Another host has one; all others are deleted.
        JournalError: One cannot be deleted, and all others are; or nothing can any more.
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
    """Remove every byte of deleted sessions from the storage's files; return what is left, and why.

    Readers of a file delay that, so they are waited for, for some moments. A file larger than `most` bytes is not
    written anew.
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
            yield name  # its entry may be damaged
            continue
        entry = await journal.ask(FindSession(name))
        if entry is not None and tenant in (None, entry.tenant) and (before is None or entry.used < before):
            yield name


class Retention(Struct):
    """Deletes sessions that nobody has used for `retention` seconds: when its runtime begins, and every hour.

    What is open is used, here or on another host that is alive. A session that awaits results or an approval is not:
    nobody passed them for so long. What is below a session goes with it, whatever its age.

    Args:
        journal: Whose sessions.
        retention: Seconds after its last use after which a session expires.
        delete: Deletes many.
        clock: The wall clock, in seconds since 1970.
        steady: A clock that nobody sets, in seconds.
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
        """Sweep, now and then, for as long as the journal lives."""
        while True:
            try:
                await self.sweep()
            except (ActorStopped, ShuttingDown):
                return
            except JournalError as error:  # it is tried again
                logger.retention_failed(error)
            await anyio.sleep(EVERY)

    async def sweep(self) -> int:
        """Delete the sessions that have expired by the time that is trusted; return how many."""
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
        """Read the clock, and note how much of the time since the last reading was observed."""
        looked = self.steady()
        elapsed = 0 if self._looked is None else int(looked - self._looked)
        clock = await self.journal.ask(ObserveClock(now=int(self.clock()), elapsed=elapsed))
        self._looked = looked
        return clock

    async def _expire(self, sessions: Sequence[StoredSession]) -> int:
        """Delete sessions but those that are in use or go with another that stays; return how many."""
        count = 0
        while alone := [each for each in sessions if await goes_with(self.journal, each.id) is None]:
            deleted = {*await self.delete(alone)}
            self._is_vacuum_due |= bool(deleted)
            count += len(deleted & {each.id for each in sessions})
            sessions = [each for each in sessions if each not in alone and each.id not in deleted]
            await anyio.sleep(PAUSE)
        return count

    async def _vacuum_daily(self) -> None:
        """Remove what is left of deleted sessions in the files, at most once a day; log data that remains, and why.

        Data that a reader or an outage keeps is tried again the next day, whether or not more sessions have expired by
        then.
        """
        now = self.steady()
        if not self._is_vacuum_due or (self._vacuumed is not None and now - self._vacuumed <= REWRITES):
            return
        found = await vacuum(self.journal, REWRITTEN)
        self._vacuumed, self._is_vacuum_due = now, any(each.is_temporary for each in found)
        if found:
            logger.deleted_data_remains([each.place for each in found], [each.reason for each in found])
