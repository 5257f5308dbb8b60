"""Carry out the steps of a route: wait when it waits, and read the list of hosts when it needs them."""

from collections.abc import Awaitable, Callable, Sequence

import anyio

from actors.hosts.directory import HostDirectory
from actors.hosts.rejections import Rejection
from actors.hosts.routing import GiveUp, RequestRoute, RoutingTable, Wait
from actors.journal.storage.hosts import Host


class HostSearch:
    """The search for a host that answers one request for a session.

    Args:
        session: Id of the session.
        here: The address of the host to try if the journal lists no host.
        table: The knowledge that the requests share.
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
        self._here, self._named = here, ""

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
        """Return the live hosts if the next step needs them. Forget an owner that is not one of them.

        Another program may use the address of a host that has left. An owner that the last attempt named is live,
        although the list may be too old to contain it.
        """
        owner = self._table.reachable_owner(self._session, now)
        if owner is not None and owner == self._here and not self._route.avoids(owner, now):
            return ()
        hosts = await self._directory.hosts()
        is_missing = self._directory.is_current and all(host.address != owner for host in hosts)
        if owner is not None and owner != self._named and hosts and is_missing:
            self._table.forget_owner(self._session, owner)
        return hosts

    def reject(self, rejection: Rejection) -> None:
        """Record that the current host rejected the request."""
        self._named = rejection.owner
        self._route.record(self.address, rejection, anyio.current_time())

    def accept(self) -> None:
        """Record that the current host answered the request, so it owns the session."""
        self._route.record_answer(self.address)
