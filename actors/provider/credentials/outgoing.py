"""What credentials are made for, and what makes them."""

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
