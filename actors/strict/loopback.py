"""Serve HTTP/1.1 for the strict servers. Answers can be cut off on purpose, to simulate faults.

The server uses h11 over an anyio byte stream. Each connection is a loop: read a request, compute the answer, send the
answer, and repeat while both sides keep the connection open. Each answer states whether and where its transmission is
cut off, so simulated faults need no separate code.
"""

import socket
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import anyio
import anyio.abc
import h11

_LINGER = 5.0  # seconds for discarding the unread part of a request body that is too large
_RESET = struct.pack("ii", 1, 0)  # value of SO_LINGER (on, zero seconds) that makes close() send a TCP reset


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A received HTTP request.

    Args:
        method: The HTTP method, such as `POST`.
        path: The path of the URL, without the query.
        headers: The headers, by lower-case name.
        body: The body; empty if it is too large.
        too_large: True if the body exceeds the server's limit. The body is then not read to its end.
        query: The query of the URL, without the question mark.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    too_large: bool
    query: str = ""


@dataclass(frozen=True, slots=True)
class LoopbackAnswer:
    """A response, and how its transmission ends.

    Args:
        status: The HTTP status.
        headers: (name, value) pairs. The server adds the header for the body's length or encoding.
        parts: The body. If streamed, each part is sent separately; otherwise, the parts form one body of known length.
        streamed: Whether the body is sent in chunks, without a declared length.
        cut: Number of bytes of the body after which the transmission stops; None sends nothing, not even the status.
        ending: How the transmission ends. `end` sends the complete response, and `repeat` then repeats the last part
            until the client disconnects. `close`, `reset` and `stall` stop after `cut` bytes.
        on_sent: Called once after sending, even if the client disconnected or the server was cancelled.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    parts: tuple[bytes, ...]
    streamed: bool = False
    cut: int | None = None
    ending: Literal["end", "close", "reset", "stall", "repeat"] = "end"
    on_sent: Callable[[], None] | None = None

    @property
    def is_sent(self) -> bool:
        """True if the client receives at least the status."""
        return self.ending in ("end", "repeat") or self.cut is not None


async def serve_connection(
    stream: anyio.abc.SocketStream,
    answer: Callable[[HttpRequest], LoopbackAnswer],
    *,
    max_body: int,
    write_bytes: int | None,
) -> None:
    """Serve the requests of one connection until either side ends it. A client may disconnect at any time."""
    raw = stream.extra_attributes[anyio.abc.SocketAttribute.raw_socket]()
    # Send each write at once, without waiting for more data.
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    async with stream:
        connection = _Connection(stream, write_bytes)
        try:
            while (request := await connection.read_request(max_body)) is not None:
                again = await connection.send_answer(answer(request))
                if request.too_large:
                    await connection.discard_body(max_body)
                if not again:
                    return
        except (
            anyio.BrokenResourceError,
            anyio.ClosedResourceError,
            anyio.EndOfStream,
            h11.LocalProtocolError,
        ):
            return


class _Connection:
    def __init__(self, stream: anyio.abc.SocketStream, write_bytes: int | None) -> None:
        self._stream = stream
        self._write_bytes = write_bytes
        self._http = h11.Connection(h11.SERVER)

    async def read_request(self, max_body: int) -> HttpRequest | None:
        """Read the next request. Return None if the client has closed the connection or does not speak HTTP.

        Reading stops as soon as the declared or received body is larger than `max_body` bytes.
        """
        head = await self._next_event()
        if not isinstance(head, h11.Request):
            return None
        headers = {name.decode(): value.decode("latin-1") for name, value in head.headers}
        body = bytearray()
        too_large = int(headers.get("content-length", "0")) > max_body
        while not too_large:
            match await self._next_event():
                case h11.Data(data=data):
                    body += data
                    too_large = len(body) > max_body
                case h11.EndOfMessage():
                    break
                case _:
                    return None
        path, _, query = head.target.decode("latin-1").partition("?")
        read = b"" if too_large else bytes(body)
        return HttpRequest(head.method.decode(), path, headers, read, too_large, query)

    async def discard_body(self, max_bytes: int) -> None:
        """Discard up to `max_bytes` bytes of an unread body, so that the client can receive the answer."""
        with anyio.move_on_after(_LINGER):
            await self._stream.send_eof()
            while max_bytes > 0:
                max_bytes -= len(await self._stream.receive())

    async def _next_event(self) -> object:
        while True:
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as error:
                await self._send_error(error.error_status_hint)
                return None
            if event is not h11.NEED_DATA:
                return event
            if self._http.they_are_waiting_for_100_continue:
                go_on = h11.InformationalResponse(status_code=100, headers=[])
                await self._write(self._http.send(go_on))
            try:
                self._http.receive_data(await self._stream.receive())
            except anyio.EndOfStream:
                self._http.receive_data(b"")

    async def _send_error(self, status: int) -> None:
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            await self.transmit(LoopbackAnswer(status, (("connection", "close"),), ()))

    async def send_answer(self, answer: LoopbackAnswer) -> bool:
        """Send an answer, then call its `on_sent` callback. Return True if the connection can be reused."""
        try:
            return await self.transmit(answer)
        finally:
            if answer.on_sent is not None:
                answer.on_sent()

    async def transmit(self, answer: LoopbackAnswer) -> bool:
        """Send an answer without calling its `on_sent` callback. Return True if the connection can be reused."""
        if answer.is_sent:
            await self._send_head(answer)
            for part in _parts_to_send(answer):
                await self._write(self._http.send(h11.Data(data=part)))
        match answer.ending:
            case "stall":
                await self._wait_for_disconnect()
                return False
            case "reset":
                raw = self._stream.extra_attributes[anyio.abc.SocketAttribute.raw_socket]()
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                return False
            case "close":
                return False
            case "repeat":
                while True:
                    await self._write(self._http.send(h11.Data(data=answer.parts[-1])))
            case "end":
                await self._write(self._http.send(h11.EndOfMessage()))
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        return True

    async def _send_head(self, answer: LoopbackAnswer) -> None:
        length = str(sum(len(part) for part in answer.parts))
        size = ("transfer-encoding", "chunked") if answer.streamed else ("content-length", length)
        head = h11.Response(status_code=answer.status, headers=[*answer.headers, size])
        await self._write(self._http.send(head))

    async def _write(self, data: bytes | None) -> None:
        if not data:
            return
        size = self._write_bytes or len(data)
        for at in range(0, len(data), size):
            await self._stream.send(data[at : at + size])

    async def _wait_for_disconnect(self) -> None:
        try:
            while True:
                await self._stream.receive()
        except anyio.EndOfStream:
            return


def _parts_to_send(answer: LoopbackAnswer) -> Iterator[bytes]:
    if answer.ending in ("end", "repeat"):
        yield from answer.parts
        return
    left = answer.cut or 0
    for part in answer.parts:
        if left <= 0:
            return
        yield part[:left]
        left -= len(part)
