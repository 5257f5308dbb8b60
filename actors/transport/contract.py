"""Define the interface of a transport, which sends requests in segments and returns status, headers and chunks.

Provider actors depend on this interface, which contains no types of other libraries. `HttpTransport` and the tests'
fakes implement it.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from msgspec import Struct

from actors.core.data.segments import Segments


class Timeouts(Struct, frozen=True):
    """Timeouts of one exchange, in seconds.

    Args:
        connect: For opening a connection: name resolution, TCP, proxy and TLS.
        first_byte: From the last byte of the request to the head of the response.
        idle: Between two chunks.
        total: For the complete exchange. `None` means no limit.
        write: For the network to accept one piece of the request.
        pool: For getting a free connection, or permission to open one.
    """

    connect: float = 10.0
    first_byte: float = 120.0
    idle: float = 60.0
    total: float | None = None
    write: float = 30.0
    pool: float = 30.0


class Response(Protocol):
    """A response whose status and headers have arrived.

    Attributes:
        status: The HTTP status.
        headers: The headers by lower-case name.
    """

    status: int
    headers: Mapping[str, str]

    def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it arrives, split at arbitrary positions.

        Raises:
            ProviderFailed: The connection broke or stalled, or the body is compressed.
        """
        ...


class ForwardedResponse(Protocol):
    """The response to a request that was forwarded for another client.

    Attributes:
        status: The HTTP status.
        raw_headers: The headers in the order of the response, with names in lower case.
    """

    status: int
    raw_headers: Sequence[tuple[bytes, bytes]]

    def raw_chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it arrives, split at arbitrary positions. A compressed body stays compressed.

        Raises:
            ProviderFailed: The connection broke or stalled.
        """
        ...


class ForwardedRequest(AbstractAsyncContextManager[ForwardedResponse], Protocol):
    """A request that is forwarded for another client. Enter it once, to send it and to get the response."""

    @property
    def is_sent(self) -> bool:
        """True if a part of the request was written to a connection, so that the server may have acted on it."""
        ...


class Transport(Protocol):
    """The interface for sending requests to providers."""

    def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AbstractAsyncContextManager[Response]:
        """POST the segments as one JSON body and yield the response.

        Exiting the context before the end of the body closes the connection.

        Raises:
            ProviderFailed: No connection could be opened, or the connection broke before the status and headers
                arrived.
            ConfigError: The URL, a header, or the proxy in the environment is invalid.
        """
        ...

    async def close(self) -> None:
        """Close every idle connection now, and each connection in use when its exchange ends."""
