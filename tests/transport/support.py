"""Servers that send exactly the bytes of a test over real sockets, and a client's view of them."""

import os
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import anyio.abc
import anyio.lowlevel
from anyio.streams.tls import TLSListener

from actors.core.data.persistent import Segments
from actors.transport import Response, Timeouts, Transport

BODY = b'{"model": "m", "messages": [{"role": "user", "content": "Hi."}]}'
GOOD = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 4\r\n\r\nYes."
SECRET = "sk-a-very-secret-key"
HEADERS = (("authorization", f"Bearer {SECRET}"),)
SOON = Timeouts(first_byte=0.3, idle=0.3, connect=5.0, write=0.3, pool=5.0)
"""Deadlines for servers that fall silent, in seconds."""
LEISURE = Timeouts()


@dataclass(eq=False)
class Peer:
    """A client, from the view of a server."""

    stream: anyio.abc.ByteStream
    number: int
    received: bytearray = field(default_factory=bytearray)
    _left: bytes = b""

    async def request(self) -> bytes | None:
        """Read one request, head and body; return None if the client has closed the connection."""
        read = self._left
        while (end := read.find(b"\r\n\r\n")) < 0:
            if (data := await self._some()) is None:
                return None
            read += data
        length = 0
        for line in read[:end].lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        parts, size = [read], len(read)
        while size < end + 4 + length:
            if (data := await self._some()) is None:
                return None
            parts.append(data)
            size += len(data)
        read = b"".join(parts)
        whole, self._left = read[: end + 4 + length], read[end + 4 + length :]
        return whole

    async def head(self) -> bytes:
        """Read until the head of a request has arrived, and nothing beyond the packet that completes it."""
        while b"\r\n\r\n" not in self.received:
            assert await self._some() is not None
        return bytes(self.received)

    async def _some(self) -> bytes | None:
        try:
            data = await self.stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return None
        self.received += data
        return data

    async def wait_closed(self) -> None:
        """Wait until the client has closed the connection."""
        while await self._some() is not None:
            pass

    async def say(self, data: bytes) -> None:
        """Send these bytes."""
        await self.stream.send(data)

    async def trickle(self, data: bytes) -> None:
        """Send these bytes one by one, each in a separate packet."""
        for byte in data:
            await self.stream.send(bytes([byte]))
            for _ in range(3):  # rounds of the loop in which the client reads the byte
                await anyio.lowlevel.checkpoint()

    async def drip(self, data: bytes) -> None:
        """Send these bytes repeatedly and slowly until the client closes the connection."""
        while True:
            await self.stream.send(data)
            await anyio.sleep(0.01)

    def reset(self) -> None:
        """Make the next close a reset."""
        raw: socket.socket = self.stream.extra(anyio.abc.SocketAttribute.raw_socket)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


Answering = Callable[[Peer], Awaitable[None]]


@dataclass(eq=False)
class Raw:
    """A server of raw bytes.

    Attributes:
        peers: Its clients, in order of arrival.
        now, most: The number of connected clients, and its maximum.
    """

    port: int
    scheme: str = "http"
    peers: list[Peer] = field(default_factory=list)
    now: int = 0
    most: int = 0

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/v1/chat"

    def url_for_host(self, host: str) -> str:
        """Return the server's URL with another host name."""
        return self.url.replace("127.0.0.1", host)


@asynccontextmanager
async def raw(answer: Answering, tls: object = None) -> AsyncIterator[Raw]:
    """Run a server that handles each connection with `answer`, inside TLS if a context is given."""
    listener: anyio.abc.Listener[anyio.abc.ByteStream]
    tcp = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0, backlog=1024)
    server = Raw(tcp.extra(anyio.abc.SocketAttribute.local_port))
    listener = tcp
    if tls is not None:
        server.scheme = "https"
        listener = TLSListener(tcp, tls, standard_compatible=False)  # type: ignore[arg-type]

    async def handle(stream: anyio.abc.ByteStream) -> None:
        peer = Peer(stream, len(server.peers))
        server.peers.append(peer)
        server.now += 1
        server.most = max(server.most, server.now)
        try:
            async with stream:
                await answer(peer)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, OSError):
            pass  # the client left
        finally:
            server.now -= 1

    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, handle)
        try:
            yield server
        finally:
            tasks.cancel_scope.cancel()


async def answer_correctly(peer: Peer) -> None:
    """Answer every request correctly."""
    while await peer.request() is not None:
        await peer.say(GOOD)


@dataclass(frozen=True)
class Fetched:
    status: int
    headers: dict[str, str]
    body: bytes


async def fetch(
    transport: Transport,
    url: str,
    timeouts: Timeouts = LEISURE,
    segments: Sequence[bytes] = (BODY,),
    headers: Sequence[tuple[str, str]] = HEADERS,
) -> Fetched:
    """Send one request and read its complete answer."""
    with anyio.fail_after(60):
        async with transport.send(url, headers, Segments.of(*segments), timeouts) as response:
            return Fetched(response.status, dict(response.headers), await read_body(response))


async def read_body(response: Response) -> bytes:
    """Read the complete body."""
    return b"".join([chunk async for chunk in response.chunks()])


def descriptors() -> int:
    """Return the number of files and sockets that this process has open."""
    return len(os.listdir("/proc/self/fd"))
