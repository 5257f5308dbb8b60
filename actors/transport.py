"""The only place that opens connections to providers.

It takes a request of segments and gives status, headers and chunks. No type of the HTTP library leaves
this file, so the library can be changed in it. Redirects are not followed and the environment's proxies are
not used: a credential goes to its own endpoint and nowhere else. The library's logger, which writes full
URLs, is held at warnings. Answers are asked for, and taken, as they are: what is compressed may be a thousand times as
large as what came, and would be unpacked before anyone could count it.
"""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import anyio

from actors.errors import ProviderFailed

if TYPE_CHECKING:
    import httpx2

RESENDS = 2
"""Times that a request goes out again because the server closed a kept connection without an answer."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Bounds of one exchange, in seconds.

    Args:
        connect: Until a connection stands.
        first_byte: From the request's last byte to the response's head.
        idle: Between any two chunks.
        total: For the whole exchange; None has no end of its own. Whoever reads the answer keeps it.
        write: Between two segments taken by the network.
        pool: Until a connection is free.
    """

    connect: float = 10.0
    first_byte: float = 120.0
    idle: float = 60.0
    total: float | None = None
    write: float = 30.0
    pool: float = 30.0


class Response(Protocol):
    """What a server answers: the head now, the body in chunks."""

    status: int
    headers: Mapping[str, str]

    def chunks(self) -> AsyncGenerator[bytes, None]:
        """Give the body as it arrives, cut anywhere. Close the generator if you leave it early.

        Raises:
            ProviderFailed: The connection broke or stalled.
        """


class Transport(Protocol):
    """How requests reach a provider."""

    def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Sequence[bytes], timeouts: Timeouts
    ) -> AbstractAsyncContextManager[Response]:
        """POST the segments as one JSON body and give the response.

        Leaving the context before the body's end closes the connection.

        Raises:
            ProviderFailed: No connection, or it broke before the response's head.
        """

    async def close(self) -> None:
        """Close every connection."""


class _HttpResponse:
    def __init__(self, response: "httpx2.Response", where: str) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self._response = response
        self._where = where

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        import httpx2

        if (coding := self.headers.get("content-encoding", "identity").strip().lower()) != "identity":
            raise ProviderFailed(f"No answer from {self._where}: it is compressed ({coding[:40]!r}), unasked")
        body = self._response.aiter_raw()
        is_left_early = True
        try:
            async for chunk in body:
                yield chunk
            is_left_early = False
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            raise _failed(error, self._where) from None
        finally:
            if is_left_early:
                await _abandon(body)


class HttpTransport:
    """HTTP/1.1 by httpx2, on asyncio and on trio. The client is made at the first request."""

    def __init__(self, *, connections: int = 1000) -> None:
        self._connections = connections
        self._client: httpx2.AsyncClient | None = None

    @asynccontextmanager
    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Sequence[bytes], timeouts: Timeouts
    ) -> AsyncIterator[Response]:
        """POST the segments; see `Transport.send`."""
        import httpx2

        client = self._client or self._connected()
        try:
            response = await _answered(client, url, headers, segments, timeouts)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise _failed(error, url) from None
        response.request.extensions["timeout"]["read"] = timeouts.idle  # read anew for each chunk
        try:
            yield _HttpResponse(response, url)
        finally:
            await response.aclose()

    async def close(self) -> None:
        """Close every connection."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _connected(self) -> "httpx2.AsyncClient":
        import httpx2

        for name in ("httpx2", "httpcore2"):
            logging.getLogger(name).setLevel(logging.WARNING)
        limits = httpx2.Limits(max_connections=self._connections, max_keepalive_connections=self._connections)
        self._client = httpx2.AsyncClient(limits=limits, trust_env=False, follow_redirects=False)
        return self._client


async def _answered(
    client: "httpx2.AsyncClient",
    url: str,
    headers: Sequence[tuple[str, str]],
    segments: Sequence[bytes],
    timeouts: Timeouts,
) -> "httpx2.Response":
    """Send a request and return the response at its head.

    A server may close a kept connection while the request is on its way: llama.cpp does so after every stream,
    although it promised to keep it. Such a request was most likely not read, so it goes out again, at once. It may be
    the request that ends the connection, so that is not done with each of the kept ones.
    """
    import httpx2

    resends = 0
    while True:
        connection = _Connection()
        try:
            request = _request(client, url, headers, segments, timeouts, connection)
            return await client.send(request, stream=True)
        except (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError):
            if connection.is_new or resends == RESENDS:
                raise
            resends += 1


def _request(
    client: "httpx2.AsyncClient",
    url: str,
    headers: Sequence[tuple[str, str]],
    segments: Sequence[bytes],
    timeouts: Timeouts,
    connection: "_Connection",
) -> "httpx2.Request":
    import httpx2

    said = (("content-type", "application/json"), ("accept-encoding", "identity"))
    length = ("content-length", str(sum(map(len, segments))))
    return client.build_request(
        "POST",
        url,
        headers=[*headers, *said, length],
        content=_body(segments),
        timeout=httpx2.Timeout(
            connect=timeouts.connect,
            read=timeouts.first_byte,
            write=timeouts.write,
            pool=timeouts.pool,
        ),
        extensions={"trace": connection},
    )


class _Connection:
    """Whether a request got a new connection or a kept one. The library tells it what it does, step by step."""

    is_new = False

    async def __call__(self, step: str, _: object) -> None:
        self.is_new = self.is_new or step == "connection.connect_tcp.started"


async def _body(segments: Sequence[bytes]) -> AsyncIterator[bytes]:
    for segment in segments:
        yield segment


async def _abandon(body: AsyncIterator[bytes]) -> None:
    """Read on under cancellation: the library's generators stand inside each other, and only so do all of them end."""
    with anyio.CancelScope() as scope, suppress(Exception):  # nobody asks how it ends any more
        scope.cancel()
        async for _ in body:
            pass


def _failed(error: Exception, where: str) -> ProviderFailed:
    """Return our error for one of the library's, without its request and headers."""
    kind = type(error).__name__
    text = str(error).splitlines()[0] if str(error) else "no detail"
    return ProviderFailed(f"No answer from {where}: {kind}: {text}")
