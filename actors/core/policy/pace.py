"""Limit the number and the rate of a backend's requests. The current time is an argument, so the rules need no clock.

`Concurrency` adapts to the backend's capacity, `MinuteBudget` enforces an account's limit per minute, `RetryBudget`
limits retries to a share of the requests, and `Breaker` stops requests to a backend that keeps failing. The backend's
provider actor owns these objects.
"""

from collections import deque
from math import inf

from msgspec import Struct, field

MINUTE = 60


class Concurrency(Struct):
    """The limit on concurrent requests, from 1 to `ceiling`.

    The limit grows by one after each window of answers, and a rate limit halves it. A window is as many answers as the
    limit allows requests. The outcome of a request that was sent before the last decrease shows nothing about the new
    limit. So the limit has waves: each decrease begins a wave, `wave` is its number, and only one rate limit per wave
    counts.

    If a backend rejects some requests of a burst and answers the rest, its capacity may be no larger than the number of
    answered requests. The limit then drops to that number, and doubles with each window until it reaches `quick`, which
    is the limit that halving would have set.
    """

    ceiling: int
    limit: float = 0.0
    quick: float = 0.0
    wave: int = 0

    def __post_init__(self) -> None:
        self.limit = float(self.ceiling)

    def record_answer(self) -> None:
        """Raise the limit after an answer."""
        more = 1.0 if self.limit < self.quick else 1 / self.limit
        self.limit = min(float(self.ceiling), self.limit + more)

    def record_rate_limit(self, wave: int) -> None:
        """Halve the limit after a rate limit, once per wave.

        `wave` is the value of `Concurrency.wave` when the request was sent.
        """
        if wave == self.wave:
            self.wave += 1
            self.limit = self.quick = max(1.0, self.limit / 2)

    def record_crowding(self, other_requests: int) -> None:
        """Lower the limit to the number of other requests in flight, if there are any. Called after a rate limit."""
        if other_requests:
            self.limit = min(self.limit, float(other_requests))

    def restart(self) -> None:
        """Reset the limit to one request, because the backend has just recovered."""
        self.wave += 1
        self.limit = self.quick = 1.0


class MinuteBudget(Struct):
    """A limit on the usage in any 60 seconds, counted per second. Reservations never exceed `limit`.

    A single amount above the limit counts as the limit, so that its request can run alone.
    """

    limit: int
    # Pairs [second, amount], oldest first.
    _seconds: deque[list[float]] = field(default_factory=deque[list[float]])
    _used: float = 0.0

    def wait(self, amount: float, now: float) -> float:
        """Return the seconds until this amount is available; 0 if it is available now."""
        self._expire_usage(now)
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
        """Reserve an amount, and return the second in which it counts. `settle` takes this second as an argument."""
        second, amount = int(now // 1), min(amount, self.limit)
        if not self._seconds or self._seconds[-1][0] != second:
            self._seconds.append([second, 0.0])
        self._seconds[-1][1] += amount
        self._used += amount
        return second

    def settle(self, second: int, reserved: float, used: float) -> None:
        """Replace a reservation by the actual usage. This has no effect once the reservation's minute has passed."""
        for entry in self._seconds:
            if entry[0] == second:
                # The amount recorded for a second must not become negative.
                change = max(used - min(reserved, self.limit), -entry[1])
                entry[1] += change
                self._used += change

    def _expire_usage(self, now: float) -> None:
        # An amount counts until a minute after the end of its second.
        while self._seconds and self._seconds[0][0] + 1 + MINUTE <= now:
            self._used -= self._seconds.popleft()[1]
        if not self._seconds:
            self._used = 0.0


class RetryBudget(Struct):
    """A limit on the retries of all sessions: a `share` of the requests, plus a `burst` that refills by one per second.

    With this limit, a session with an occasional fault never runs out of retries, and a thousand sessions do not make
    an outage worse.
    """

    share: float = 0.1
    burst: float = 64.0
    _left: float | None = None
    _seen: int = 0
    _at: float = 0.0

    def take_retry(self, first_tries: int, now: float) -> bool:
        """Return True and count one retry if the budget allows it.

        `first_tries` is the number of requests so far, without retries.
        """
        left = self.burst
        if self._left is not None:
            left = min(left, self._left + self.share * (first_tries - self._seen) + (now - self._at))
        self._seen, self._at = first_tries, now
        self._left = left - 1 if left >= 1 else left
        return left >= 1

    def refund_retry(self) -> None:
        """Give back one retry after an answer, which shows that the backend is not down."""
        if self._left is not None:
            self._left = min(self.burst, self._left + 1)


class Breaker(Struct):
    """A circuit breaker for one backend.

        state       leads to
        closed      in doubt, after `failures` consecutive failed tries
        in doubt    closed by an answer; open by a failure, once the failures span `min_span` seconds and `failures` of
                    them count; until then, requests are sent one at a time
        open        half-open, after `cooldown` seconds; until then every request is rejected immediately
        half-open   closed by the start of an answer, open by a failure; requests are sent one at a time

    A backend that requests a long wait opens the breaker from any state. One cause, such as a restarting load balancer,
    makes all requests in flight fail. So the failures of all requests that were sent before the first failure was known
    count as one in `in_a_row`. `min_span` leaves each request time for a retry before the breaker opens.

    `until` is None unless the breaker is open or half-open. `wave` increases by one with the first failure after an
    answer. `failed_at` is the time of a failure after which a session moved to another backend; an answer clears
    `failed_at`, and pools avoid the backend for a while after that time.
    """

    failures: int
    cooldown: float
    min_span: float = 0.0
    until: float | None = None
    failed_at: float | None = None
    in_a_row: int = 0
    tries: int = 0
    since: float = 0.0
    wave: int = 0
    probing: bool = False

    @property
    def is_in_doubt(self) -> bool:
        """True while it is unknown whether the backend is down or only the requests in flight failed."""
        return self.until is None and self.tries >= self.failures

    def wait(self, now: float) -> float | None:
        """Return the seconds until a request may be sent, or None if a request may be sent now.

        The result is 0 while another request probes the backend.
        """
        if self.until is None or (now >= self.until and not self.probing):
            return None
        return max(0.0, self.until - now)

    def begin_request(self) -> bool:
        """Record that a request is being sent. Return True if this request probes whether the backend has recovered."""
        if self.until is None:
            return False
        self.probing = True
        return True

    def record_answer(self) -> bool:
        """Close the breaker after an answer. Return True if the breaker was open or half-open."""
        was_open, self.until = self.until is not None, None
        self.in_a_row, self.tries, self.failed_at, self.probing = 0, 0, None, False
        return was_open

    def record_failure(self, now: float, wave: int | None = None) -> bool:
        """Count a failed try that the backend caused. Return True if the breaker is now open.

        `wave` is the value of `Breaker.wave` when the try began; None if the try began after all known failures.
        """
        self.tries += 1
        if not self.in_a_row:
            self.in_a_row, self.since, self.wave = 1, now, self.wave + 1
        elif wave is None or wave == self.wave:
            self.in_a_row += 1
        if self.until is None and (self.in_a_row < self.failures or now - self.since < self.min_span):
            return False
        self.open(now, self.cooldown)
        return True

    def open(self, now: float, seconds: float) -> None:
        """Reject all requests for `seconds` from now on."""
        self.until = max(self.until if self.until is not None else -inf, now + seconds)
        self.probing = False

    def cancel_probe(self) -> None:
        """Record that the probing request was cancelled without a result. The next request becomes the probe."""
        self.probing = False
