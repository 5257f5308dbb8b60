"""Send one request and read its response. `HttpTransport.send` returns a `ClientExchange`.

A server may close an idle connection just when a request is sent over it. llama.cpp does so after every stream,
although it promises to keep the connection open. The server has most likely not read that request, so the request is
sent once more over a new connection. It is never sent again after a byte of a response has arrived.

A server may also respond before it has read the complete request, so a separate task sends a long request while the
response is awaited and read.
"""

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import TracebackType

import anyio
import anyio.abc
import h11

from actors.core.data.persistent import Segments
from actors.errors import ConfigError, ProviderFailed
from actors.transport.connection import (
    SMALL_BODY,
    Connection,
    ConnectionLost,
    DeadlineExceeded,
    ExchangeDeadlines,
    Head,
    ProtocolError,
)
from actors.transport.contract import Target, Timeouts
from actors.transport.dial import Proxy, ProxyRefused, failure_reason
from actors.transport.pool import ConnectionPool

DEFAULT_HEADERS = (
    ("content-type", "application/json"),
    ("accept-encoding", "identity"),
    ("user-agent", "actors"),
)
"""Headers of each request, unless the caller passes a header with the same name."""


class ClientExchange:
    """One request and its response, as a context manager that can be entered once."""

    status: int
    headers: Mapping[str, str]
    raw_headers: Sequence[tuple[bytes, bytes]]

    def __init__(
        self,
        pool: ConnectionPool,
        target: Target,
        create_head: Callable[[], h11.Request],
        segments: Segments,
        timeouts: Timeouts,
    ) -> None:
        self._pool = pool
        self._target = target
        self._segments = segments
        self._create_head = create_head
        # dropped once it is sent, to save memory during the wait for the answer
        self._request_head: h11.Request | None = create_head()
        self._timeouts = timeouts
        self._connection: Connection | None = None
        self._writing: anyio.abc.TaskGroup | None = None
        self._is_answered = False
        self.is_sent: bool = False

    async def __aenter__(self) -> "ClientExchange":
        self._deadlines = ExchangeDeadlines(self._timeouts.total)
        try:
            if self._segments.size > SMALL_BODY:
                writing = anyio.create_task_group()
                self._writing = await writing.__aenter__()
            with self._deadlines:
                head = await self._fetch_head()
        except BaseException as error:
            await self._return_connection()
            if (text := _failure_message(error)) is None:
                raise
            failure = self._provider_error(text)
        else:
            self.status, self.headers, self.raw_headers = head.status, head.headers, head.raw_headers
            self._is_answered = True
            return self
        raise failure  # outside of the handler, so that the network error is not chained

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._return_connection()

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it arrives; see `Response.chunks`."""
        if (encoding := self.headers.get("content-encoding", "identity").strip().lower()) != "identity":
            raise ProviderFailed(
                f"Cannot read the response from {self._target.display_url}: its content-encoding is {encoding[:40]!r}, "
                "but compression was not requested"
            )
        while (chunk := await self._chunk()) is not None:
            yield chunk

    async def raw_chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it arrives, compressed or not; see `ForwardedResponse.raw_chunks`."""
        while (chunk := await self._chunk()) is not None:
            yield chunk

    async def _chunk(self) -> bytes | None:
        """Return the next data of the body, or None at its end."""
        while True:
            if (connection := self._connection) is None:
                raise self._provider_error("the response was closed before its end")
            if connection.is_response_complete:
                return None
            try:
                chunk = connection.received_body()
                if not chunk and not connection.is_response_complete:
                    chunk = await self._next_chunk(connection)
            except (ConnectionLost, ProtocolError, DeadlineExceeded) as error:
                raise self._provider_error(str(error)) from None
            if chunk:
                return chunk

    async def _fetch_head(self) -> Head:
        """Send the request and return the head of its response.

        If the server closed a reused connection without an answer, send the request once more over a new connection.
        """
        self._connection = connection = await self._pool.acquire(self._deadlines, self._timeouts)
        try:
            await self._send_request(connection)
            return await connection.read_head()
        except ConnectionLost:
            if not connection.is_reused or connection.has_received:
                raise
        self._connection = None  # from now on, the pool owns the old connection, even if `replace` fails
        self._connection = connection = await self._pool.replace(connection, self._deadlines, self._timeouts)
        await self._send_request(connection)
        return await connection.read_head()

    async def _send_request(self, connection: Connection) -> None:
        """Send the request over `connection`. If it is long, start a task that sends it."""
        head, self._request_head = self._request_head or self._create_head(), None
        pieces = connection.request_pieces(head, self._segments)
        if self._writing is None:
            await self._write(connection, pieces)
        else:
            self._writing.start_soon(self._write, connection, pieces)

    async def _write(self, connection: Connection, pieces: Iterator[bytes]) -> None:
        """Send a request, and then limit the wait for its answer.

        A lost connection is ignored here, because the server may have sent a response that explains the reason. If
        there is no response, reading it raises the error.
        """
        with suppress(ConnectionLost):
            for piece in pieces:
                self._limit_wait(connection, "sending the request", self._timeouts.write)
                self.is_sent = True
                await connection.write(piece)
        self._limit_wait(connection, "waiting for an answer", self._timeouts.first_byte)

    def _limit_wait(self, connection: Connection, wait_name: str, seconds: float) -> None:
        """Limit the next wait on `connection` to `seconds`. `wait_name` names the wait in errors.

        Do nothing if the response's head has arrived, or if another connection has replaced this one.
        """
        if connection is self._connection and not self._is_answered:
            self._deadlines.limit_wait(wait_name, seconds)

    async def _next_chunk(self, connection: Connection) -> bytes:
        """Wait for the next data of the body and return it. Return b"" at the end of the body."""
        with self._deadlines.limit_again("waiting for more of the answer", self._timeouts.idle):
            while True:
                await connection.receive()
                if (chunk := connection.received_body()) or connection.is_response_complete:
                    return chunk

    async def _return_connection(self) -> None:
        """Return the connection to the pool, which closes it if the exchange is not complete."""
        connection, self._connection = self._connection, None
        try:
            await self._stop_writing()
        finally:
            if connection is not None:
                await self._pool.release(connection)

    async def _stop_writing(self) -> None:
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.cancel_scope.cancel()
            await writing.__aexit__(None, None, None)

    def _provider_error(self, text: str) -> ProviderFailed:
        return ProviderFailed(f"The request to {self._target.display_url} failed: {text}")


def _failure_message(error: BaseException) -> str | None:
    """Return the error message for an expected network failure, or None for any other exception."""
    if isinstance(error, ConnectionLost | ProtocolError | DeadlineExceeded | ProxyRefused):
        return str(error)
    if isinstance(error, anyio.BrokenResourceError | anyio.EndOfStream):
        return "the connection broke while it was being opened"
    return failure_reason(error) if isinstance(error, OSError) else None


def post_request(
    target: Target, headers: Sequence[tuple[str, str]], length: int, forwarder: Proxy | None
) -> h11.Request:
    """Return the head of a POST request. For a forwarding proxy, it contains the complete URL and the auth headers."""
    path = target.path
    if forwarder is not None:
        path = f"{target.origin.scheme}://{target.origin.host_header}{path}"
        headers = (*headers, *forwarder.headers)
    present = {name.lower() for name, _ in headers}
    usual = [header for header in DEFAULT_HEADERS if header[0] not in present]
    lines = [("host", target.origin.host_header), *headers, *usual, ("content-length", str(length))]
    try:
        return h11.Request(method="POST", target=path, headers=lines)
    except (h11.LocalProtocolError, UnicodeEncodeError):
        pass  # not chained, because the error's text contains the header, which may be a key
    raise ConfigError(
        "A header or the path contains a character that HTTP does not allow; check the key for a line break"
    )


def forwarded_request(
    method: str, target: Target, headers: Sequence[tuple[bytes, bytes]], length: int
) -> h11.Request:
    """Return the head of another client's request. Only `content-length` is added to its headers."""
    lines = [*headers, (b"content-length", str(length).encode())]
    try:
        return h11.Request(method=method, target=target.path, headers=lines)
    except (h11.LocalProtocolError, UnicodeEncodeError):
        pass  # not chained, as above
    raise ConfigError("The method, the path or a header contains a character that HTTP does not allow")
