"""Decide how far a journal trusts the wall clock when it computes the age of a session.

Storages use this module. Only the wall clock survives a restart, and it may be wrong. While a process runs, its wall
clock is compared with a monotonic clock. Time by which both clocks advance is *observed*. Any further advance of the
wall clock is a *gap*: either no process was running, or the clock was set. At first, ages do not include the gap. A gap
counts as elapsed time once 24 more hours have been observed, summed over restarts. Until then, the trusted time is
earlier than the wall clock by the length of the gap.

So if the clock jumps ahead, sessions do not become older for a day, and an operator has time to correct the clock. On a
host that restarts every day, a session may seem younger than it is, by at most the sum of the gaps that do not count
yet.
"""

from typing import NamedTuple

LEAP = 31 * 86_400
"""If more seconds than this have passed since a journal was last used, commands that contain an age are rejected."""
SLACK = 300
"""Seconds by which the clocks of hosts may differ. Adjusting a clock by no more than this does not cause a gap."""
STEADY = 86_400
"""Seconds of observed time after which a gap counts as elapsed time."""
_HOUR = 3600


class UnobservedTime(NamedTuple):
    """An advance of the wall clock that no process observed.

    Args:
        found: The value of `ObservedClock.observed` when the gap was found.
        seconds: Length of the gap in seconds.
    """

    found: int
    seconds: int


class ObservedClock(NamedTuple):
    """A journal's record of the wall clock.

    Args:
        last: The last recorded time, in seconds since 1970.
        observed: Seconds of observed time, summed over all processes that have used the journal.
        gaps: Gaps that do not count as elapsed time yet, oldest first. Gaps that were found within the same hour of
            observed time are combined.
    """

    last: int
    observed: int
    gaps: tuple[UnobservedTime, ...] = ()

    @property
    def earliest_now(self) -> int:
        """The trusted time, in seconds since 1970: the last recorded time minus the lengths of the gaps."""
        return self.last - sum(gap.seconds for gap in self.gaps)

    @property
    def seconds_of_doubt(self) -> int:
        """Seconds of observed time that are still needed until all gaps count as elapsed time; 0 without gaps."""
        return self.gaps[-1].found + STEADY - self.observed if self.gaps else 0


def observe(before: ObservedClock | None, now: int, elapsed: int) -> ObservedClock:
    """Return the record of the clock, updated with the time `now`.

    Args:
        before: The previous record. None at the first call, which makes all time since 1970 a gap.
        now: The wall-clock time in seconds since 1970.
        elapsed: Seconds since this process last read the clock, by a monotonic clock; 0 at its first call.
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


def encode_clock(clock: ObservedClock) -> dict[str, int]:
    """Return the record as a dict of numbers, as storages save it. Each key begins with `clock`."""
    gaps = {f"clock_gap_{gap.found}": gap.seconds for gap in clock.gaps}
    return {"clock": clock.last, "clock_observed": clock.observed, "clock_gaps": len(gaps), **gaps}


def decode_clock(values: dict[str, int]) -> ObservedClock | None:
    """Return the record that `encode_clock` converted to these numbers; None if a number is missing."""
    gaps = sorted(
        UnobservedTime(int(name.removeprefix("clock_gap_")), seconds)
        for name, seconds in values.items()
        if name.startswith("clock_gap_")
    )
    if not {"clock", "clock_observed", "clock_gaps"} <= values.keys() or values["clock_gaps"] != len(gaps):
        return None
    return ObservedClock(values["clock"], values["clock_observed"], tuple(gaps))
