"""The transport that is used: a pool for each origin, made at the first request that goes there."""

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import cache, partial
from typing import TYPE_CHECKING

from actors.core.segments import Segments
from actors.transport.contract import Response, Timeouts
from actors.transport.origin import Origin, target

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
        reach = partial(dial, origin, proxy_for(origin, self._environ), self._trust)
        pool = self._pools[origin] = ConnectionPool(reach, self._connections, self._connecting)
        return pool

    async def close(self) -> None:
        """Close every connection; see `Transport.close`."""
        pools, self._pools = self._pools, {}
        for pool in pools.values():
            await pool.close()
