"""Read the list of hosts from the journal at most once per period, for all requests of a router together.

The list is read earlier if a lease in it expires before the end of the period. Hosts renew their leases in time, so
such a host is most likely suspended or unreachable.
"""

from collections.abc import Awaitable, Callable, Sequence

import anyio

from actors.errors import JournalError
from actors.journal.storage.hosts import Host

PERIOD = 1.0
"""Number of seconds between two reads of the journal."""
SHORTEST_PERIOD = 0.2
"""Number of seconds until the next read if a lease expires even earlier."""


class HostDirectory:
    """The live hosts of a journal.

    If the journal cannot be read, the last list stays in use, and is empty before the first read.

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
        self._reads = self._newest = (
            0  # the number of reads that have begun, and the read that returned the list
        )
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
        seconds, earlier = PERIOD, self._reads  # so that a shorter wait causes no read
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
        return min(PERIOD, max(SHORTEST_PERIOD, min(leases, default=PERIOD))) if self.is_current else PERIOD
