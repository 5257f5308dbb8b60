"""Manage the bearer tokens that a strict server accepts instead of a key, and their expiry."""

import time
from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

State: TypeAlias = Literal["valid", "expired", "unknown"]


class OAuth:
    """The bearer tokens that a strict server accepts instead of a key.

    Args:
        tokens: Lifetime of each token in seconds; a token with None never expires. `grant` adds tokens.
        project: Required value of the header `x-goog-user-project` on Google's host; None requires no project.
        clock: Returns the time in seconds.

    `refusals` counts the requests whose credentials were refused.
    """

    def __init__(
        self,
        tokens: Mapping[str, float | None],
        *,
        project: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.clock = clock
        self.project = project
        self.refusals = 0
        self._expires: dict[str, float | None] = {}
        for token, seconds in tokens.items():
            self.grant(token, seconds)

    def grant(self, token: str, seconds: float | None = None) -> None:
        """Accept a token for the next `seconds` seconds. With None, the token never expires."""
        self._expires[token] = None if seconds is None else self.clock() + seconds

    def expire(self, token: str) -> None:
        """Make a token expire now."""
        self._expires[token] = self.clock()

    def state(self, token: str) -> State:
        """Return the state of a token: valid, expired or unknown."""
        if token not in self._expires:
            return "unknown"
        expires = self._expires[token]
        return "valid" if expires is None or self.clock() < expires else "expired"
