"""Counts how often a session that is used again is still in memory, and notices a host that thrashes.

A host thrashes if many uses have to make a session of its log again, because its memory is too small for the sessions
that take turns in it. That is one use of five or more: who asks a session may look at its history too.
"""

from collections.abc import Callable

from msgspec import Struct

from actors.core.stats.stats import ReuseStats

REBUILDS, HITS = 64, 4
"""Rebuilds after which it is seen whether there were so many hits for each."""


class Reuse(Struct):
    """Uses of sessions that had been used before.

    Args:
        on_thrash: Called with the counts, once, when the host thrashes.
        hits: Uses of sessions that were in memory.
        rebuilds: Uses for which a session was made of its log, since what was made of it before had been dropped.
        dropped: How often that was dropped, for want of memory.
    """

    on_thrash: Callable[[ReuseStats], object]
    hits: int = 0
    rebuilds: int = 0
    dropped: int = 0
    _hits_before: int = 0
    _is_noted: bool = False

    def rebuild(self) -> None:
        """Count a rebuild. After some, see whether there were few hits."""
        self.rebuilds += 1
        if self._is_noted or self.rebuilds % REBUILDS:
            return
        if self.hits - self._hits_before < HITS * REBUILDS:
            self._is_noted = True
            self.on_thrash(self.stats)
        self._hits_before = self.hits

    @property
    def stats(self) -> ReuseStats:
        """The counts so far."""
        return ReuseStats(self.hits, self.rebuilds, self.dropped)
