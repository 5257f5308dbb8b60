"""Claims: who owns one between the journal's answer and the session that is made of it.

The journal makes a claim whether or not its caller still waits for the answer, and a claim that nobody holds keeps
every other host out for as long as this one lives. So the journal's own task hands each claim over when it is made: to
its caller, or back to the storage if the caller has gone. A cancellation that comes between an answer and the caller's
next step loses the answer, so it is never the answer alone that says who owns the claim.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress

import anyio
from msgspec import Struct

from actors.core.log.events import Event
from actors.errors import ActorsError, SessionElsewhere
from actors.journal.journal_actor import Append, ClaimSession, DeleteLog
from actors.journal.storage import Claim
from actors.runtime.session_host import SessionHost

POLL = 0.1
"""Seconds between two looks whether another host has released a session."""


class _PendingClaim(Struct):
    """A claim that a caller asked for. `is_abandoned`: the caller has gone without it."""

    host: SessionHost
    session: str
    claim: Claim | None = None
    is_abandoned: bool = False

    def take(self, claim: Claim) -> None:
        """Note that the claim is made, and release it if its caller has gone."""
        self.claim = claim
        if self.is_abandoned:
            self._release()

    def abandon(self) -> None:
        """Have the claim released, now or as soon as it is made."""
        self.is_abandoned = True
        self._release()

    def _release(self) -> None:
        if self.claim is not None and self.claim.fence:  # else it has no log, and was to have one
            self.host.release(self.session, self.claim.fence)


async def claim_session(host: SessionHost, session: str, *, existing: bool = False) -> Claim:
    """Claim a session for the caller, who has to release it.

    A caller that is cancelled has claimed nothing, or the host releases it.

    Args:
        host: Whose session it is then.
        session: Its id.
        existing: Only if it has a log; else the claim's `last` is 0, and there is nothing to release.

    Raises:
        SessionElsewhere: Another host has it.
        JournalError: It cannot be claimed.
    """
    pending = _PendingClaim(host, session)
    try:
        return await host.journal.ask(ClaimSession(session, existing, pending.take))
    except BaseException:
        pending.abandon()
        raise


async def claim_existing(host: SessionHost, session: str, wait: float) -> Claim:
    """Claim a session that has a log; if another host has it, wait so many seconds for that one to let it go.

    Raises:
        SessionElsewhere: It has not.
    """
    until = anyio.current_time() + wait
    while True:
        try:
            return await claim_session(host, session, existing=True)
        except SessionElsewhere:
            if (left := until - anyio.current_time()) <= 0:
                raise
        await anyio.sleep(min(POLL, left))


class Drafts:
    """New logs under ids that are claimed: all of them are kept, or none is.

    Args:
        host: Who writes them.
        free: Called with each id when it is no draft any more.
    """

    def __init__(self, host: SessionHost, free: Callable[[str], None]) -> None:
        self._host, self._free = host, free
        self._claims: dict[str, Claim] = {}
        self._written: list[str] = []

    def add(self, name: str, claim: Claim) -> None:
        """Take over a claim."""
        self._claims[name] = claim

    async def write(self, name: str, log: Sequence[Event]) -> None:
        """Write a log.

        Raises:
            JournalError: It cannot be written.
        """
        self._written.append(name)
        await self._host.journal.ask(Append(name, self._claims[name].fence, tuple(log)))

    async def drop(self) -> None:
        """Delete what was written, and release the rest."""
        for name in self._written:
            with suppress(ActorsError):
                await self._host.journal.ask(DeleteLog(name))
        self.release()

    def release(self) -> None:
        """Let others go on with the logs."""
        for name, claim in self._claims.items():
            self._free(name)
            self._host.release(name, claim.fence)


@asynccontextmanager
async def drafts(host: SessionHost, free: Callable[[str], None]) -> AsyncGenerator[Drafts]:
    """Give what writes logs. They are kept if the block ends well; else the host drops them.

    A caller that is cancelled does not wait for that.
    """
    made = Drafts(host, free)
    try:
        yield made
    except Exception:
        await host.carry_out(made.drop, "drafts")
        raise
    except BaseException:
        host.start(made.drop, "drafts")
        raise
    made.release()
