"""Retention: sessions that nobody has used for long are erased, and those that somebody wants erased.

One session is erased at a time, by the way that `forget` takes, and others are written in between. Only a wall clock
tells how old one is, so a sweep erases those that have expired by the time that the journal trusts, and logs those
that have expired by the clock alone (`actors.storage.clock`).
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

import anyio
from msgspec import Struct

from actors import telemetry
from actors.errors import (
    ActorStopped,
    Draining,
    JournalDamaged,
    JournalError,
    JournalUnavailable,
    OwnSession,
    SessionElsewhere,
    SessionExists,
)
from actors.hosting.forgetting import goes_with
from actors.journal import JournalCommand, ListSessions, LookAtClock, Purge
from actors.kernel import Ref
from actors.storage.clock import ObservedClock
from actors.storage.directory import StoredSession
from actors.wall import wall

EVERY = 3600.0
"""Seconds between two sweeps."""
PAUSE = 0.05
"""Seconds between two sessions of a sweep."""
PAGE = 256
BEHIND = "~"
"""Behind every id."""
REWRITTEN = 256 * 1024 * 1024
"""Bytes of a file that a sweep may rewrite, which holds up whoever writes."""
REWRITES = 86_400
"""Seconds between two rewrites, at least."""
PASSES = 16
"""How often a list is read, at most, of which entries may move to the front meanwhile."""

Forget = Callable[[str, StoredSession | None], Awaitable[None]]
"""Erases a session and what is below it; one that is given as it was listed only if nobody has used it since."""
_LEFT = (SessionElsewhere, SessionExists, OwnSession, JournalDamaged)
"""Why one session is not erased, and others are."""


async def listed(
    journal: Ref[JournalCommand], tenant: str | None = None, before: float | None = None
) -> AsyncGenerator[StoredSession]:
    """Give the sessions of a tenant, or used last before a time, those used last first."""
    page = None if before is None else (-before, BEHIND)
    while found := await journal.ask(ListSessions("", tenant, PAGE, page)):
        for each in found:
            yield each
        page = found[-1].page


async def erased(
    journal: Ref[JournalCommand], forget: Forget, tenant: str | None, before: float | None
) -> int:
    """Erase sessions, and see that no byte of them is left; return how many were listed.

    A session that is used meanwhile may move past who reads the list, so it is read until it has nothing new. What is
    opened all the time is not waited for.

    Raises:
        SessionElsewhere: Another host has one; all others are erased.
        JournalError: One cannot be erased, and all others are; or nothing can any more.
    """
    gone, left = set[str](), dict[str, Exception]()
    for _ in range(PASSES):
        is_done, left = True, {}
        async with aclosing(listed(journal, tenant, before)) as sessions:
            async for each in sessions:
                try:
                    await forget(each.id, None)
                except _LEFT as error:
                    left[each.id] = error
                else:
                    is_done = False
                    gone.add(each.id)
        if is_done:
            break
    if gone:
        await journal.ask(Purge())
    for why in left.values():
        raise why
    return len(gone)


class Retention(Struct):
    """Erases what nobody has used for `keep` seconds: when its runtime begins, and every hour.

    What is open is used, here or on another host that is alive. A session that awaits results or an approval is not:
    nobody brought them for so long. What is below a session goes with it, whatever its age.

    Args:
        journal: Whose sessions.
        keep: Seconds.
        forget: Erases one.
        clock: The wall clock, in seconds since 1970.
        steady: A clock that nobody sets, in seconds.
    """

    journal: Ref[JournalCommand]
    keep: float
    forget: Forget
    clock: Callable[[], float] = wall
    steady: Callable[[], float] = anyio.current_time
    _looked: float | None = None
    _purged: float | None = None

    async def run(self) -> None:
        """Sweep, now and then, for as long as the journal lives."""
        while True:
            try:
                await self.sweep()
            except (ActorStopped, Draining):
                return
            except JournalError as error:  # it is tried again
                telemetry.retention_failed(error)
            await anyio.sleep(EVERY)

    async def sweep(self) -> int:
        """Erase what has expired by the time that is trusted; return how many sessions."""
        clock = await self._look()
        count, doubtful = 0, list[str]()
        async with aclosing(listed(self.journal, None, clock.last - self.keep)) as sessions:
            async for each in sessions:
                if each.used < clock.trusted - self.keep:
                    count += await self._expire(each)
                elif each.owner is None:
                    doubtful.append(each.id)
        if doubtful:
            telemetry.retention_waits(doubtful, len(doubtful), clock.doubt)
        if count:
            telemetry.retention_erased(count)
            await self._purge()
        return count

    async def _look(self) -> ObservedClock:
        """Read the clock, and note how much of the time since the last reading was observed."""
        looked = self.steady()
        elapsed = 0 if self._looked is None else int(looked - self._looked)
        clock = await self.journal.ask(LookAtClock(now=int(self.clock()), elapsed=elapsed))
        self._looked = looked
        return clock

    async def _expire(self, session: StoredSession) -> bool:
        """Erase a session; not if it is in use or goes with another, which is no error."""
        if await goes_with(self.journal, session.id) is not None:
            return False
        try:
            await self.forget(session.id, session)
        except JournalUnavailable:
            raise
        except (SessionElsewhere, SessionExists):
            return False
        except JournalError as error:
            telemetry.retention_failed(error)
            return False
        await anyio.sleep(PAUSE)
        return True

    async def _purge(self) -> None:
        if self._purged is None or anyio.current_time() - self._purged > REWRITES:
            await self.journal.ask(Purge(most=REWRITTEN))
            self._purged = anyio.current_time()
