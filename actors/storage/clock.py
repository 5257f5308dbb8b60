"""What a journal has seen of the wall clock, so that one that jumps is not believed.

Ages of sessions are told by that clock alone, for it is all that survives a restart. A journal notes each time it is
looked at. From one look to the next the clock goes on by no more than `LEAP`, and does not go back, or else it starts
again to be known: what it says counts once it has gone on evenly for a while.
"""

from typing import NamedTuple

LEAP = 31 * 86_400
"""Seconds that may lie between two looks: who opens a journal once a month can still have sessions expire."""
SLACK = 300
"""Seconds by which the clocks of several hosts may differ."""


class Seen(NamedTuple):
    """What was noted. Seconds since 1970.

    Args:
        last: When somebody looked last.
        since: Since when the clock has gone on evenly.
    """

    last: int
    since: int


def seen(before: Seen | None, now: int) -> Seen:
    """Return what is noted at a look at `now`."""
    is_even = before is not None and before.last - SLACK <= now <= before.last + LEAP
    return Seen(now, before.since if before is not None and is_even else now)
