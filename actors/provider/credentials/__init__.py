"""Create the headers and the query that authenticate a request, for each request anew; they are never logged.

A key is looked up each time, so that a rotated key takes effect at once. A token comes from a program, is used until
shortly before it expires, and is renewed when the provider rejects it. A signature depends on the request. Some hosts
accept a key in the query of the base URL, so the query is kept out of error messages too.
"""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from msgspec import Struct

from actors.core.data.segments import Segments

Headers: TypeAlias = tuple[tuple[str, str], ...]


class Outgoing(Struct, frozen=True):
    """A request about to be sent, for credentials that sign it."""

    url: str
    segments: Segments


class Credentials(Protocol):
    """Creates the headers that carry a credential."""

    async def headers(self, outgoing: Outgoing) -> Headers:
        """Return the headers for one request.

        Raises:
            ConfigError: The credential is no longer configured.
            CredentialFailed: The credential cannot be obtained now.
        """
        ...

    def record_rejection(self, sent: Headers) -> bool:
        """Record that the provider rejected these headers. Return True if new headers may differ."""
        ...


__all__ = ["Credentials", "Headers", "Keys", "Outgoing", "query_secrets", "with_query"]


class Keys:
    """Headers that are looked up for each request.

    Args:
        look: Returns the headers. Raises ConfigError if the key is gone.
    """

    def __init__(self, look: Callable[[], Headers] = tuple) -> None:
        self._look = look

    async def headers(self, outgoing: Outgoing) -> Headers:
        """Return the current headers."""
        return self._look()

    def record_rejection(self, sent: Headers) -> bool:
        """Return False: the same key would be sent again."""
        return False


_VERSIONS = frozenset({"api-version", "api_version"})
"""Parameters whose values are no secrets: errors may name an unknown API version."""


def with_query(url: str, query: str) -> str:
    """Return a URL with a query appended. The URL may already have one, such as Gemini's `?alt=sse`."""
    if not query:
        return url
    return f"{url}{'&' if '?' in url else '?'}{query}"


def query_secrets(query: str) -> Headers:
    """Return the possibly secret parameters of a query, by name, both encoded and decoded."""
    if not query:
        return ()
    from urllib.parse import unquote_plus  # few base URLs have a query

    pairs = [(name, value) for name, _, value in (part.partition("=") for part in query.split("&"))]
    hidden = [(name, value) for name, value in pairs if name.lower() not in _VERSIONS]
    return (*hidden, *((name, unquote_plus(value)) for name, value in hidden))
