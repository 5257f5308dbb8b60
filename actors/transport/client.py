"""Implement `Transport` with one connection pool per origin. The first request to an origin creates the pool.

A timer closes idle connections that the server has already closed. Such a connection occupies a descriptor of the
process and a socket of the operating system (in the state `CLOSE_WAIT`) until it is closed here. A program that sends
no requests for hours would keep all of these connections. The timer runs only while there are idle connections.
"""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import cache, partial
from typing import TYPE_CHECKING

import anyio

from actors.core.data.persistent import Segments
from actors.kernel.event_loop import event_loop
from actors.kernel.tasks import Tasks
from actors.transport.contract import ForwardedRequest, Origin, Response, Timeouts, parse_target

if TYPE_CHECKING:
    from actors.transport.dial import LoadTlsContext
    from actors.transport.pool import ConnectionPool

INTERVAL = 5.0
"""Seconds between two searches for idle connections that the server has closed."""


class HttpTransport:
    """An HTTP/1.1 transport for asyncio and trio.

    Args:
        connections: Maximum number of connections to one origin. Further requests wait.
        connecting: Maximum number of connections to one origin that are opened at the same time.
        environ: Environment variables that name proxies, read at the first request to an origin. The default is the
            environment of the process.
    """

    def __init__(
        self, *, connections: int = 1000, connecting: int = 64, environ: Mapping[str, str] | None = None
    ) -> None:
        self._connections = connections
        self._connecting = connecting
        self._environ = os.environ if environ is None else environ
        self._pools: dict[Origin, ConnectionPool] = {}
        self._load_tls_context: LoadTlsContext | None = None
        self._sweep = Sweep(self._sweep_pools)

    def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AbstractAsyncContextManager[Response]:
        """POST the segments; see `Transport.send`."""
        from actors.transport.exchange import ClientExchange, post_request  # importing h11 is slow

        where = parse_target(url)
        pool = self._pools.get(where.origin) or self._open_pool(where.origin)
        create_head = partial(post_request, where, headers, segments.size, pool.forwarder)
        return ClientExchange(pool, where, create_head, segments, timeouts)

    def forward(
        self,
        method: str,
        url: str,
        headers: Sequence[tuple[bytes, bytes]],
        segments: Segments,
        timeouts: Timeouts,
    ) -> ForwardedRequest:
        """Return a context manager that forwards another client's request when it is entered.

        The only header that is added is `content-length`, so `headers` must contain `host` and must not contain
        `content-length`. The environment must not name a proxy for the URL. The errors are those of `Transport.send`.
        """
        from actors.transport.exchange import ClientExchange, forwarded_request

        where = parse_target(url)
        pool = self._pools.get(where.origin) or self._open_pool(where.origin)
        create_head = partial(forwarded_request, method, where, headers, segments.size)
        return ClientExchange(pool, where, create_head, segments, timeouts)

    def _open_pool(self, origin: Origin) -> "ConnectionPool":
        from actors.transport.dial import dial, proxy_for, system_tls_context
        from actors.transport.pool import ConnectionPool

        self._load_tls_context = self._load_tls_context or cache(system_tls_context)
        proxy = proxy_for(origin, self._environ)
        reach = partial(dial, origin, proxy, self._load_tls_context)
        forwarder = proxy if origin.scheme == "http" else None
        pool = self._pools[origin] = ConnectionPool(
            reach, self._connections, self._connecting, forwarder, self._sweep.start
        )
        return pool

    async def close(self) -> None:
        """Close every connection; see `Transport.close`."""
        pools, self._pools = self._pools, {}
        await self._sweep.stop()
        for pool in pools.values():
            await pool.close()

    async def _sweep_pools(self) -> bool:
        """Close idle connections that are no longer usable. Return True if any connection is still idle."""
        for pool in tuple(self._pools.values()):
            await pool.sweep()
        # checked last, because a connection may become idle while another pool is swept
        return any(pool.has_idle for pool in self._pools.values())


class Sweep:
    """A timer that regularly closes unusable idle connections.

    Args:
        sweep: Closes unusable idle connections, and returns True if any idle connection remains.
    """

    def __init__(self, sweep: Callable[[], Awaitable[bool]]) -> None:
        self._sweep = sweep
        self._tasks: Tasks | None = None

    def start(self) -> None:
        """Start the timer unless it is running. Called when a connection becomes idle."""
        if self._tasks is None:
            self._tasks = Tasks(event_loop())
            self._tasks.start(self._run, self._on_end, "actors connections", shielded=False)

    async def stop(self) -> None:
        """Stop the timer, and wait until its task has ended."""
        if (tasks := self._tasks) is not None:
            tasks.cancel()
            await tasks.join()

    async def _run(self) -> None:
        has_idle = True
        while has_idle:
            await anyio.sleep(INTERVAL)
            has_idle = await self._sweep()

    def _on_end(self, _error: BaseException | None) -> None:
        self._tasks = None
