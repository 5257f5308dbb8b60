"""Delay clients that read or export long logs while writes to the journal are pending.

The journal actor counts the writes that it has not answered yet. A client that processes a long log calls `pause` after
each slice of its work, and requests shorter pages while a write is pending.

Alternating reads and writes would not be enough, because all threads share one interpreter lock. SQLite releases the
lock at each call, so a commit must acquire it about 20 times. Each time, a client may hold the lock for a slice of work
on the event loop, or for most of a page in the reading thread. A commit would usually have to wait for the lock, so
clients stop until no write is pending. `MAX_PAUSE` limits each pause, so that a journal with constant writes can still
be read.
"""

from actors.kernel.event_loop import Changes, event_loop
from actors.kernel.turnstile import turnstile

SLICE = 16
"""Number of events that a client processes between two pauses. An export takes about 0.3 ms for them."""
SLICE_BYTES = 16 * 1024
"""Bytes that an export writes between two pauses; a single longer line is written at once."""
MAX_PAUSE = 0.002
"""Maximum length of a pause in seconds: three to four times as long as a commit on a fast disk."""


class ReadThrottle:
    """Counts pending writes, and delays the clients of one journal while there are any."""

    __slots__ = ("_answered", "_changes", "pending")

    def __init__(self) -> None:
        self._changes: Changes | None = None
        self._answered = 0
        self.pending: int = 0
        """Number of writes that the journal actor has received and not answered."""

    def begin_write(self) -> None:
        """Count one more pending write."""
        self.pending += 1

    def end_writes(self, count: int) -> None:
        """Subtract `count` answered writes. If no write is pending any more, resume the paused clients."""
        self.pending -= count
        self._answered += count
        if not self.pending and self._changes is not None:
            self._changes.notify()

    def page_size(self, most: int) -> int:
        """Return how many events a client should read at once: `most`, or fewer while writes are pending.

        The more writes are pending, the longer the page. A commit of many writes takes long in any case, so a longer
        page adds little delay.
        """
        return min(most, SLICE + self.pending) if self.pending else most

    async def pause(self) -> None:
        """Let other tasks run, then wait until no write is pending, for at most `MAX_PAUSE` seconds."""
        answered = self._answered
        await turnstile().yield_turn()
        if self._is_idle_since(answered):
            return
        here = event_loop()
        changes = self._changes = self._changes or Changes(here)
        with here.scope(deadline=here.now() + MAX_PAUSE):
            while not self._is_idle_since(answered):
                await changes.wait_until(lambda: not self.pending)
                answered = self._answered
                await turnstile().yield_turn()

    def _is_idle_since(self, answered: int) -> bool:
        """Return True if no write is pending and the count of answered writes is still `answered`.

        If the count has increased, the writer may be about to send its next write, so the client should wait once more.
        """
        return not self.pending and self._answered == answered
