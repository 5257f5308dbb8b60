"""What a transport is to the rest: segments out, status, headers and chunks back. No library's type is in it."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from msgspec import Struct

from actors.core.data.segments import Segments


class Timeouts(Struct, frozen=True):
    """Bounds of one exchange, in seconds.

    Args:
        connect: Until a connection stands: name, address, proxy and TLS.
        first_byte: From the request's last byte to the response's head.
        idle: Between any two chunks.
        total: For the whole exchange; None has no end of its own.
        write: Between two pieces of the request taken by the network.
        pool: Until a connection is free, or one may be made.
    """

    connect: float = 10.0
    first_byte: float = 120.0
    idle: float = 60.0
    total: float | None = None
    write: float = 30.0
    pool: float = 30.0


class Response(Protocol):
    """What a server answers: the head now, the body in chunks. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]

    def chunks(self) -> AsyncGenerator[bytes, None]:
        """Give the body as it arrives, cut anywhere.

        Raises:
            ProviderFailed: The connection broke or stalled, or the body is compressed.
        """


class Transport(Protocol):
    """How requests reach a provider."""

    def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AbstractAsyncContextManager[Response]:
        """POST the segments as one JSON body and give the response.

        Leaving the context before the body's end closes the connection.

        Raises:
            ProviderFailed: No connection, or it broke before the response's head.
            ConfigError: The URL, a header or the environment's proxy cannot be used.
        """

    async def close(self) -> None:
        """Close every connection; those in use are closed once their exchange is over."""
