"""The connections to one origin: how many there are, who gets the next, and which rest.

A request takes the connection that rested last, or a place for a new one, or waits its turn. It looks at no other
connection, so thousands cost each request what one does.
"""

from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio
import anyio.abc

from actors.transport.connection import Connection
from actors.transport.contract import Timeouts
from actors.transport.patience import Patience
from actors.transport.proxy import Proxy

Dial = Callable[[], Awaitable[anyio.abc.ByteStream]]


@dataclass(eq=False, slots=True)
class _Waiter:
    """Someone who waits for a connection, or for a place to make one (`connection` is None then)."""

    served: anyio.Event = field(default_factory=anyio.Event)
    connection: Connection | None = None


class ConnectionPool:
    """The connections to one origin.

    Args:
        dial: Makes a stream to it.
        connections: How many there may be.
        connecting: How many may be made at a time: thousands at once overflow a server's queue and time out.
        forwarder: The proxy that they lead to, if it is handed requests and opens no tunnel.
        on_rest: Called when a connection begins to rest.
    """

    def __init__(
        self,
        dial: Dial,
        connections: int,
        connecting: int,
        forwarder: Proxy | None = None,
        on_rest: Callable[[], None] = lambda: None,
    ) -> None:
        self.forwarder = forwarder
        self._on_rest = on_rest
        self._dial = dial
        self._free = connections
        self._connects = anyio.Semaphore(connecting, fast_acquire=True)
        self._idle: deque[Connection] = deque()  # the longest rested first
        self._waiters: OrderedDict[_Waiter, None] = OrderedDict()  # the longest waiting first
        self._is_closed = False

    @property
    def free(self) -> int:
        """Connections that could be made beyond those there are."""
        return self._free

    async def take(self, patience: Patience, timeouts: Timeouts) -> Connection:
        """Return a connection for one exchange; it is given back to `give_back` or `drop`.

        Raises:
            OSError: None could be made.
        """
        while self._idle:
            connection = self._idle.pop()
            if connection.is_alive():
                return connection
            await self.drop(connection)
        if self._free:
            self._free -= 1
        else:
            patience.wait("waiting for a free connection", timeouts.pool)
            if (given := await self._turn()) is not None:
                return given
        return await self._made(patience, timeouts)

    async def renew(self, connection: Connection, patience: Patience, timeouts: Timeouts) -> Connection:
        """Close a connection and return a new one in its place."""
        try:
            await connection.close()
        except BaseException:
            self._freed()
            raise
        return await self._made(patience, timeouts)

    async def give_back(self, connection: Connection) -> None:
        """Take a connection back: it rests if its exchange is over, and is closed otherwise."""
        if self._is_closed or not connection.rests():
            await self.drop(connection)
            return
        self._idle.append(connection)
        self._serve()
        if self._idle:
            self._on_rest()

    async def sweep(self) -> bool:
        """Close those that rest and cannot be used again. Say whether any still rests."""
        for connection in tuple(self._idle):
            if connection in self._idle and not connection.is_alive():  # else it was taken meanwhile
                self._idle.remove(connection)
                await self.drop(connection)
        return bool(self._idle)

    async def drop(self, connection: Connection) -> None:
        """Close a connection. Its place is free at once."""
        self._freed()
        await connection.close()

    async def close(self) -> None:
        """Close the connections that rest now, all at once, and the others when they are given back."""
        self._is_closed = True
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as tasks:
                while self._idle:
                    tasks.start_soon(self.drop, self._idle.pop())

    async def _made(self, patience: Patience, timeouts: Timeouts) -> Connection:
        """Make a connection in a place that is taken already."""
        try:
            patience.wait("waiting to connect", timeouts.pool)
            async with self._connects:
                patience.wait("connecting", timeouts.connect)
                return Connection(await self._dial())
        except BaseException:
            self._freed()
            raise

    async def _turn(self) -> Connection | None:
        """Wait for a connection that is given back, or for a place."""
        waiter = _Waiter()
        self._waiters[waiter] = None
        try:
            await waiter.served.wait()
        except BaseException:
            if not waiter.served.is_set():
                del self._waiters[waiter]
            elif waiter.connection is None:  # it was given what it no longer wants
                self._freed()
            else:
                await self.drop(waiter.connection)
            raise
        return waiter.connection

    def _freed(self) -> None:
        self._free += 1
        self._serve()

    def _serve(self) -> None:
        """Give what is free to those who have waited longest."""
        while self._waiters and (self._idle or self._free):
            waiter, _ = self._waiters.popitem(last=False)
            if self._idle:
                waiter.connection = self._idle.pop()
            else:
                self._free -= 1
            waiter.served.set()
