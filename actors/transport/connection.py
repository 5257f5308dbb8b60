"""One HTTP/1.1 connection: h11's rules over a byte stream.

It knows one exchange at a time, reads whatever is there before it hands anything on, and says at the end whether
another exchange may follow. Waiting and places are the business of others.
"""

import select
import socket
import ssl
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from time import monotonic
from typing import cast

import anyio
import anyio.abc
import h11
from anyio.streams.tls import TLSAttribute

from actors.core.data.segments import Segments
from actors.kernel.turnstile import turnstile

HEAD = 64 * 1024
"""Bytes of an answer's head, of its trailers, or of a chunk's first line, beyond which they are refused."""
SMALL = 64 * 1024
"""Bytes of a body that go out with the head in one piece: less than the network takes without waiting."""
SLICE = 1024 * 1024
"""Bytes of a longer body that go out at a time. The event loop copies what the network does not take at once, and
each write costs as much as 50 KB of it."""
KEPT = 60.0
"""Seconds for which an idle connection is used again. Gateways forget one without a word after some minutes."""


class HangUp(Exception):
    """The connection ended or broke."""


class Nonsense(Exception):
    """What came is not HTTP/1.1, or too long to be."""


@dataclass(frozen=True, slots=True)
class Head:
    """The head of an answer. Names are in lower case; a repeated header's values stand in one line."""

    status: int
    headers: Mapping[str, str]


class Connection:
    """A connection that stands.

    Attributes:
        is_kept: Whether it has served an exchange before.
        is_heard: Whether any byte of the present answer came.
        is_over: Whether the present answer has come to its end.
    """

    def __init__(self, stream: anyio.abc.ByteStream) -> None:
        self.is_kept = self.is_heard = self.is_over = False
        self._is_broken = self._has_ended = False
        self._stream = stream
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD)
        self._socket = stream.extra(anyio.abc.SocketAttribute.raw_socket)  # noqa: S610  anyio's extra, not Django's
        self._tls = stream.extra(TLSAttribute.ssl_object, None)  # noqa: S610
        self._idle_since = 0.0

    def pieces(self, head: h11.Request, segments: Segments) -> Iterator[bytes]:
        """Give a request as it goes out: long pieces in slices, which are not copied, and short ones joined."""
        begin = self._http.send(head)
        if segments.size <= SMALL:
            body = b"".join(segments)
            self._http.send(h11.Data(data=body))
            self._http.send(h11.EndOfMessage())
            yield begin + body
            return
        yield begin
        for joined in _joined(segments):
            view = memoryview(joined)
            for at in range(0, len(view), SLICE):
                data = cast(bytes, view[at : at + SLICE])  # streams take any buffer, and say bytes
                self._http.send_with_data_passthrough(h11.Data(data=data))
                yield data
        self._http.send(h11.EndOfMessage())

    async def write(self, piece: bytes) -> None:
        """Send a piece of a request.

        Raises:
            HangUp: The connection broke. An answer may be there all the same.
        """
        try:
            await self._stream.send(piece)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.BusyResourceError, OSError):
            self._is_broken = True
            raise HangUp("the connection broke while the request was sent") from None

    async def head(self) -> Head:
        """Read the head of the answer; what is only said on the way to it (1xx) is passed over.

        Raises:
            HangUp: The connection ended before its end.
            Nonsense: It is not an answer.
        """
        while type(event := self._event()) is not h11.Response:
            if event is h11.NEED_DATA:
                await self.receive()
        return Head(event.status_code, _headers(event.headers))

    def body(self) -> bytes:
        """Return what is there of the answer's body, all of it; nothing if more must come first.

        Raises:
            HangUp: The connection ended before its end.
            Nonsense: It is not a body.
        """
        parts: list[bytes] = []
        while type(event := self._event()) is h11.Data:
            parts.append(event.data)
        self.is_over = type(event) is h11.EndOfMessage
        return b"".join(parts)

    async def receive(self) -> None:
        """Wait for more of the answer.

        Raises:
            HangUp: The connection ended without any of it, or broke.
        """
        try:
            data = await self._stream.receive()
        except anyio.EndOfStream:
            if not self.is_heard:
                raise HangUp("the server closed the connection without an answer") from None
            data, self._has_ended = b"", True
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.BusyResourceError, OSError):
            raise HangUp("the connection broke") from None
        else:
            self.is_heard = True
        self._http.receive_data(data)
        await turnstile().enter()  # many answers may arrive at once, and reading them takes time

    def rests(self) -> bool:
        """Make ready for another exchange; say whether there can be one."""
        http = self._http
        if http.our_state is not h11.DONE or http.their_state is not h11.DONE:
            return False
        if self._is_broken or http.trailing_data != (b"", False) or (self._tls and _has_more(self._tls)):
            return False
        http.start_next_cycle()
        self.is_kept, self.is_heard, self.is_over, self._idle_since = True, False, False, monotonic()
        return True

    def has_expired(self) -> bool:
        """Say whether it has rested for too long to be trusted."""
        return monotonic() - self._idle_since > KEPT

    def is_alive(self) -> bool:
        """Say whether it can be used again: nothing came while it rested, neither an end nor anything unasked."""
        return not self.has_expired() and not _readable(self._socket)

    async def close(self) -> None:
        """Close it, even if the caller is cancelled meanwhile."""
        with anyio.CancelScope(shield=True):
            await self._stream.aclose()

    def _event(self) -> object:
        try:
            return self._http.next_event()
        except h11.RemoteProtocolError as error:
            if self._has_ended:
                raise HangUp("the connection ended before the answer did") from None
            raise Nonsense(_reason(error)) from None


def _headers(raw: Iterable[tuple[bytes, bytes]]) -> Mapping[str, str]:
    headers: dict[str, str] = {}
    for name, value in raw:
        key, text = name.decode("ascii"), value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers


def _joined(segments: Segments) -> Iterator[bytes]:
    """Give segments in few pieces, of half a `SLICE` on average: summing each size costs as much as joining."""
    many = max(1, SLICE // 2 * len(segments) // segments.size)
    left = iter(segments)
    for _ in range(0, len(segments), many):
        yield b"".join(islice(left, many))  # one alone is not copied


def _reason(error: h11.RemoteProtocolError) -> str:
    """Return what h11 says, without what it quotes: a server may repeat a credential."""
    return f"what came is not HTTP: {str(error).partition(':')[0][:120]}"


def _has_more(tls: ssl.SSLObject) -> bool:
    """Say whether something follows the answer, which is not to be taken for the next one."""
    try:
        tls.read(1)
    except ssl.SSLWantReadError:
        return False
    except ssl.SSLError:
        pass
    return True


def _readable(raw: socket.socket) -> bool:
    if raw.fileno() < 0:
        return True
    if not hasattr(select, "poll"):  # Windows, where a descriptor may have any number
        return bool(select.select([raw], [], [], 0)[0])
    poll = select.poll()
    poll.register(raw, select.POLLIN)
    return bool(poll.poll(0))
