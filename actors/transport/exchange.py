"""One request and its answer: the context that `Transport.send` gives, and the response in it.

A server may close a kept connection while a request is on its way: llama.cpp does so after every stream, although
it promised to keep it. Such a request was most likely not read, so it goes out again, once, over a new connection;
never after a byte of an answer. A server may also answer before it has the whole request, so a long one is sent
by a task of its own while the answer is awaited and read.
"""

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import suppress
from types import TracebackType

import anyio
import anyio.abc
import h11

from actors.core.data.segments import Segments
from actors.errors import ConfigError, ProviderFailed
from actors.transport.connection import SMALL, Connection, HangUp, Head, Nonsense
from actors.transport.contract import Timeouts
from actors.transport.dial import why
from actors.transport.origin import Target
from actors.transport.patience import OutOfTime, Patience
from actors.transport.pool import ConnectionPool
from actors.transport.proxy import Proxy, ProxyRefused

FIXED = (("content-type", "application/json"), ("accept-encoding", "identity"), ("user-agent", "actors"))
"""What each request says unless the caller says it otherwise."""


class ClientExchange:
    """One request and its answer. Enter it once."""

    status: int
    headers: Mapping[str, str]

    def __init__(
        self,
        pool: ConnectionPool,
        target: Target,
        headers: Sequence[tuple[str, str]],
        segments: Segments,
        timeouts: Timeouts,
    ) -> None:
        self._pool = pool
        self._target = target
        self._segments = segments
        self._request = _request(target, headers, segments.size, pool.forwarder)
        self._timeouts = timeouts
        self._connection: Connection | None = None
        self._writing: anyio.abc.TaskGroup | None = None
        self._is_answered = False

    async def __aenter__(self) -> "ClientExchange":
        self._patience = Patience(self._timeouts.total)
        try:
            if self._segments.size > SMALL:
                writing = anyio.create_task_group()
                self._writing = await writing.__aenter__()
            with self._patience:
                head = await self._answered()
        except BaseException as error:
            await self._leave()
            if (text := _told(error)) is None:
                raise
            failure = self._failed(text)
        else:
            self.status, self.headers, self._is_answered = head.status, head.headers, True
            return self
        raise failure

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._leave()

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Give the body; see `Response.chunks`."""
        if (coding := self.headers.get("content-encoding", "identity").strip().lower()) != "identity":
            raise self._failed(f"it is compressed ({coding[:40]!r}), unasked")
        while True:
            if (connection := self._connection) is None:
                raise self._failed("its context was left before its end")
            if connection.is_over:
                return
            try:
                chunk = connection.body()
                if not chunk and not connection.is_over:
                    chunk = await self._next(connection)
            except (HangUp, Nonsense, OutOfTime) as error:
                raise self._failed(str(error)) from None
            if chunk:
                yield chunk

    async def _answered(self) -> Head:
        self._connection = connection = await self._pool.take(self._patience, self._timeouts)
        try:
            return await self._asked(connection)
        except HangUp:
            if not connection.is_kept or connection.is_heard:
                raise
        self._connection = None
        self._connection = connection = await self._pool.renew(connection, self._patience, self._timeouts)
        return await self._asked(connection)

    async def _asked(self, connection: Connection) -> Head:
        """Send the request and read the head of its answer."""
        if self._writing is None:
            await self._write(connection, connection.pieces(self._request, self._segments))
        else:
            self._writing.start_soon(
                self._write, connection, connection.pieces(self._request, self._segments)
            )
        return await connection.head()

    async def _write(self, connection: Connection, pieces: Iterator[bytes]) -> None:
        """Send a request. If that fails, the answer may still say why, so the error is left to the read."""
        with suppress(HangUp):
            for piece in pieces:
                self._wait(connection, "sending the request", self._timeouts.write)
                await connection.write(piece)
        self._wait(connection, "waiting for an answer", self._timeouts.first_byte)

    def _wait(self, connection: Connection, what: str, seconds: float) -> None:
        """Bound a wait for the answer's head, unless that is there, or the request goes out again over another one."""
        if connection is self._connection and not self._is_answered:
            self._patience.wait(what, seconds)

    async def _next(self, connection: Connection) -> bytes:
        """Return the next of the body, which is not here yet; nothing if this is its end."""
        with self._patience.once_more("waiting for more of the answer", self._timeouts.idle):
            while True:
                await connection.receive()
                if (chunk := connection.body()) or connection.is_over:
                    return chunk

    async def _leave(self) -> None:
        """Give the connection back, or close it if anything of the exchange is not over."""
        connection, self._connection = self._connection, None
        try:
            await self._stop_writing()
        finally:
            if connection is not None:
                await self._pool.give_back(connection)

    async def _stop_writing(self) -> None:
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.cancel_scope.cancel()
            await writing.__aexit__(None, None, None)

    def _failed(self, text: str) -> ProviderFailed:
        return ProviderFailed(f"No answer from {self._target.display_url}: {text}")


def _told(error: BaseException) -> str | None:
    """Return the text of a failure that is expected on a network; None for any other."""
    if isinstance(error, HangUp | Nonsense | OutOfTime | ProxyRefused):
        return str(error)
    if isinstance(error, anyio.BrokenResourceError | anyio.EndOfStream):
        return "the connection broke before it stood"
    return why(error) if isinstance(error, OSError) else None


def _request(
    target: Target, headers: Sequence[tuple[str, str]], length: int, forwarder: Proxy | None
) -> h11.Request:
    """Return the head of a request; a proxy that forwards it is told the whole URL, and who asks."""
    path = target.path
    if forwarder is not None:
        path = f"{target.origin.scheme}://{target.origin.host_header}{path}"
        headers = (*headers, *forwarder.headers)
    given = {name.lower() for name, _ in headers}
    usual = [header for header in FIXED if header[0] not in given]
    lines = [("host", target.origin.host_header), *headers, *usual, ("content-length", str(length))]
    try:
        return h11.Request(method="POST", target=path, headers=lines)
    except (h11.LocalProtocolError, UnicodeEncodeError):
        pass  # its text holds the header, which may be a key
    raise ConfigError(
        "A header or path holds a character that HTTP does not take; is there a line break in the key?"
    )
