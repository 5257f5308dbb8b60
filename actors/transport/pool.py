"""Manage the connections to one origin, the requests that wait for a connection, and the idle connections.

Exchanges take connections from a pool and return them. A request takes the most recently used idle connection. If no
connection is idle, the request opens one, or waits in a queue if the limit is reached. A request does not inspect the
other idle connections, so its cost does not depend on their number.
"""

from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio
import anyio.abc

from actors.transport.connection import Connection, ExchangeDeadlines
from actors.transport.contract import Timeouts
from actors.transport.dial import Proxy

Dial = Callable[[], Awaitable[anyio.abc.ByteStream]]


@dataclass(eq=False, slots=True)
class _Waiter:
    """A request that waits for an idle connection or for permission to open a new one.

    `served` is set when the request gets one of the two. If it got permission, `connection` is still None.
    """

    served: anyio.Event = field(default_factory=anyio.Event)
    connection: Connection | None = None


class ConnectionPool:
    """The connections to one origin.

    Args:
        dial: Opens a stream to the origin.
        connections: Maximum number of connections.
        connecting: Maximum number of connections that are opened at the same time. Thousands of simultaneous attempts
            would overflow the server's accept queue and time out.
        forwarder: The proxy to which the connections lead, if this proxy forwards requests; None if there is no proxy,
            or if the proxy opens tunnels.
        on_idle: Called when a connection becomes idle.
    """

    def __init__(
        self,
        dial: Dial,
        connections: int,
        connecting: int,
        forwarder: Proxy | None = None,
        on_idle: Callable[[], None] = lambda: None,
    ) -> None:
        self.forwarder = forwarder
        self._on_idle = on_idle
        self._dial = dial
        self._free = connections
        self._connects = anyio.Semaphore(connecting, fast_acquire=True)
        self._idle: deque[Connection] = deque()  # least recently used first
        self._waiters: OrderedDict[_Waiter, None] = OrderedDict()  # in order of arrival
        self._is_closed = False

    @property
    def free_slots(self) -> int:
        """Number of connections that may be opened in addition to the existing connections."""
        return self._free

    async def acquire(self, deadlines: ExchangeDeadlines, timeouts: Timeouts) -> Connection:
        """Return a connection for one exchange. The caller returns the connection with `release` or `drop`.

        Raises:
            OSError: A new connection could not be opened.
        """
        while self._idle:
            connection = self._idle.pop()
            if connection.is_alive():
                return connection
            await self.drop(connection)
        if self._free:
            self._free -= 1
        else:
            deadlines.limit_wait("waiting for a free connection", timeouts.pool)
            if (reused := await self._wait_for_slot()) is not None:
                return reused
        return await self._open_connection(deadlines, timeouts)

    async def replace(
        self, connection: Connection, deadlines: ExchangeDeadlines, timeouts: Timeouts
    ) -> Connection:
        """Close a connection and return a new one in its place. The total number of connections stays the same."""
        try:
            await connection.close()
        except BaseException:
            self._release_slot()
            raise
        return await self._open_connection(deadlines, timeouts)

    async def release(self, connection: Connection) -> None:
        """Keep a connection for reuse if its exchange is complete. Otherwise, close it."""
        if self._is_closed or not connection.prepare_reuse():
            await self.drop(connection)
            return
        self._idle.append(connection)
        self._assign_connections()
        if self._idle:
            self._on_idle()

    @property
    def has_idle(self) -> bool:
        """True if a connection is idle."""
        return bool(self._idle)

    async def sweep(self) -> None:
        """Close idle connections that are no longer usable."""
        for connection in tuple(self._idle):
            # a request may have taken this connection while another connection was being closed
            if connection in self._idle and not connection.is_alive():
                self._idle.remove(connection)
                await self.drop(connection)

    async def drop(self, connection: Connection) -> None:
        """Close a connection. Another connection may be opened in its place immediately."""
        self._release_slot()
        await connection.close()

    async def close(self) -> None:
        """Close the idle connections concurrently. A connection in use is closed when it is returned."""
        self._is_closed = True
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as tasks:
                while self._idle:
                    tasks.start_soon(self.drop, self._idle.pop())

    async def _open_connection(self, deadlines: ExchangeDeadlines, timeouts: Timeouts) -> Connection:
        """Open a connection in a slot that the caller has reserved. If this fails, release the slot."""
        try:
            deadlines.limit_wait("waiting to connect", timeouts.pool)
            async with self._connects:
                deadlines.limit_wait("connecting", timeouts.connect)
                return Connection(await self._dial())
        except BaseException:
            self._release_slot()
            raise

    async def _wait_for_slot(self) -> Connection | None:
        """Wait until a connection is idle, and return it; or until a slot is free, and return None.

        With None, the caller owns the slot and must open a connection.
        """
        waiter = _Waiter()
        self._waiters[waiter] = None
        try:
            await waiter.served.wait()
        except BaseException:
            if not waiter.served.is_set():
                del self._waiters[waiter]
            elif waiter.connection is None:  # return the slot that was already assigned
                self._release_slot()
            else:
                await self.drop(waiter.connection)
            raise
        return waiter.connection

    def _release_slot(self) -> None:
        """Free the slot of a closed connection, and let a waiting request use it."""
        self._free += 1
        self._assign_connections()

    def _assign_connections(self) -> None:
        """Assign idle connections and free slots to the waiting requests, in order of arrival."""
        while self._waiters and (self._idle or self._free):
            waiter, _ = self._waiters.popitem(last=False)
            if self._idle:
                waiter.connection = self._idle.pop()
            else:
                self._free -= 1
            waiter.served.set()
