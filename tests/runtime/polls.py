"""Counts how often the event loop comes round, and what happens between two times."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from actors.kernel.event_loop import event_loop


class Polls:
    """What is noted between two polls of the running event loop."""

    def __init__(self) -> None:
        self._next = event_loop().next
        self._at, self.is_over = 0, False
        self._noted = Counter[int]()
        self._come_round()

    def _come_round(self) -> None:
        self._at += 1
        if not self.is_over:
            self._next(self._come_round)

    def note(self) -> None:
        """Note that something happens now."""
        self._noted[self._at] += 1

    @property
    def noted(self) -> int:
        """How often something happened."""
        return self._noted.total()

    @property
    def most_at_once(self) -> int:
        """How often it did between two polls, at most."""
        return max(self._noted.values())


@contextmanager
def counting_polls() -> Iterator[Polls]:
    """Count polls for the time of the block; the event loop does not rest meanwhile."""
    polls = Polls()
    try:
        yield polls
    finally:
        polls.is_over = True
