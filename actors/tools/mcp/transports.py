"""The ways to reach a server: `ChildServer` for a program, `RemoteServer` for an address (streamable HTTP)."""

import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from httpx2 import AsyncClient, AsyncHTTPTransport, Proxy, Timeout
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client

from actors.errors import ToolsetDown
from actors.tools.mcp.child import ChildServer
from actors.tools.mcp.disclosure import public_url
from actors.tools.mcp.guard import GuardedTransport
from actors.tools.mcp.limits import McpLimits
from actors.tools.mcp.streams import OpenRequests, watch
from actors.tools.toolsets.owner import reason
from actors.transport.origin import target
from actors.transport.proxy import proxy_for

__all__ = ["ChildServer", "RemoteServer", "Transport"]

Transport: TypeAlias = Callable[[Callable[[], None]], AbstractAsyncContextManager[TransportStreams]]
"""Opens a connection. It is given what to call when the server has ended it."""

CONNECT = 30.0  # seconds that a request may take to be sent
SILENCE = 300.0  # seconds without a word from a server that has to answer


class RemoteServer:
    """A server at an address.

    The SDK and its client log addresses, and their errors quote them. So user, password and query are not in the one
    that they are given: the transport below adds them to what it sends.
    """

    def __init__(self, url: str, headers: Mapping[str, str], limits: McpLimits, name: str) -> None:
        self._url, self._headers, self._limits, self._name = url, headers, limits, name

    @asynccontextmanager
    async def open(self, ended: Callable[[], None]) -> AsyncIterator[TransportStreams]:
        """Give the streams to the server.

        Raises:
            ToolsetDown: It does not answer as it should. The message has its address, and its status if that is an
                error.
        """
        parts, requests = urlsplit(self._url), OpenRequests()
        plain = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
        below = GuardedTransport(_sender(plain), self._limits, self._name, parts.query)
        user, timeout = (parts.username, parts.password), Timeout(CONNECT, read=SILENCE)
        auth = None if user == (None, None) else (unquote(user[0] or ""), unquote(user[1] or ""))
        try:
            async with (
                AsyncClient(
                    headers=dict(self._headers), timeout=timeout, auth=auth, transport=below
                ) as client,
                # the guard bounds events
                streamable_http_client(plain, http_client=client, max_sse_event_size=None) as streams,
            ):
                yield watch(streams, requests, ended, self._name)
        except Exception as error:
            status = f"HTTP {below.status} from " if below.status is not None else ""
            raise ToolsetDown(f"{reason(error)} ({status}{public_url(self._url)})") from error


def _sender(url: str) -> AsyncHTTPTransport:
    """Return what sends requests to an address: through the proxy of the environment, if that names one."""
    found = proxy_for(target(url).origin, os.environ)
    if found is None:
        return AsyncHTTPTransport()
    return AsyncHTTPTransport(
        proxy=Proxy(f"{found.origin.scheme}://{found.origin.authority}", headers=[*found.headers])
    )
