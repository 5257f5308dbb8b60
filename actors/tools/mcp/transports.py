"""Connect to MCP servers: `ChildServer` starts a program, `RemoteServer` uses a URL (streamable HTTP)."""

import os
from collections.abc import AsyncGenerator, Callable, Mapping
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
from actors.tools.mcp.streams import OpenRequests, wrap_streams
from actors.tools.toolsets.owner import failure_reason
from actors.transport.contract import parse_target
from actors.transport.dial import proxy_for

__all__ = ["ChildServer", "RemoteServer", "Transport"]

Transport: TypeAlias = Callable[[Callable[[], None]], AbstractAsyncContextManager[TransportStreams]]
"""Opens a connection. The argument is a function to call when the server ends the connection."""

CONNECT_TIMEOUT = 30.0  # maximum seconds to connect, or to send a request
READ_TIMEOUT = 300.0  # maximum seconds without data from a server while a request is pending


class RemoteServer:
    """An MCP server at a URL.

    The SDK and its HTTP client write URLs to logs and errors. So they receive the URL without its user, password and
    query, and the transport adds the query to each request.
    """

    def __init__(self, url: str, headers: Mapping[str, str], limits: McpLimits, name: str) -> None:
        self._url, self._headers, self._limits, self._name = url, headers, limits, name

    @asynccontextmanager
    async def open(self, on_end: Callable[[], None]) -> AsyncGenerator[TransportStreams]:
        """Return the streams to the server. `on_end` is called when the server ends the connection.

        Raises:
            ToolsetDown: The connection failed. The message contains the address, and the HTTP status if it is an error.
        """
        parts, requests = urlsplit(self._url), OpenRequests()
        plain = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
        guarded = GuardedTransport(_http_transport(plain), self._limits, self._name, parts.query)
        user, timeout = (parts.username, parts.password), Timeout(CONNECT_TIMEOUT, read=READ_TIMEOUT)
        auth = None if user == (None, None) else (unquote(user[0] or ""), unquote(user[1] or ""))
        try:
            async with (
                AsyncClient(
                    headers=dict(self._headers), timeout=timeout, auth=auth, transport=guarded
                ) as client,
                # None switches off the SDK's limit; `GuardedTransport` limits the events
                streamable_http_client(plain, http_client=client, max_sse_event_size=None) as streams,
            ):
                yield wrap_streams(streams, requests, on_end, self._name)
        except Exception as error:
            status = f"HTTP {guarded.status} from " if guarded.status is not None else ""
            raise ToolsetDown(f"{failure_reason(error)} ({status}{public_url(self._url)})") from error


def _http_transport(url: str) -> AsyncHTTPTransport:
    """Return a transport to a URL, through a proxy if the environment configures one for the URL."""
    found = proxy_for(parse_target(url).origin, os.environ)
    if found is None:
        return AsyncHTTPTransport()
    return AsyncHTTPTransport(
        proxy=Proxy(f"{found.origin.scheme}://{found.origin.authority}", headers=[*found.headers])
    )
