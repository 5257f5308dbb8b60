"""Credentials: the headers that authenticate a request, made for each one and never logged.

A key is looked up each time, so that a rotated one is used at once. A token comes from a program, is used until
shortly before it expires, and is asked for anew when the provider refuses it. A signature depends on the request.
"""

from collections.abc import Callable

from actors.provider.credentials.outgoing import Credentials, Headers, Outgoing
from actors.provider.credentials.queries import query_secrets, with_query

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
