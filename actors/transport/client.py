"""The transport that is used: a pool for each origin, made at the first request that goes there."""

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import cache, partial
from typing import TYPE_CHECKING

from actors.core.data.segments import Segments
from actors.transport.contract import Response, Timeouts
from actors.transport.origin import Origin, target
from actors.transport.sweep import Sweep

if TYPE_CHECKING:
    from actors.transport.dial import Trust
    from actors.transport.pool import ConnectionPool


class HttpTransport:
    """HTTP/1.1 on asyncio and on trio.

    Args:
        connections: To one origin; a request beyond them waits.
        connecting: Connections to one origin that are being made at a time.
        environ: Where proxies are looked up, when an origin is first used; the process's environment by default.
    """

    def __init__(
        self, *, connections: int = 1000, connecting: int = 64, environ: Mapping[str, str] | None = None
    ) -> None:
        self._connections = connections
        self._connecting = connecting
        self._environ = os.environ if environ is None else environ
        self._pools: dict[Origin, ConnectionPool] = {}
        self._trust: Trust | None = None
        self._sweep = Sweep(self._swept)

    def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AbstractAsyncContextManager[Response]:
        """POST the segments; see `Transport.send`."""
        from actors.transport.exchange import ClientExchange  # h11 takes a while to import

        where = target(url)
        pool = self._pools.get(where.origin) or self._made(where.origin)
        return ClientExchange(pool, where, headers, segments, timeouts)

    def _made(self, origin: Origin) -> "ConnectionPool":
        from actors.transport.dial import dial, system_trust
        from actors.transport.pool import ConnectionPool
        from actors.transport.proxy import proxy_for

        self._trust = self._trust or cache(system_trust)
        proxy = proxy_for(origin, self._environ)
        reach = partial(dial, origin, proxy, self._trust)
        forwarder = proxy if origin.scheme == "http" else None
        pool = self._pools[origin] = ConnectionPool(
            reach, self._connections, self._connecting, forwarder, self._sweep.begin
        )
        return pool

    async def close(self) -> None:
        """Close every connection; see `Transport.close`."""
        pools, self._pools = self._pools, {}
        await self._sweep.end()
        for pool in pools.values():
            await pool.close()

    async def _swept(self) -> bool:
        """Close what rests and cannot be used again. Say whether any connection still rests."""
        return any([await pool.sweep() for pool in tuple(self._pools.values())])
