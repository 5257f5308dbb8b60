"""Implement `Transport` with one connection pool per origin. The first request to an origin creates the pool."""

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import cache, partial
from typing import TYPE_CHECKING

from actors.core.data.segments import Segments
from actors.transport.contract import ForwardedRequest, Response, Timeouts
from actors.transport.origin import Origin, parse_target
from actors.transport.sweep import Sweep

if TYPE_CHECKING:
    from actors.transport.dial import Trust
    from actors.transport.pool import ConnectionPool


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
        self._trust: Trust | None = None
        self._sweep = Sweep(self._sweep_pools)

    def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AbstractAsyncContextManager[Response]:
        """POST the segments; see `Transport.send`."""
        from actors.transport.exchange import ClientExchange, post_request  # importing h11 is slow

        where = parse_target(url)
        pool = self._pools.get(where.origin) or self._open_pool(where.origin)
        request = post_request(where, headers, segments.size, pool.forwarder)
        return ClientExchange(pool, where, request, segments, timeouts)

    def forward(
        self,
        method: str,
        url: str,
        headers: Sequence[tuple[bytes, bytes]],
        segments: Segments,
        timeouts: Timeouts,
    ) -> ForwardedRequest:
        """Send the request of another client with its method, headers and body, when the result is entered.

        No default headers are added, so `headers` must contain `host`, but not `content-length`. The environment must
        name no proxy for the URL. The errors are those of `Transport.send`.
        """
        from actors.transport.exchange import ClientExchange, forwarded_request

        where = parse_target(url)
        pool = self._pools.get(where.origin) or self._open_pool(where.origin)
        request = forwarded_request(method, where, headers, segments.size)
        return ClientExchange(pool, where, request, segments, timeouts)

    def _open_pool(self, origin: Origin) -> "ConnectionPool":
        from actors.transport.dial import dial, system_tls_context
        from actors.transport.pool import ConnectionPool
        from actors.transport.proxy import proxy_for

        self._trust = self._trust or cache(system_tls_context)
        proxy = proxy_for(origin, self._environ)
        reach = partial(dial, origin, proxy, self._trust)
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
        """Close idle connections that are no longer usable. Return True if other idle connections remain."""
        return any([await pool.sweep() for pool in tuple(self._pools.values())])
