"""Places: where the sessions of a runtime begin in the pools that spread them."""

from random import Random

FAR = 1 << 16
"""Places from which the first of a process is drawn."""


class PoolPlaces:
    """Where sessions begin in pools that spread them: each one place behind the session before it. One for a runtime.

    The first begins at a place drawn by chance, so that processes that host one session each are spread too; with
    `is_seeded`, at the first.
    """

    def __init__(self, random: Random, *, is_seeded: bool) -> None:
        self._random, self._is_seeded = random, is_seeded
        self._next: dict[str, int] = {}

    def take(self, pool: str) -> int:
        """Return the place of the next session."""
        place = self._next.get(pool)
        if place is None:
            place = 0 if self._is_seeded else self._random.randrange(FAR)
        self._next[pool] = place + 1
        return place
