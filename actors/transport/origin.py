"""Parse the URL of a request into an origin and a path. Requests to the same origin share connections."""

from functools import lru_cache

from msgspec import Struct

from actors.errors import ConfigError

PORTS = {"http": 80, "https": 443}


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
        display_url: The URL for error messages. It lacks the query, which may contain a key.
    """

    origin: Origin
    path: str
    display_url: str


@lru_cache(256)
def parse_target(url: str) -> Target:
    """Parse and check the URL of a request.

    Raises:
        ConfigError: The URL is not http or https, contains a user or a password, or is invalid.
    """
    from urllib.parse import urlsplit  # imported late, because the import is slow

    if not url.isascii() or not url.isprintable() or " " in url:
        raise ConfigError("A provider's URL must consist of printable ASCII characters, without spaces")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # for example, a port out of range or an unclosed bracket
        raise ConfigError("A provider's URL is invalid; write it as https://host:port/path") from None
    if parts.scheme not in PORTS or not parts.hostname or port == 0 or "@" in parts.netloc:
        raise ConfigError("A provider's URL must have the form https://host/path, without user and password")
    if any(len(label) > 63 for label in parts.hostname.split(".")):
        raise ConfigError(
            "The host name in a provider's URL has a label of more than 63 characters; correct the URL"
        )
    origin = Origin(parts.scheme, parts.hostname, port or PORTS[parts.scheme])
    path = parts.path or "/"
    display_url = f"{origin.scheme}://{origin.host_header}{path}"
    return Target(origin, f"{path}?{parts.query}" if parts.query else path, display_url)
