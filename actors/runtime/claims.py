"""Track the ownership of a claim, from the journal's answer until a session takes the claim over.

The journal makes a claim even if its caller no longer waits for the answer, and a claim without an owner keeps every
other host out for as long as this host lives. A cancellation between the answer and the caller's next step loses the
answer, so ownership cannot depend on the answer. Instead, the journal's own task passes each new claim to its caller,
or releases the claim if the caller has gone.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress

import anyio
from msgspec import Struct

from actors.core.log.events import Closed, LogEvent
from actors.errors import ActorsError, SessionExists, SessionLeased, ShuttingDown
from actors.journal.commands import Append, ClaimSession, DeleteLog, ReadLog
from actors.journal.storage import Claim
from actors.runtime.registry import SessionRegistry
from actors.runtime.replays import unknown
from actors.runtime.session_host import SessionHost

POLL = 0.1
"""Seconds between two attempts to claim a session that another host has."""


class _PendingClaim(Struct):
    """A requested claim. `is_abandoned`: the caller no longer waits for it."""

    host: SessionHost
    session: str
    claim: Claim | None = None
    is_abandoned: bool = False

    def take(self, claim: Claim) -> None:
        """Record the claim when it is made, and release it if its caller has gone."""
        self.claim = claim
        if self.is_abandoned:
            self._release()

    def abandon(self) -> None:
        """Release the claim, now or as soon as it is made."""
        self.is_abandoned = True
        self._release()

    def _release(self) -> None:
        if self.claim is not None and self.claim.fence:  # 0 if the session had to have a log and has none
            self.host.release(self.session, self.claim.fence)


async def claim_session(host: SessionHost, session: str, *, existing: bool = False) -> Claim:
    """Claim a session for the caller, which must release it. If the caller is cancelled, the host releases it.

    Args:
        host: The host that claims the session.
        session: Id of the session.
        existing: Claim only a session with a log. Without a log, the claim's `last` is 0, and it needs no release.

    Raises:
        SessionLeased: Another host has the session.
        JournalError: The session cannot be claimed.
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
        SessionLeased: The other host still has the session.
    """
    until = anyio.current_time() + wait
    while True:
        try:
            return await claim_session(host, session, existing=True)
        except SessionLeased:
            if (left := until - anyio.current_time()) <= 0:
                raise
        await anyio.sleep(min(POLL, left))


class Claims:
    """The ids that one caller has reserved and claimed, and the logs that it has written.

    A session that starts takes its claim over (`keep`). The other logs are deleted if the caller's block fails.

    Args:
        host: Claims the sessions and writes the logs.
        registry: Reserves the ids.
    """

    def __init__(self, host: SessionHost, registry: SessionRegistry) -> None:
        self._host, self._registry = host, registry
        self._reserved: list[str] = []
        self._fences: dict[str, int] = {}
        self.written: list[str] = []

    async def claim_new(self, given: str | None) -> str:
        """Reserve and claim an id that has no log, and return it; generate one if none is given.

        Raises:
            SessionExists: The given id has a log, or the session is open.
            SessionLeased: Another host has the session of the given id.
            JournalError: The session cannot be claimed.
        """
        while True:
            name = self._reserve(given)
            try:
                last = (await self._claim(name)).last
            except SessionLeased:
                if given is not None:
                    raise
                last = 1
            if not last:
                return name
            if given is not None:
                raise SessionExists(
                    f"Session {name!r} has a log; resume it, as resume=True does, or take another id"
                )
            self._release(name)
            self._registry.change_suffix()

    async def claim_existing(self, given: str, wait: float) -> str:
        """Reserve and claim a session that has a log; wait up to `wait` seconds for another host to release it.

        Raises:
            SessionUnknown: The session has no log.
            SessionLeased: Another host has the session.
            JournalError: The session cannot be claimed.
        """
        name = self._reserve(given)
        claim = await claim_existing(self._host, name, wait)
        self._fences[name] = claim.fence
        if not claim.last:
            raise unknown(name)
        return name

    async def claim_any(self, given: str) -> bool:
        """Reserve and claim a session; return True if it has a log. An ended log in memory is deleted."""
        name = self._reserve(given)
        claim = await self._claim(name)
        if claim.last and not self._host.is_durable and await _has_closed(self._host, name, claim.last):
            await self._host.journal.ask(DeleteLog(name))
            claim = await self._claim(name)
        return bool(claim.last)

    async def write(self, name: str, log: Sequence[LogEvent]) -> None:
        """Write a log. Raises `JournalError` if it cannot be written."""
        self.written.append(name)
        await self._host.journal.ask(Append(name, self._fences[name], tuple(log)))

    def keep(self, name: str) -> int:
        """Pass a claim and its log to a session that starts; return the fencing number."""
        if name in self.written:
            self.written.remove(name)
        return self._fences.pop(name)

    async def drop(self) -> None:
        """Delete the written logs, then release all claims and ids."""
        for name in self.written:
            with suppress(ActorsError):
                await self._host.journal.ask(DeleteLog(name))
        self.release()

    def release(self) -> None:
        """Release all claims and ids."""
        for name in tuple(self._reserved):
            self._release(name)

    def _reserve(self, given: str | None) -> str:
        name = self._registry.reserve(given)
        self._reserved.append(name)
        return name

    async def _claim(self, name: str) -> Claim:
        claim = await claim_session(self._host, name)
        self._fences[name] = claim.fence
        return claim

    def _release(self, name: str) -> None:
        self._reserved.remove(name)
        self._registry.free(name)
        if fence := self._fences.pop(name, 0):
            self._host.release(name, fence)


@asynccontextmanager
async def claiming(host: SessionHost, registry: SessionRegistry) -> AsyncGenerator[Claims]:
    """Return the claims of a caller. If its block fails, the host deletes the logs that the block has written.

    A cancelled caller does not wait for the deletion.
    """
    claims = Claims(host, registry)
    try:
        yield claims
    except BaseException as error:
        if not claims.written:
            claims.release()
        elif isinstance(error, Exception):
            with suppress(ShuttingDown):  # the runtime is being left; the error of the block matters more
                await host.carry_out(claims.drop, "claims")
        else:
            host.start(claims.drop, "claims")
        raise
    claims.release()


async def _has_closed(host: SessionHost, name: str, last: int) -> bool:
    """Return True if the last event of a log, with the number `last`, is `closed`."""
    page = await host.journal.ask(ReadLog(name, last - 1, urgent=True))
    return bool(page.events) and isinstance(page.events[-1], Closed)
