"""Read the list of hosts from the journal at most once per period, for all requests of a router together."""

from collections.abc import Awaitable, Callable, Sequence

import anyio

from actors.errors import JournalError
from actors.journal.storage.hosts import Host

PERIOD = 1.0
"""Minimum number of seconds between two reads of the journal."""


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
        self._reading = anyio.Lock()
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
        while True:
            await anyio.sleep(PERIOD)
            hosts = await self.hosts()
            if self.is_current and all(host.address != address for host in hosts):
                return

    def _is_due(self) -> bool:
        return self._until is None or self._clock() >= self._until

    async def _refresh(self) -> None:
        try:
            self._hosts = await self._read()
            self.is_current = True
        except JournalError:
            self.is_current = False
        self._until = self._clock() + PERIOD
