"""The SDK's transports, each as one block that says when its connection has ended.

The SDK closes the stream of what a server says when the connection ends, and tells it to those alone who wait for an
answer. A toolset has to know it before the next call, so the stream is watched here.
"""

import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias
from urllib.parse import unquote, urlsplit

import anyio
from httpx2 import AsyncBaseTransport, AsyncClient, AsyncHTTPTransport, Proxy, Request, Response, Timeout
from mcp.client._transport import ReadStream, TransportStreams
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from actors.transport.origin import target
from actors.transport.proxy import proxy_for

Transport: TypeAlias = Callable[[Callable[[], None]], AbstractAsyncContextManager[TransportStreams]]
"""Opens a connection; what it is given is called when the server has ended it."""

CONNECT = 30.0  # seconds that a request may take to be sent
SILENCE = 300.0  # seconds without a word from a server that has to answer


def child(
    command: str,
    args: tuple[str, ...],
    env: Mapping[str, str],
    cwd: str | Path | None,
    log: str | Path | None,
) -> Transport:
    """Return the transport to a child process."""

    @asynccontextmanager
    async def opened(ended: Callable[[], None]) -> AsyncIterator[TransportStreams]:
        server = StdioServerParameters(command=command, args=[*args], env=dict(env), cwd=cwd)
        with open(log or os.devnull, "a", encoding="utf-8") as errors:  # noqa: ASYNC230  opened once, and local
            async with stdio_client(server, errlog=errors) as (heard, said):
                yield Watched(heard, ended), said

    return opened


def remote(url: str, headers: Mapping[str, str]) -> Transport:
    """Return the transport to an address.

    The SDK and its client log addresses, and their errors quote them. So user, password and query are not in the one
    that they are given: the client adds them to what it sends.
    """
    parts = urlsplit(url)
    plain = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()

    @asynccontextmanager
    async def opened(ended: Callable[[], None]) -> AsyncIterator[TransportStreams]:
        user, timeout = (parts.username, parts.password), Timeout(CONNECT, read=SILENCE)
        auth = None if user == (None, None) else (unquote(user[0] or ""), unquote(user[1] or ""))
        below = WithQuery(parts.query, plain) if parts.query else None
        async with (
            AsyncClient(headers=dict(headers), timeout=timeout, auth=auth, transport=below) as client,
            streamable_http_client(plain, http_client=client) as (heard, said),
        ):
            yield Watched(heard, ended), said

    return opened


class WithQuery(AsyncBaseTransport):
    """Sends requests with a query that they do not show.

    Args:
        query: What is added.
        url: Where they go, which says what proxy of the environment they take.
    """

    def __init__(self, query: str, url: str) -> None:
        self._query = query.encode()
        found = proxy_for(target(url).origin, os.environ)
        proxy = None
        if found is not None:
            proxy = Proxy(f"{found.origin.scheme}://{found.origin.authority}", headers=[*found.headers])
        self._below = AsyncHTTPTransport(proxy=proxy)

    async def handle_async_request(self, request: Request) -> Response:
        url = request.url.copy_with(query=self._query)
        stream, extensions = request.stream, request.extensions
        return await self._below.handle_async_request(
            Request(request.method, url, headers=request.headers, stream=stream, extensions=extensions)
        )

    async def aclose(self) -> None:
        await self._below.aclose()


class Watched(ReadStream[SessionMessage | Exception]):
    """A stream that says when it has ended."""

    def __init__(self, stream: ReadStream[SessionMessage | Exception], ended: Callable[[], None]) -> None:
        self._stream, self._ended = stream, ended

    @property
    def last_context(self) -> Any:  # Any: the SDK looks for it by name
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        try:
            return await self._stream.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._ended()
            raise

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> "Watched":
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, trace)
