"""Bearer tokens in place of a key: which an account has been given, and until when."""

import time
from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

State: TypeAlias = Literal["valid", "expired", "unknown"]


class OAuth:
    """The tokens of an account that is reached without a key.

    Args:
        tokens: Seconds for which each is good; None is for ever. More are given out by `grant`.
        project: What the header `x-goog-user-project` must name, on Google's host; None asks for none.
        clock: Gives the time in seconds.

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
        """Let a token in from now on, for so many seconds."""
        self._expires[token] = None if seconds is None else self.clock() + seconds

    def expire(self, token: str) -> None:
        """Let a token expire now."""
        self._expires[token] = self.clock()

    def state(self, token: str) -> State:
        """Say what a token is worth now."""
        if token not in self._expires:
            return "unknown"
        expires = self._expires[token]
        return "valid" if expires is None or self.clock() < expires else "expired"
