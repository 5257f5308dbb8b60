"""Run HTTP/1.1 exchanges over one connection, with h11 over a byte stream, and limit how long one exchange waits.

`ClientExchange` uses a `Connection`, which runs one exchange at a time. The module `pool` limits the number of
connections. Exchanges and pools set the limit of each wait with `ExchangeDeadlines`.

One cancel scope covers all steps from waiting for a connection to reading the response's head, because a scope for each
step would cost more than the step. Each wait for more of the body has a separate scope. The scopes are the event loop's
native scopes, because detecting the loop through anyio costs as much as the wait.
"""

import math
import select
import socket
import ssl
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from time import monotonic
from types import TracebackType
from typing import Self, cast

import anyio
import anyio.abc
import h11
from anyio.streams.tls import TLSAttribute

from actors.core.data.persistent import Segments
from actors.kernel.event_loop import event_loop
from actors.kernel.turnstile import turnstile

MAX_HEAD = 64 * 1024
"""Maximum number of bytes in a response's head, in its trailers, or in the first line of a chunk."""
SMALL_BODY = 64 * 1024
"""Maximum size in bytes of a body that is sent with the head in one write. It is smaller than the socket's buffer."""
WRITE_SIZE = 1024 * 1024
"""Bytes per write of a longer body. The event loop copies the bytes that the socket does not accept at once, so larger
writes would be slow. Each write costs as much as copying 50 KB, so smaller writes would be slow as well."""
MAX_IDLE = 60.0
"""Seconds for which an idle connection may be reused. Gateways drop idle connections silently after some minutes."""


class DeadlineExceeded(Exception):
    """A step of an exchange waited too long. The message names the step."""


class ExchangeDeadlines:
    """A context manager with a limit for each wait and one limit for the complete exchange.

    Args:
        total: Seconds for the exchange, including reading the body. `None` means no limit.
    """

    __slots__ = ("_end", "_loop", "_scope", "_seconds", "_total", "_wait_name")

    def __init__(self, total: float | None) -> None:
        self._loop = event_loop()
        self._end = math.inf if total is None else self._loop.now() + total
        self._total = total
        self._wait_name, self._seconds = "", math.inf
        self._scope = self._loop.scope()

    def limit_wait(self, wait_name: str, seconds: float) -> None:
        """Limit the next wait to `seconds`. `wait_name` names the wait in errors, such as "connecting"."""
        self._wait_name, self._seconds = wait_name, seconds
        self._scope.deadline = min(self._end, self._loop.now() + seconds)

    def limit_again(self, wait_name: str, seconds: float) -> Self:
        """Return this context manager, to be entered again for one more wait.

        The arguments are those of `limit_wait`.
        """
        self._wait_name, self._seconds = wait_name, seconds
        self._scope = self._loop.scope(deadline=min(self._end, self._loop.now() + seconds))
        return self

    def __enter__(self) -> Self:
        self._scope.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Exit the cancel scope.

        Raises:
            DeadlineExceeded: A wait took too long.
        """
        self._scope.__exit__(kind, error, trace)
        if self._scope.cancelled_caught:
            raise self._deadline_error() from None

    def _deadline_error(self) -> DeadlineExceeded:
        if self._total is not None and self._scope.deadline == self._end:
            return DeadlineExceeded(f"the exchange took longer than {self._total:g} s")
        return DeadlineExceeded(f"{self._wait_name} took longer than {self._seconds:g} s")


class ConnectionLost(Exception):
    """The connection was closed or broken before the exchange was complete."""


class ProtocolError(Exception):
    """The received data is not valid HTTP/1.1, or exceeds a limit."""


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a response. Header names are in lower case. Values of a repeated header are joined with commas."""

    status: int
    headers: Mapping[str, str]
    raw_headers: Sequence[tuple[bytes, bytes]]
    """The headers as received, in order and with repeated names, but with names in lower case."""


class Connection:
    """An open connection to an origin or a proxy.

    Attributes:
        is_reused: Whether the connection has completed an earlier exchange.
        has_received: Whether any byte of the current response has arrived.
        is_response_complete: Whether the current response is complete.
    """

    is_reused: bool
    has_received: bool
    is_response_complete: bool

    def __init__(self, stream: anyio.abc.ByteStream) -> None:
        self.is_reused = self.has_received = self.is_response_complete = False
        self._is_broken = self._has_ended = False
        self._is_drained = False  # whether h11 has parsed all received bytes, and needs more
        self._stream, self._turnstile = stream, turnstile()
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD)
        self._socket = stream.extra(anyio.abc.SocketAttribute.raw_socket)  # noqa: S610  anyio's extra, not Django's
        self._tls = stream.extra(TLSAttribute.ssl_object, None)  # noqa: S610
        self._idle_since = 0.0

    def request_pieces(self, head: h11.Request, segments: Segments) -> Iterator[bytes]:
        """Yield the bytes of a request in pieces for `write`. Short segments are joined. Long segments are sliced
        without a copy.

        The first piece includes the head, because a separate write would cost as much as copying 50 KB.
        """
        begin = self._http.send(head)
        if segments.size <= SMALL_BODY:
            body = b"".join(segments)
            self._http.send(h11.Data(data=body))
            self._http.send(h11.EndOfMessage())
            yield begin + body
            return
        for joined in _join_segments(begin, segments):
            view = memoryview(joined)
            for at in range(0, len(view), WRITE_SIZE):
                # streams accept any buffer, but are annotated with bytes
                data = cast(bytes, view[at : at + WRITE_SIZE])
                self._http.send_with_data_passthrough(h11.Data(data=data[len(begin) :]))
                begin = b""
                yield data
        self._http.send(h11.EndOfMessage())

    async def write(self, piece: bytes) -> None:
        """Send one piece of a request.

        Raises:
            ConnectionLost: The connection broke. A response may still be readable.
        """
        try:
            await self._stream.send(piece)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.BusyResourceError, OSError):
            self._is_broken = True
            raise ConnectionLost("the connection broke while the request was sent") from None

    async def read_head(self) -> Head:
        """Read the head of the response. Interim responses (1xx) are skipped.

        Raises:
            ConnectionLost: The connection ended before the end of the head.
            ProtocolError: The received data is not a response.
        """
        while type(event := self._next_event()) is not h11.Response:
            if event is h11.NEED_DATA:
                await self.receive()
        return Head(event.status_code, _parse_headers(event.headers), event.headers)

    def received_body(self) -> bytes:
        """Return the part of the body that has arrived since the last call, or b"" if nothing has arrived.

        Raises:
            ConnectionLost: The connection ended before the end of the body.
            ProtocolError: The received data is not a valid body.
        """
        if self._is_drained:
            return b""
        parts: list[bytes] = []
        while type(event := self._next_event()) is h11.Data:
            parts.append(event.data)
        self.is_response_complete = type(event) is h11.EndOfMessage
        self._is_drained = event is h11.NEED_DATA
        return b"".join(parts)

    async def receive(self) -> None:
        """Wait until more of the response arrives.

        Raises:
            ConnectionLost: The connection broke, or ended before the response began.
        """
        try:
            data = await self._stream.receive()
        except anyio.EndOfStream:
            if not self.has_received:
                raise ConnectionLost("the server closed the connection without an answer") from None
            data, self._has_ended = b"", True
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.BusyResourceError, OSError):
            raise ConnectionLost("the connection broke before the response was complete") from None
        else:
            self.has_received = True
        self._http.receive_data(data)
        self._is_drained = False
        # let other tasks run, because parsing many responses at once takes time
        await self._turnstile.wait_to_continue()

    def prepare_reuse(self) -> bool:
        """Prepare the connection for another exchange. Return False if it cannot be reused."""
        http = self._http
        if http.our_state is not h11.DONE or http.their_state is not h11.DONE:
            return False
        if (
            self._is_broken
            or http.trailing_data != (b"", False)
            or (self._tls and _has_extra_data(self._tls))
        ):
            return False
        http.start_next_cycle()
        self.is_reused, self.has_received, self.is_response_complete, self._idle_since = (
            True,
            False,
            False,
            monotonic(),
        )
        return True

    def has_expired(self) -> bool:
        """Return True if the connection has been idle for longer than `MAX_IDLE`."""
        return monotonic() - self._idle_since > MAX_IDLE

    def is_alive(self) -> bool:
        """Return True if the connection can be reused.

        A connection cannot be reused if it has expired, or if the server sent data or closed it while it was idle.
        """
        return not self.has_expired() and not _is_readable(self._socket)

    async def close(self) -> None:
        """Close the connection, even if the caller is cancelled."""
        with anyio.CancelScope(shield=True):
            await self._stream.aclose()

    def _next_event(self) -> object:
        try:
            return self._http.next_event()
        except h11.RemoteProtocolError as error:
            if self._has_ended:
                raise ConnectionLost(
                    "the server closed the connection before the response was complete"
                ) from None
            raise ProtocolError(_error_text(error)) from None


def _parse_headers(raw: Iterable[tuple[bytes, bytes]]) -> Mapping[str, str]:
    """Return the headers of a response by lower-case name. Values of a repeated header are joined with commas."""
    headers: dict[str, str] = {}
    for name, value in raw:
        key, text = name.decode("ascii"), value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers


def _join_segments(head: bytes, segments: Segments) -> Iterator[bytes]:
    """Yield the head and the segments, joined into chunks of about half of `WRITE_SIZE` bytes.

    The chunk size is estimated from the average segment, because summing exact sizes would cost as much as joining.
    """
    count = max(1, WRITE_SIZE // 2 * len(segments) // segments.size)
    rest = chain([head], segments)
    for at in range(0, len(segments), count):
        yield b"".join(islice(rest, count if at else count + 1))  # joining a single segment does not copy it


def _error_text(error: h11.RemoteProtocolError) -> str:
    """Return h11's message without the received data that it quotes, because a server may repeat a credential."""
    return f"the received data is not HTTP: {str(error).partition(':')[0][:120]}"


def _has_extra_data(tls: ssl.SSLObject) -> bool:
    """Return True if more data follows the response. This data must not be mistaken for the next response."""
    try:
        tls.read(1)
    except ssl.SSLWantReadError:
        return False
    except ssl.SSLError:
        pass
    return True


def _is_readable(raw: socket.socket) -> bool:
    """Return True if data or the end of the stream has arrived at a socket, or the socket is closed."""
    if raw.fileno() < 0:
        return True
    if not hasattr(select, "poll"):  # Windows has no `poll`, but its `select` accepts every descriptor
        return bool(select.select([raw], [], [], 0)[0])
    poll = select.poll()
    poll.register(raw, select.POLLIN)
    return bool(poll.poll(0))
