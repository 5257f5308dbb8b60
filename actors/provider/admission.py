"""Admit requests to a backend: choose the next one among the requests of all sessions.

Each backend has one `Admission`, owned by its provider actor. A request starts if a place is free, the rate limits of
the account allow it, the backend did not ask to wait, and no other request is queued. Otherwise it waits in a bounded
queue, which shares the backend among tenants by weight and among sessions equally. Within a tenant, requests that
continue a turn go first: turns that have started finish soon, instead of all advancing together and none finishing
for long. Retries have a queue of their own, which is served first.

While it is uncertain whether the backend is down, requests start one at a time. If a backend fails every time, the
breaker opens: new requests are rejected at once, and so are the queued ones.

A request that waits before a retry is not part of the admission: it holds no place and no slot of the queue. If no
limit is in force, `enter` and `leave` only count.
"""

from collections.abc import Callable, Mapping
from math import inf

from msgspec import Struct

from actors.adapters.failure import Failure
from actors.core.policy.fair import FairQueue
from actors.core.policy.pace import Breaker, Concurrency, MinuteBudget, RetryBudget
from actors.core.values.stream import Usage
from actors.errors import CircuitOpen, Overloaded
from actors.kernel.event_loop import Waiter, event_loop, wake
from actors.telemetry import logger

TOKENS_PER_BYTE = 0.25
"""Tokens reserved per byte of a request until usage has been reported."""
LEARNING = 0.2
"""Weight of the latest observation in that ratio (exponential smoothing)."""
PROBE = 0.001
LEAD = 8
"""Requests by which a continuing turn precedes its tenant's other requests. Later requests of a longer turn queue
normally."""
NEXT_PROBE = 1.0
"""Seconds in doubt after which another request starts although the previous one has no answer yet."""
NEXT_FIRST = 0.1
"""Seconds in doubt between the starts of two first tries. Retries decide whether the backend is up."""


class Pace(Struct, frozen=True):
    """The limits of one backend.

    Args:
        concurrency: Most requests at once. Rate limit errors lower it for a while.
        waiting: Most queued requests; further ones are rejected.
        requests, tokens: Limits per minute; None is unlimited.
        failures: Consecutive failures that open the breaker. Requests in flight at the first failure count once.
        cooldown: Seconds for which the breaker stays open.
        patience: Longest wait in seconds that a backend may request for all sessions; a longer one opens the breaker.
        weights: Weights of the tenants in the queue; 1 by default.
    """

    concurrency: int = 256
    waiting: int = 10_000
    requests: int | None = None
    tokens: int | None = None
    failures: int = 10
    cooldown: float = 30.0
    patience: float = 20.0
    weights: Mapping[str, float] = {}


class Ticket(Struct, eq=False):
    """One try of a request, from before it enters until it has left.

    `size` is the size of its body in bytes; `continues` is true if an earlier request of its turn was answered.
    """

    tenant: str
    session: str
    size: int
    is_first: bool = True
    continues: bool = False
    wave: int = 0
    breaker_wave: int = 0
    probes: bool = False
    is_in_doubt: bool = False
    tokens: float = 0.0
    second: int = 0
    waiter: Waiter | None = None
    is_in: bool = False


class Condition(Struct, frozen=True):
    """The state of a backend.

    Args:
        in_flight, waiting: Requests of all sessions.
        limit: Most requests that may be in flight now.
        closed_for: Seconds until the breaker allows a request; 0 if it is closed.
        failed: Seconds since a round failed for good without a later success; None if none did.
    """

    in_flight: int
    waiting: int
    limit: int
    closed_for: float
    failed: float | None


class Admission:
    """Admits requests to one backend.

    Args:
        name: Name of the backend, for messages.
        pace: The limits of the backend.
        now: The loop's clock.
        later: Schedules a function for a time on that clock.
        least: Seconds that failures must span before the breaker opens, so that the retries of one request cannot open
            it.
    """

    in_flight: int
    answers: int

    def __init__(
        self,
        name: str,
        pace: Pace,
        now: Callable[[], float],
        later: Callable[[float, Callable[[], None]], object],
        least: float = 0.0,
    ) -> None:
        self._name = name
        self._pace = pace
        self._now = now
        self._later = later
        self._queue: FairQueue[Ticket] = FairQueue(pace.weights, self._lead)
        self._again: FairQueue[Ticket] = FairQueue(pace.weights, self._lead)
        self._requests = MinuteBudget(pace.requests) if pace.requests else None
        self._tokens = MinuteBudget(pace.tokens) if pace.tokens else None
        self._retries = RetryBudget(burst=max(10.0, pace.concurrency))
        self._per_byte = TOKENS_PER_BYTE
        self._hold = -inf  # no request starts before this time, as the backend asked
        self._next_look = inf
        self.concurrency: Concurrency = Concurrency(pace.concurrency)
        self.breaker: Breaker = Breaker(pace.failures, pace.cooldown, least)
        self.in_flight = self.answers = self._first_tries = self._in_doubt = 0
        self._probed = -inf  # when the last request in doubt started

    @property
    def waiting(self) -> int:
        """The number of queued requests."""
        return self._again.size + self._queue.size

    def condition(self) -> Condition:
        """Return the state of the backend."""
        now, breaker = self._now(), self.breaker
        wait = breaker.wait(now)
        return Condition(
            self.in_flight,
            self.waiting,
            int(self.concurrency.limit),
            0.0 if wait is None else max(wait, PROBE),  # while a probe runs, the end is unknown
            None if breaker.failed_at is None else now - breaker.failed_at,
        )

    async def enter(self, ticket: Ticket) -> None:
        """Wait for a place.

        Raises:
            CircuitOpen: The breaker is open.
            Overloaded: The queue is full.
        """
        if ticket.is_first:
            self._first_tries += 1
        if self.breaker.until is not None:
            self._probe(ticket)
        elif not self._must_wait(ticket) and self._fits(ticket):
            self._begin(ticket)
        elif self._queue_of(ticket).size >= self._most_waiting(ticket):
            raise Overloaded(
                f"{self._queue_of(ticket).size} requests wait for backend {self._name!r}, and its limits.waiting is "
                f"{self._pace.waiting}; ask later or less at a time, raise limits.waiting or limits.concurrency, or "
                "add a backend to a pool"
            )
        else:
            await self._wait(ticket)

    def leave(self, ticket: Ticket, failure: Failure | None, usage: Usage | None) -> None:
        """Release the place and record how the try ended. `usage` is None if it was stopped."""
        self.in_flight -= 1
        self._in_doubt -= ticket.is_in_doubt
        if self._tokens is not None and usage is not None:
            self._settle(self._tokens, ticket, failure, usage)
        if usage is None:
            if ticket.probes:
                self.breaker.cancel_probe()
        elif failure is None:
            self.answers += 1
            self._record_success()
            if not ticket.is_first:
                self._retries.give_back()
        else:
            self._record_failure(ticket, failure)
        if self.waiting:
            self._serve()

    def record_answer_start(self, ticket: Ticket) -> None:
        """Record that the answer to a probe has started: the breaker closes before the answer has ended."""
        if ticket.probes:
            ticket.probes = False
            if self.breaker.probing and self.breaker.record_answer():
                self._restart()
                self.concurrency.record_answer()  # admits one request in addition to the probe
        elif ticket.is_in_doubt:
            ticket.is_in_doubt = False
            self._in_doubt -= 1
            if self.breaker.is_in_doubt:
                self.breaker.record_answer()
                self._serve()

    def may_retry(self, failure: Failure) -> bool:
        """Return True if a retry is granted. After rate limits it always is: such retries wait for a place and add no
        load."""
        if self.breaker.until is not None:
            return False
        return failure.kind == "rate_limit" or self._retries.take(self._first_tries, self._now())

    def gave_up(self) -> None:
        """Record that a round failed for good: pools avoid this backend for a while."""
        self.breaker.failed_at = self._now()

    def hold(self, seconds: float) -> None:
        """Admit no request for so many seconds, as the backend asks. A longer wait than `patience` is ignored."""
        if seconds <= self._pace.patience:
            self._hold = max(self._hold, self._now() + seconds)

    def _probe(self, ticket: Ticket) -> None:
        """Admit one request through a half-open breaker, whatever else is in flight."""
        if (wait := self.breaker.wait(self._now())) is not None:
            raise self._open(wait)
        ticket.probes = self.breaker.probe()
        self._begin(ticket)

    def _queue_of(self, ticket: Ticket) -> FairQueue[Ticket]:
        return self._queue if ticket.is_first else self._again

    def _must_wait(self, ticket: Ticket) -> bool:
        """Return True if other requests go first."""
        return bool(self._again.size or (ticket.is_first and self._queue.size))

    def _most_waiting(self, ticket: Ticket) -> int:
        """Return the capacity of a ticket's queue. Retries were accepted before, so they get additional slots."""
        most = self._pace.waiting
        return most if ticket.is_first else most + self._pace.concurrency

    def _open(self, wait: float) -> CircuitOpen:
        now = f"is not asked for {wait:.0f} s more" if wait else "is just being tried with one request"
        return CircuitOpen(
            f"Backend {self._name!r} {now}: {self.breaker.in_a_row} requests to it "
            "failed in a row, or it asked to wait; ask later, or add another backend to a pool",
            retry_after=wait,
        )

    def _fits(self, ticket: Ticket) -> bool:
        """Return True if a request may start now. If only time must pass, schedule another check."""
        if self.in_flight > self.concurrency.limit - 1:
            return False
        is_in_doubt = self.breaker.is_in_doubt
        if self._hold == -inf and self._requests is None and self._tokens is None and not is_in_doubt:
            return True
        now = self._now()
        wait = self._hold - now
        if wait <= 0:
            self._hold = -inf
        if is_in_doubt:
            pause = NEXT_PROBE if self._in_doubt else NEXT_FIRST if ticket.is_first else 0.0
            wait = max(wait, self._probed + pause - now)
        if self._requests is not None:
            wait = max(wait, self._requests.wait(1, now))
        if self._tokens is not None:
            wait = max(wait, self._tokens.wait(ticket.size * self._per_byte, now))
        if wait <= 0:
            return True
        if now + wait < self._next_look:
            self._next_look = now + wait
            self._later(now + wait, self._look)
        return False

    def _begin(self, ticket: Ticket) -> None:
        ticket.is_in, ticket.wave, ticket.breaker_wave = True, self.concurrency.wave, self.breaker.wave
        self.in_flight += 1
        if self.breaker.is_in_doubt:
            ticket.is_in_doubt = True
            self._in_doubt += 1
            self._probed = self._now()
        if self._requests is not None:
            self._requests.reserve(1, self._now())
        if self._tokens is not None:
            ticket.tokens = ticket.size * self._per_byte
            ticket.second = self._tokens.reserve(ticket.tokens, self._now())

    async def _wait(self, ticket: Ticket) -> None:
        ticket.waiter = event_loop().waiter()
        queue = self._queue_of(ticket)
        queue.put(ticket.tenant, ticket.session, ticket)
        try:
            await ticket.waiter
        except BaseException:  # stopped, before or just after its turn came
            if ticket.is_in:
                self.leave(ticket, None, None)
            else:
                queue.remove(ticket.tenant, ticket.session, ticket)
                self._serve()  # the others may have waited for this request
            raise
        if not ticket.is_in:
            raise self._open(self.breaker.wait(self._now()) or 0.0)

    def _look(self) -> None:
        self._next_look = inf
        self._serve()

    def _serve(self) -> None:
        """Admit queued requests, in order, while there is room."""
        while self.waiting:
            queue = self._again if self._again.size else self._queue
            if not self._fits(ticket := queue.first()):
                break
            queue.take(self._cost(ticket))
            self._begin(ticket)
            wake(ticket.waiter)

    def _cost(self, ticket: Ticket) -> float:
        """Return the cost of a request to its session: one, or its tokens if tokens are limited."""
        return max(1.0, ticket.size * self._per_byte) if self._tokens is not None else 1.0

    def _lead(self, ticket: Ticket) -> float:
        return LEAD * self._cost(ticket) if ticket.continues else 0.0

    def _settle(self, budget: MinuteBudget, ticket: Ticket, failure: Failure | None, usage: Usage) -> None:
        used = usage.input_tokens + usage.output_tokens
        if used and ticket.size:
            self._per_byte += LEARNING * (used / ticket.size - self._per_byte)
        if used or failure is not None:
            budget.settle(ticket.second, ticket.tokens, used)

    def _record_success(self) -> None:
        breaker = self.breaker
        if (
            breaker.in_a_row or breaker.failed_at is not None or breaker.until is not None
        ) and breaker.record_answer():
            self._restart()
        elif self.concurrency.limit < self._pace.concurrency:
            self.concurrency.record_answer()

    def _restart(self) -> None:
        """Restart with a concurrency of one after the breaker has closed."""
        self.concurrency.restart()
        logger.circuit_closed(self._name)

    def _record_failure(self, ticket: Ticket, failure: Failure) -> None:
        """Update the limits after a failed try, and log if the breaker opens."""
        was_open = self.breaker.until is not None
        self._learn(ticket, failure)
        if not was_open and (until := self.breaker.until) is not None:
            logger.circuit_opened(self._name, until - self._now(), self.breaker.in_a_row)

    def _learn(self, ticket: Ticket, failure: Failure) -> None:
        """Update the limits after a failed try. Any error other than an outage shows that the backend is up."""
        asked = failure.retry_after
        if failure.kind == "rate_limit":
            self.concurrency.record_rate_limit(ticket.wave)
            self.concurrency.record_crowding(self.in_flight)
            if asked is not None:
                self.hold(asked)
        if failure.kind == "transient":
            if (self.breaker.until is None or ticket.probes) and self.breaker.record_failure(
                self._now(), ticket.breaker_wave
            ):
                self._turn_away()
        elif failure.kind == "rate_limit" and (ticket.probes or (asked or 0) > self._pace.patience):
            self.breaker.open(self._now(), min(asked or inf, self._pace.cooldown))
            self._turn_away()
        elif failure.status is not None:
            self.breaker.record_answer()
        elif ticket.probes:
            self.breaker.cancel_probe()

    def _turn_away(self) -> None:
        """Reject all queued requests, because the breaker has opened."""
        for ticket in (*self._again.clear(), *self._queue.clear()):
            wake(ticket.waiter)
