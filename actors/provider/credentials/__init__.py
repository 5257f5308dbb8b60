"""Credentials: the headers and the query that authenticate a request, made for each request and never logged.

A key is looked up each time, so that a rotated key takes effect at once. A token comes from a program, is used until
shortly before it expires, and is renewed when the provider refuses it. A signature depends on the request. Some hosts
take a key in the query of the base URL, so the query is kept out of error messages too.
"""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from msgspec import Struct

from actors.core.data.segments import Segments

Headers: TypeAlias = tuple[tuple[str, str], ...]


class Outgoing(Struct, frozen=True):
    """A request that is about to be sent, for credentials that sign it."""

    url: str
    segments: Segments


class Credentials(Protocol):
    """Makes the headers that carry a credential."""

    async def headers(self, outgoing: Outgoing) -> Headers:
        """Return the headers for one request.

        Raises:
            ConfigError: There is no credential any more.
            CredentialFailed: It cannot be obtained now.
        """

    def refused(self, sent: Headers) -> bool:
        """Note that the provider refused what was sent; say whether asking again may give another."""


__all__ = ["Credentials", "Headers", "Keys", "Outgoing", "query_secrets", "with_query"]


class Keys:
    """Headers that are looked up for each request.

    Args:
        look: Returns them. Raises ConfigError if the key is gone.
    """

    def __init__(self, look: Callable[[], Headers] = tuple) -> None:
        self._look = look

    async def headers(self, outgoing: Outgoing) -> Headers:
        """Return the headers as they are now."""
        return self._look()

    def refused(self, sent: Headers) -> bool:
        """Return False: the same key would be sent again."""
        return False


_VERSIONS = frozenset({"api-version", "api_version"})
"""Parameters whose values may be shown: a host names the version that it does not know."""


def with_query(url: str, query: str) -> str:
    """Return a URL with a query appended; the URL may have one already, as Gemini's `?alt=sse`."""
    if not query:
        return url
    return f"{url}{'&' if '?' in url else '?'}{query}"


def query_secrets(query: str) -> Headers:
    """Return the parameters of a query that may be secrets, by name: as they are sent, and decoded."""
    if not query:
        return ()
    from urllib.parse import unquote_plus  # few base URLs have a query

    pairs = [(name, value) for name, _, value in (part.partition("=") for part in query.split("&"))]
    hidden = [(name, value) for name, value in pairs if name.lower() not in _VERSIONS]
    return (*hidden, *((name, unquote_plus(value)) for name, value in hidden))
