"""The query of a base URL: appended to each request, and kept out of errors, since some hosts take a key there."""

from actors.provider.credentials.outgoing import Headers

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
