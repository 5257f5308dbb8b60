"""Create the headers and the query that authenticate a request. Both are created for each request, and never logged.

A key is looked up for each request, so that a rotated key takes effect at once. A token, which a program prints, is
used until shortly before it expires, and is renewed if the provider rejects it. A signature depends on the request.
Some hosts accept a key in the query of the base URL, so error messages do not contain the query.
"""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from msgspec import Struct

from actors.core.data.persistent import Segments

__all__ = ["Credentials", "Headers", "Keys", "OutgoingRequest", "query_secrets", "with_query"]

Headers: TypeAlias = tuple[tuple[str, str], ...]


class OutgoingRequest(Struct, frozen=True):
    """The parts of an outgoing request that are needed to sign it."""

    url: str
    segments: Segments


class Credentials(Protocol):
    """The source of the auth headers for requests to one backend."""

    async def headers(self, outgoing: OutgoingRequest) -> Headers:
        """Return the headers that authenticate one request.

        Raises:
            ConfigError: The credential is no longer configured.
            CredentialFailed: The credential cannot be obtained now.
        """
        ...

    def record_rejection(self, sent: Headers) -> bool:
        """Record that the provider rejected the headers `sent`. Return True if a retry would send different headers."""
        ...


class Keys:
    """Credentials whose headers are looked up for each request, such as an API key.

    Args:
        look_up: Returns the headers. Raises `ConfigError` if the key is no longer configured.
    """

    def __init__(self, look_up: Callable[[], Headers] = tuple) -> None:
        self._look_up = look_up

    async def headers(self, outgoing: OutgoingRequest) -> Headers:
        """Return the headers with the current key."""
        return self._look_up()

    def record_rejection(self, sent: Headers) -> bool:
        """Return False, because a retry would use the same key."""
        return False


_VERSIONS = frozenset({"api-version", "api_version"})
"""Query parameters whose values are not secret, so that error messages may contain them."""


def with_query(url: str, query: str) -> str:
    """Return `url` with `query` appended. The URL may already have a query, such as `?alt=sse`."""
    if not query:
        return url
    return f"{url}{'&' if '?' in url else '?'}{query}"


def query_secrets(query: str) -> Headers:
    """Return the query parameters that may be secret, as (name, value) pairs. Each value is listed twice: encoded and
    decoded.
    """
    if not query:
        return ()
    from urllib.parse import unquote_plus  # imported lazily, because few base URLs have a query

    pairs = [(name, value) for name, _, value in (part.partition("=") for part in query.split("&"))]
    hidden = [(name, value) for name, value in pairs if name.lower() not in _VERSIONS]
    return (*hidden, *((name, unquote_plus(value)) for name, value in hidden))
