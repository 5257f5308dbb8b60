"""Where a request goes: an origin, whose connections are shared, and the target at it."""

from functools import lru_cache

from msgspec import Struct

from actors.errors import ConfigError

PORTS = {"http": 80, "https": 443}


class Origin(Struct, frozen=True):
    """A scheme, a host (an IPv6 address without brackets) and a port."""

    scheme: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        """Host and port, as CONNECT takes them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def host_header(self) -> str:
        """The same without the scheme's own port, as the Host header is written and AWS signs it."""
        default = PORTS[self.scheme] == self.port
        return self.authority.removesuffix(f":{self.port}") if default else self.authority


class Target(Struct, frozen=True):
    """A URL taken apart.

    Args:
        path: Path and query, as they go into the request line.
        display_url: The URL for errors: without its query, which may hold a key.
    """

    origin: Origin
    path: str
    display_url: str


@lru_cache(256)
def target(url: str) -> Target:
    """Take a URL apart.

    Raises:
        ConfigError: It is not an http or https URL, or it holds a user or a password.
    """
    from urllib.parse import urlsplit  # what it needs takes a while to import

    if not url.isascii() or not url.isprintable() or " " in url:
        raise ConfigError("A URL that requests go to takes printable ASCII characters, without spaces")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # a port out of range, an unclosed bracket
        raise ConfigError(
            "A URL that requests go to cannot be read; it is written https://host:port/path"
        ) from None
    if parts.scheme not in PORTS or not parts.hostname or port == 0 or "@" in parts.netloc:
        raise ConfigError("A URL that requests go to is written https://host/path, without user and password")
    if any(len(label) > 63 for label in parts.hostname.split(".")):
        raise ConfigError(
            "A URL that requests go to names a host of which a part is longer than 63 characters"
        )
    origin = Origin(parts.scheme, parts.hostname, port or PORTS[parts.scheme])
    path = parts.path or "/"
    display_url = f"{origin.scheme}://{origin.host_header}{path}"
    return Target(origin, f"{path}?{parts.query}" if parts.query else path, display_url)
