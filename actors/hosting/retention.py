"""Retention: sessions that nobody has used for long are erased, and those that somebody wants erased.

One session is erased at a time, by the way that `forget` takes, and others are written in between. How old one is only
a wall clock can say, so a sweep does nothing while the journal has reason to doubt it (`actors.storage.clock`).
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
from actors.storage.directory import StoredSession
from actors.wall import wall

EVERY = 3600.0
"""Seconds between two sweeps."""
PAUSE = 0.05
"""Seconds between two sessions of a sweep."""
PAGE = 256
BEHIND = "~"
"""Behind every id."""
STEADY = 86_400
"""Seconds for which the clock must have gone on evenly; as long as sessions are kept, if that is less."""
REWRITTEN = 256 * 1024 * 1024
"""Bytes of a file that a sweep may rewrite, which holds up whoever writes. It does so once a day at most."""
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
    """

    journal: Ref[JournalCommand]
    keep: float
    forget: Forget
    clock: Callable[[], float] = wall
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
        """Erase what has expired, unless the clock is in doubt; return how many sessions."""
        now = self.clock()
        since = await self.journal.ask(LookAtClock(now=int(now)))
        if now - since < min(STEADY, self.keep):
            telemetry.retention_waits(int(since + min(STEADY, self.keep)))
            return 0
        count = 0
        async with aclosing(listed(self.journal, None, now - self.keep)) as sessions:
            async for each in sessions:
                count += await self._expire(each)
        if count:
            telemetry.retention_erased(count)
            await self._purge()
        return count

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
        if self._purged is None or anyio.current_time() - self._purged > STEADY:
            await self.journal.ask(Purge(most=REWRITTEN))
            self._purged = anyio.current_time()
