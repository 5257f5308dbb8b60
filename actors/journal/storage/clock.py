"""Decide how far a journal trusts the wall clock when it reports the age of a session.

Storages use it. Only the wall clock survives a restart, and it may be wrong. While a process runs, it is compared
with a monotonic clock: as far as both advance alike, its time is *observed*. Any further advance is a *gap*: no
process was running, or the clock was set. A gap counts as elapsed time after 24 hours of observed time, summed over
restarts. Until then, the trusted time is behind the clock by the gap.

So a clock that jumps ahead makes no session older for a day, in which an operator can react; and on a host that
restarts every day, ages are too low by at most the gaps of the last 24 observed hours.
"""

from typing import NamedTuple

LEAP = 31 * 86_400
"""Seconds by which the clock may be ahead of the last use of a journal, for a command that names an age."""
SLACK = 300
"""Seconds by which the clocks of several hosts may differ, and by which the clock may be set without a doubt."""
STEADY = 86_400
"""Seconds of observed time after which a gap counts."""
_HOUR = 3600


class UnobservedTime(NamedTuple):
    """An unobserved advance of the clock.

    Args:
        found: The journal's observed seconds when the gap was found.
        seconds: Length of the gap.
    """

    found: int
    seconds: int


class ObservedClock(NamedTuple):
    """A journal's record of the wall clock.

    Args:
        last: The latest reading, in seconds since 1970.
        observed: Seconds of observed time, summed over all processes that have used the journal.
        gaps: Gaps that do not count yet, oldest first; at most one per observed hour.
    """

    last: int
    observed: int
    gaps: tuple[UnobservedTime, ...] = ()

    @property
    def earliest_now(self) -> int:
        """Seconds since 1970 that have certainly passed."""
        return self.last - sum(gap.seconds for gap in self.gaps)

    @property
    def seconds_of_doubt(self) -> int:
        """Seconds of observed time until every gap counts; 0 without gaps."""
        return self.gaps[-1].found + STEADY - self.observed if self.gaps else 0


def observe(before: ObservedClock | None, now: int, elapsed: int) -> ObservedClock:
    """Return the updated record after a reading.

    Args:
        before: The previous record; None at the first reading, when all earlier time is a gap.
        now: The reading.
        elapsed: Seconds since this process read the clock before; 0 at its first reading.
    """
    if before is None:
        return ObservedClock(now, 0, (UnobservedTime(0, now),))
    step = now - before.last
    observed = before.observed + max(0, min(step, elapsed))
    gaps = [gap for gap in before.gaps if observed - gap.found < STEADY]
    if step > elapsed + SLACK:
        seconds = step - elapsed
        if gaps and gaps[-1].found // _HOUR == observed // _HOUR:
            seconds += gaps.pop().seconds
        gaps.append(UnobservedTime(observed, seconds))
    return ObservedClock(now, observed, tuple(gaps))


def clock_values(clock: ObservedClock) -> dict[str, int]:
    """Return the record as numbers by name, as a storage stores it; each name begins with `clock`."""
    gaps = {f"clock_gap_{gap.found}": gap.seconds for gap in clock.gaps}
    return {"clock": clock.last, "clock_observed": clock.observed, "clock_gaps": len(gaps), **gaps}


def clock_of(values: dict[str, int]) -> ObservedClock | None:
    """Return the record in these numbers; None if there are none, or one is missing."""
    gaps = sorted(
        UnobservedTime(int(name.removeprefix("clock_gap_")), seconds)
        for name, seconds in values.items()
        if name.startswith("clock_gap_")
    )
    if not {"clock", "clock_observed", "clock_gaps"} <= values.keys() or values["clock_gaps"] != len(gaps):
        return None
    return ObservedClock(values["clock"], values["clock_observed"], tuple(gaps))
