"""Let the writers of a journal go first while clients read or export long logs.

The journal actor counts the writes that it has not answered. A client of a long log calls `pause` after each slice of
its work, and reads shorter pages while a write is pending.

All threads share one interpreter lock. SQLite releases the lock at each call, so a commit needs it about 20 times, and
each time a client that computes may keep it: for a slice on the event loop, or for most of a page in the thread that
reads. Turns between readers and writers are not enough, because a commit would lose most of those races. So readers
stop until nothing is pending. `PATIENCE` bounds each stop, so that a journal that is always written can still be read.
"""

from actors.kernel.event_loop import Changes, event_loop
from actors.kernel.turnstile import turnstile

SLICE = 16
"""Events that a client handles between two pauses: about 0.3 ms of an export."""
SLICE_BYTES = 16 * 1024
"""Bytes of an exported file between two pauses; a single line may be longer."""
PATIENCE = 0.002
"""Seconds that a pause may last: three to four times as long as a commit on a fast disk takes."""


class ReadThrottle:
    """Slows down the readers of one journal while writes are pending."""

    __slots__ = ("_answered", "_changes", "pending")

    def __init__(self) -> None:
        self._changes: Changes | None = None
        self._answered = 0
        self.pending: int = 0
        """Writes that were sent to the journal actor and are not answered."""

    def begin_write(self) -> None:
        """Count a write."""
        self.pending += 1

    def end_writes(self, count: int) -> None:
        """Stop counting writes that are answered, and resume the readers after the last one."""
        self.pending -= count
        self._answered += count
        if not self.pending and self._changes is not None:
            self._changes.notify()

    def page_size(self, most: int) -> int:
        """Return how many events to read at once, where `most` are wanted.

        With many pending writes a commit takes longer anyway, and so may a page.
        """
        return min(most, SLICE + self.pending) if self.pending else most

    async def pause(self) -> None:
        """Return when the event loop has come round and no write is pending, but after `PATIENCE` in any case."""
        answered = self._answered
        await turnstile().yield_turn()
        if self._is_idle_since(answered):
            return
        here = event_loop()
        changes = self._changes = self._changes or Changes(here)
        with here.scope(deadline=here.now() + PATIENCE):
            while not self._is_idle_since(answered):
                await changes.wait_until(lambda: not self.pending)
                answered = self._answered
                await turnstile().yield_turn()

    def _is_idle_since(self, answered: int) -> bool:
        """Return whether no write is pending, or was answered since then: its writer may send the next one now."""
        return not self.pending and self._answered == answered
