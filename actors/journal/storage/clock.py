"""How far a journal trusts the wall clock when it tells the age of a session.

Only the wall clock survives a restart, and it may be wrong. While a process runs, it is compared with a clock that
nobody can set: as far as both advance alike, its time is *observed*. All other time by which it is ahead is a *gap*:
nobody ran, or the clock was set. A gap counts as time that has passed after 24 hours of observed time, summed over
restarts. Until then the trusted time is behind the clock by the gap.

So a clock that jumps ahead makes no session older for a day in which somebody can look, and the ages told by a host
that restarts every day are too low by the gaps of the last 24 observed hours, and no more.
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
    """Time by which the clock advanced unobserved.

    Args:
        found: The observed seconds of the journal when it was found.
        seconds: How long it is.
    """

    found: int
    seconds: int


class ObservedClock(NamedTuple):
    """What a journal notes of the wall clock.

    Args:
        last: Its newest reading, in seconds since 1970.
        observed: Seconds of observed time, summed over all processes that have used the journal.
        gaps: Those that do not count yet, oldest first: one for each observed hour at most.
    """

    last: int
    observed: int
    gaps: tuple[UnobservedTime, ...] = ()

    @property
    def trusted(self) -> int:
        """Seconds since 1970 that have certainly passed."""
        return self.last - sum(gap.seconds for gap in self.gaps)

    @property
    def doubt(self) -> int:
        """Seconds of observed time until every gap counts; 0 if there is none."""
        return self.gaps[-1].found + STEADY - self.observed if self.gaps else 0


def observe(before: ObservedClock | None, now: int, elapsed: int) -> ObservedClock:
    """Return what is noted at a reading.

    Args:
        before: What was noted before; None at the first reading, where all time until then is a gap.
        now: The reading.
        elapsed: Seconds since this process read the clock before; 0 if it did not.
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
    """Return it as numbers by name, as a storage keeps them; each name begins with `clock`."""
    gaps = {f"clock_gap_{gap.found}": gap.seconds for gap in clock.gaps}
    return {"clock": clock.last, "clock_observed": clock.observed, "clock_gaps": len(gaps), **gaps}


def clock_of(values: dict[str, int]) -> ObservedClock | None:
    """Return what these numbers mean; None if there are none, or one is missing."""
    gaps = sorted(
        UnobservedTime(int(name.removeprefix("clock_gap_")), seconds)
        for name, seconds in values.items()
        if name.startswith("clock_gap_")
    )
    if not {"clock", "clock_observed", "clock_gaps"} <= values.keys() or values["clock_gaps"] != len(gaps):
        return None
    return ObservedClock(values["clock"], values["clock_observed"], tuple(gaps))
