"""Count how often a session is still in memory when it is used, and detect thrashing.

A host thrashes if at least one use in five must rebuild a session from its log, because memory is too small for the
sessions that are in use. The threshold is not higher, because a caller often uses a session several times in a row, for
example to read its history after an ask.
"""

from collections.abc import Callable

from msgspec import Struct

from actors.core.stats.stats import ReuseStats

REBUILDS, HITS = 64, 4
"""After every `REBUILDS` rebuilds, the host counts as thrashing if there were fewer than `HITS` hits per rebuild."""


class ReuseCounter(Struct):
    """Counts how often used sessions were in memory. The first use of each session does not count.

    Args:
        on_thrash: Called once, with the counts, when the host thrashes.
        hits: Number of uses for which the session was in memory.
        rebuilds: Number of uses for which the session was rebuilt from its log, because its state had been evicted.
        dropped: Number of evictions because memory was short.
    """

    on_thrash: Callable[[ReuseStats], object]
    hits: int = 0
    rebuilds: int = 0
    dropped: int = 0
    _hits_before: int = 0
    _is_thrash_reported: bool = False

    def count_rebuild(self) -> None:
        """Count a rebuild. After every `REBUILDS` rebuilds, check whether the host thrashes."""
        self.rebuilds += 1
        if self._is_thrash_reported or self.rebuilds % REBUILDS:
            return
        if self.hits - self._hits_before < HITS * REBUILDS:
            self._is_thrash_reported = True
            self.on_thrash(self.stats)
        self._hits_before = self.hits

    @property
    def stats(self) -> ReuseStats:
        """A copy of the counts, for `RuntimeStats`."""
        return ReuseStats(self.hits, self.rebuilds, self.dropped)
