"""Keep a list of the live hosts of a journal, and find the host that answers a request.

All requests of a router share one list. It is read from the journal at most once per period, or earlier if the lease of
a host expires before the end of the period. Hosts renew their leases in time, so a host whose lease is about to expire
is most likely suspended or unreachable.
"""

from collections.abc import Awaitable, Callable, Sequence

import anyio

from actors.errors import JournalError
from actors.hosts.routing import GiveUp, Rejection, RequestRoute, RoutingTable, Wait
from actors.journal.storage.directory import Host

PERIOD = 1.0
"""Number of seconds between two reads of the journal."""
MIN_PERIOD = 0.2
"""Minimum number of seconds until the next read, even if a lease expires earlier."""


class HostDirectory:
    """The live hosts of a journal.

    If the journal cannot be read, the last list stays in use. Before the first read, the list is empty.

    Args:
        read: Reads the list of hosts, as `JournalAdmin.hosts` does. The hosts' sessions need not be counted.
        clock: Returns the time in seconds.
    """

    def __init__(
        self, read: Callable[[], Awaitable[Sequence[Host]]], clock: Callable[[], float] = anyio.current_time
    ) -> None:
        self._read, self._clock = read, clock
        self._hosts: Sequence[Host] = ()
        self._until: float | None = None
        self._reading, self._refreshed = anyio.Lock(), anyio.Event()
        self._reads = self._newest = 0
        """The number of reads that have begun, and the number of the read that returned the list."""
        self.is_current: bool = False
        """Whether the last attempt to read the journal succeeded."""

    async def hosts(self) -> Sequence[Host]:
        """Return the live hosts, as of at most `PERIOD` seconds ago. Concurrent callers share one read."""
        if self._is_due():
            async with self._reading:
                if self._is_due():
                    await self._refresh()
        return self._hosts

    async def wait_gone(self, address: str) -> None:
        """Wait until no live host has this address: the host has left, or its lease has expired."""
        seconds, earlier = PERIOD, self._reads  # a wait shorter than the period causes no read
        while True:
            with anyio.move_on_after(seconds):
                await self._refreshed.wait()
            hosts = await self.hosts()
            is_absent = all(host.address != address for host in hosts)
            if self.is_current and is_absent and self._newest > earlier:
                return  # an earlier read may have begun before the host joined
            seconds = max(0.0, (self._until or 0.0) - self._clock())

    def _is_due(self) -> bool:
        return self._until is None or self._clock() >= self._until

    async def _refresh(self) -> None:
        self._reads += 1
        number = self._reads
        try:
            self._hosts = await self._read()
            self._newest, self.is_current = number, True
        except JournalError:
            self.is_current = False
        self._until = self._clock() + self._period()
        self._refreshed.set()
        self._refreshed = anyio.Event()

    def _period(self) -> float:
        """Return the number of seconds until the next read."""
        leases = [host.remaining_lease for host in self._hosts if host.remaining_lease is not None]
        return min(PERIOD, max(MIN_PERIOD, min(leases, default=PERIOD))) if self.is_current else PERIOD


class HostSearch:
    """The search for a host that answers one request for a session.

    Args:
        session: Id of the session.
        here: The address of the host to try if the journal lists no host.
        table: The state that all requests of the router share.
        directory: The live hosts.
        pause: Waits for a number of seconds.
    """

    def __init__(
        self,
        session: str,
        here: str,
        table: RoutingTable,
        directory: HostDirectory,
        pause: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._session, self._table, self._directory, self._pause = session, table, directory, pause
        self._route = RequestRoute(session, here, table, anyio.current_time())
        self.address: str = ""
        """The address of the current host."""
        self._here, self._named_owner = here, ""

    async def next_address(self) -> str:
        """Return the address of the next host to try.

        Raises:
            ActorsError: The limits of the router are reached. This is usually the error of the last attempt.
        """
        while True:
            now = anyio.current_time()
            step = self._route.next_step(await self._read_hosts(now), now)
            if isinstance(step, GiveUp):
                raise step.error
            if not isinstance(step, Wait):
                self.address = step.address
                return step.address
            await self._pause(step.seconds)

    async def _read_hosts(self, now: float) -> Sequence[Host]:
        """Return the live hosts, or no hosts if the next step does not need them.

        If the remembered owner is not a live host, forget it, because another program may use its address now. An owner
        that the last attempt named is kept: it is live, even if the list is too old to contain it.
        """
        owner = self._table.reachable_owner(self._session, now)
        if owner is not None and owner == self._here and not self._route.avoids(owner, now):
            return ()
        hosts = await self._directory.hosts()
        is_missing = self._directory.is_current and all(host.address != owner for host in hosts)
        if owner is not None and owner != self._named_owner and hosts and is_missing:
            self._table.forget_owner(self._session, owner)
        return hosts

    def reject(self, rejection: Rejection) -> None:
        """Record that the current host rejected the request."""
        self._named_owner = rejection.owner
        self._route.record(self.address, rejection, anyio.current_time())

    def accept(self) -> None:
        """Record that the current host answered the request, so it owns the session."""
        self._route.record_answer(self.address)
