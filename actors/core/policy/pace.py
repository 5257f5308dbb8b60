"""How much a backend is sent, and when: rules whose clock is an argument.

`Concurrency` follows what the backend allows, `MinuteBudget` keeps to what an account is given a minute, `RetryBudget`
keeps retries a share of the requests, and `Breaker` leaves a backend alone that fails every time. The backend's
provider actor owns one of each.
"""

from collections import deque
from math import inf

from msgspec import Struct, field

MINUTE = 60


class Concurrency(Struct):
    """Requests at once: up by one for each window of answers, halved by a rate limit. From 1 to `ceiling`.

    What was sent before the last decrease tells of the time before it: `wave` numbers those times, and of one wave one
    rate limit counts. A backend that refuses some of a burst and serves the others may take no more than those: the
    limit falls to them, and doubles with each window up to where halving alone would have left it (`quick`).
    """

    ceiling: int
    limit: float = 0.0
    quick: float = 0.0
    wave: int = 0

    def __post_init__(self) -> None:
        self.limit = float(self.ceiling)

    def answered(self) -> None:
        """An answer came: there may be room for more."""
        more = 1.0 if self.limit < self.quick else 1 / self.limit
        self.limit = min(float(self.ceiling), self.limit + more)

    def limited(self, wave: int) -> None:
        """A request of this wave was refused for the rate."""
        if wave == self.wave:
            self.wave += 1
            self.limit = self.quick = max(1.0, self.limit / 2)

    def crowded(self, others: int) -> None:
        """A request was refused for the rate while so many others are served; if none is, that tells nothing."""
        if others:
            self.limit = min(self.limit, float(others))

    def restart(self) -> None:
        """Begin again at one: the backend has just come back."""
        self.wave += 1
        self.limit = self.quick = 1.0


class MinuteBudget(Struct):
    """What may be used in any minute, kept by the second. `limit` is never exceeded by what was reserved.

    A single amount above the limit counts as the limit: it goes alone, and not never.
    """

    limit: int
    _seconds: deque[list[float]] = field(default_factory=deque)  # [second, amount], oldest first
    _used: float = 0.0

    def wait(self, amount: float, now: float) -> float:
        """Return the seconds until an amount fits; 0 if it does."""
        self._expire(now)
        over = self._used + min(amount, self.limit) - self.limit
        if over <= 0:
            return 0.0
        until = now
        for second, used in self._seconds:
            over, until = over - used, second + 1 + MINUTE
            if over <= 0:
                break
        return until - now

    def reserve(self, amount: float, now: float) -> int:
        """Use an amount; return the second it counts in."""
        second, amount = int(now // 1), min(amount, self.limit)
        if not self._seconds or self._seconds[-1][0] != second:
            self._seconds.append([second, 0.0])
        self._seconds[-1][1] += amount
        self._used += amount
        return second

    def settle(self, second: int, reserved: float, used: float) -> None:
        """Put what was used in the place of what was reserved; nothing if its minute is over."""
        for entry in self._seconds:
            if entry[0] == second:
                change = max(used - min(reserved, self.limit), -entry[1])
                entry[1] += change
                self._used += change

    def _expire(self, now: float) -> None:
        while self._seconds and self._seconds[0][0] + 1 + MINUTE <= now:
            self._used -= self._seconds.popleft()[1]
        if not self._seconds:
            self._used = 0.0


class RetryBudget(Struct):
    """Retries of all sessions: `share` of the requests, and beside them a `burst`, which comes back one a second.

    So one session that meets a fault now and then is never out of retries, and a thousand that meet an outage do not
    multiply it.
    """

    share: float = 0.1
    burst: float = 64.0
    _left: float | None = None
    _seen: int = 0
    _at: float = 0.0

    def take(self, requests: int, now: float) -> bool:
        """Say whether one more is granted; `requests` counts first tries since the beginning."""
        left = self.burst
        if self._left is not None:
            left = min(left, self._left + self.share * (requests - self._seen) + (now - self._at))
        self._seen, self._at = requests, now
        self._left = left - 1 if left >= 1 else left
        return left >= 1

    def give_back(self) -> None:
        """A retry was answered: what it took is there again, since that is no outage."""
        if self._left is not None:
            self._left = min(self.burst, self._left + 1)


class Breaker(Struct):
    """Whether a backend is asked at all.

        state       goes on to
        closed      in doubt, after `failures` failed tries with no answer between them
        in doubt    closed by an answer; open by a failure, once the failures have lasted `least` seconds and `failures`
                    of them count; requests go through one after the other meanwhile, and the rest wait
        open        half-open, when `cooldown` seconds are over; until then everything is refused at once
        half-open   closed by an answer that begins, open by a failure; one request goes through at a time

    A backend that asks to wait long is open from any state. One cause, such as a load balancer that restarts, fails all
    that is in flight: what was sent before the first failure was known counts as one (`in_a_row`). Each request may be
    tried again before the backend is given up, which is what `least` leaves time for.

    `until` is None while it is neither open nor half-open. `wave` numbers the times between first failures. A failure
    after which a session asks elsewhere is remembered in `failed_at` until something is answered: pools pass over a
    backend for a while after it.
    """

    failures: int
    cooldown: float
    least: float = 0.0
    until: float | None = None
    failed_at: float | None = None
    in_a_row: int = 0
    tries: int = 0
    since: float = 0.0
    wave: int = 0
    probing: bool = False

    @property
    def is_in_doubt(self) -> bool:
        """Whether it is not known if the backend is down, or only what was in flight was hit."""
        return self.until is None and self.tries >= self.failures

    def wait(self, now: float) -> float | None:
        """Return None if a request may go, else the seconds until one may; 0 while another probes."""
        if self.until is None or (now >= self.until and not self.probing):
            return None
        return max(0.0, self.until - now)

    def probe(self) -> bool:
        """A request goes: say whether it is the one that probes."""
        if self.until is None:
            return False
        self.probing = True
        return True

    def answered(self) -> bool:
        """The backend answered. Say whether it was closed by that."""
        was_open, self.until = self.until is not None, None
        self.in_a_row, self.tries, self.failed_at, self.probing = 0, 0, None, False
        return was_open

    def failed(self, now: float, wave: int | None = None) -> bool:
        """A try failed, and the backend is to blame. Say whether it is open from now on.

        `wave` is that at which the try began; without one it began after all that is known.
        """
        self.tries += 1
        if not self.in_a_row:
            self.in_a_row, self.since, self.wave = 1, now, self.wave + 1
        elif wave is None or wave == self.wave:
            self.in_a_row += 1
        if self.until is None and (self.in_a_row < self.failures or now - self.since < self.least):
            return False
        self.open(now, self.cooldown)
        return True

    def open(self, now: float, seconds: float) -> None:
        """Refuse everything for so long."""
        self.until = max(self.until if self.until is not None else -inf, now + seconds)
        self.probing = False

    def withdrawn(self) -> None:
        """The probe was stopped before it came to anything: the next request probes."""
        self.probing = False
