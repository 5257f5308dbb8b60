"""Define the interface of a transport, which sends requests in segments and returns status, headers and chunks.

Provider actors depend on this interface, which contains no types of other libraries. `HttpTransport` and the tests'
fakes implement it. The URL of a request names an origin and a path; requests to the same origin share connections.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import lru_cache
from typing import Protocol

from msgspec import Struct

from actors.core.data.persistent import Segments
from actors.errors import ConfigError

PORTS = {"http": 80, "https": 443}


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
    """A request that is forwarded for another client. Entering the context sends the request and returns the response.

    The context can be entered only once.
    """

    @property
    def is_sent(self) -> bool:
        """True if part of the request was written to a connection, so that the server may have acted on the request."""
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


class Origin(Struct, frozen=True):
    """A server's address, with scheme, host and port. An IPv6 address has no brackets."""

    scheme: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        """Host and port, as in a CONNECT request."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def host_header(self) -> str:
        """Host and port for the Host header and for AWS signatures. The scheme's default port is omitted."""
        default = PORTS[self.scheme] == self.port
        return self.authority.removesuffix(f":{self.port}") if default else self.authority


class Target(Struct, frozen=True):
    """A parsed URL of a request.

    Args:
        origin: The server's address.
        path: Path and query, for the request line.
        display_url: The URL without its query, for error messages. The query may contain a key.
    """

    origin: Origin
    path: str
    display_url: str


MAX_LABEL = 63
"""Maximum number of characters of a label, a part of a host name between dots."""


def is_host_name(host: str) -> bool:
    """Return True if the DNS accepts this name. A name with non-ASCII characters must be in its ASCII form (`xn--`)."""
    return bool(host) and host.isascii() and all(len(label) <= MAX_LABEL for label in host.split("."))


@lru_cache(256)
def parse_target(url: str) -> Target:
    """Parse and check the URL of a request.

    Raises:
        ConfigError: The URL is not http or https, contains a user or a password, or is invalid.
    """
    from urllib.parse import urlsplit  # imported lazily, because the import is slow

    if not url.isascii() or not url.isprintable() or " " in url:
        raise ConfigError("A provider's URL must consist of printable ASCII characters, without spaces")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # for example, a port out of range or an unclosed bracket
        raise ConfigError("A provider's URL is invalid; write it as https://host:port/path") from None
    if parts.scheme not in PORTS or not parts.hostname or port == 0 or "@" in parts.netloc:
        raise ConfigError("A provider's URL must have the form https://host/path, without user and password")
    if not is_host_name(parts.hostname):
        raise ConfigError(
            f"The host name in a provider's URL has a label of more than {MAX_LABEL} characters; correct the URL"
        )
    origin = Origin(parts.scheme, parts.hostname, port or PORTS[parts.scheme])
    path = parts.path or "/"
    display_url = f"{origin.scheme}://{origin.host_header}{path}"
    return Target(origin, f"{path}?{parts.query}" if parts.query else path, display_url)
