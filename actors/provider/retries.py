"""Retries: how often a failed request is tried again, and after how long. Pure: chance is an argument."""

from random import Random

from msgspec import Struct
from msgspec.structs import replace

from actors.adapters.failure import Failure
from actors.adapters.retry_after import MAX_WAIT

MOST = 10.0
"""Seconds that a failing backend is asked on at most before it is left alone, however long requests are tried."""
SLACK = 1.5
"""How much longer than one request's waits that is: others begin later, and each try takes a while."""


class Retries(Struct, frozen=True):
    """How a failed request is tried again, before anything of an answer was shown.

    Args:
        attempts: Tries in all. One that is refused for the rate while others are served counts as none, `passes` times.
        base, ceiling: Seconds of the first wait and of the longest; doubling in between, with jitter.
        budget: Longest wait, in seconds, that a provider may ask for and is granted here; beyond it the
            request fails, and another backend may serve it sooner.
    """

    attempts: int = 3
    base: float = 0.5
    ceiling: float = 8.0
    budget: float = 20.0

    def wait(self, attempt: int, asked: float | None, random: Random) -> float | None:
        """Return the seconds to wait after failed attempt number `attempt`, or None to give up."""
        if attempt >= self.attempts or (asked is not None and asked > self.budget):
            return None
        if asked is not None:
            return asked + random.uniform(0, self.base)
        return self._longest(attempt) * random.uniform(0.5 if attempt == 1 else 0.75, 1.0)

    def told(self, failure: Failure) -> Failure:
        """Return a failure with the wait in its words, if that is longer than is granted here."""
        wait = failure.retry_after
        if wait is None or wait <= self.budget:
            return failure
        return replace(failure, message=f"{failure.message} (it asks to wait {_in_words(wait)})")

    @property
    def passes(self) -> int:
        """Tries beside `attempts` that a request has at a backend that serves others in the meantime."""
        return 4 * (self.attempts - 1)

    @property
    def span(self) -> float:
        """Seconds of failures after which the requests that met the first have been tried as often as they may be."""
        return min(MOST, SLACK * sum(map(self._longest, range(1, self.attempts))))

    def _longest(self, attempt: int) -> float:
        return min(self.ceiling, self.base * 2.0 ** (attempt - 1))


def _in_words(seconds: float) -> str:
    """Return a wait as people write it: `45 s`, `12 min`, `5 h 2 min`, `a day or more`."""
    if seconds >= MAX_WAIT:
        return "a day or more"
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(minutes, 60)
    return " ".join(part for part in (f"{hours} h" * bool(hours), f"{minutes} min" * bool(minutes)) if part)
