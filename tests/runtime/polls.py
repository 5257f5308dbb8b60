"""Count the iterations of the event loop, and the calls between two iterations."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from actors.kernel.event_loop import event_loop


class Polls:
    """Counts calls between two iterations of the running event loop."""

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
        """Count one call."""
        self._noted[self._at] += 1

    @property
    def total(self) -> int:
        """The number of calls."""
        return self._noted.total()

    @property
    def most_at_once(self) -> int:
        """The largest number of calls between two iterations."""
        return max(self._noted.values())


@contextmanager
def counting_polls() -> Iterator[Polls]:
    """Count for the duration of the block, in which the event loop never sleeps."""
    polls = Polls()
    try:
        yield polls
    finally:
        polls.is_over = True
