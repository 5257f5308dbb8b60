"""Decide when each request to a backend may start.

Each backend has one `Admission`, owned by its provider actor. A request starts at once if the concurrency and rate
limits allow it, the backend has not asked for a pause, and no other request is queued. Otherwise it waits in a bounded
queue. The queue shares the backend among tenants by weight, and equally among the sessions of a tenant. Within a
tenant, requests that continue a turn go first, so that started turns finish soon. Retries have a separate queue, which
is served first.

While it is uncertain whether the backend is down, requests start one at a time. If every request fails, the circuit
breaker opens. New and queued requests are then rejected at once.

A request that waits before its retry counts neither as running nor as queued. If no limit applies, `wait_to_start` and
`record_end` merely count requests.
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
"""Weight of the latest answer in the learned ratio of tokens to bytes (exponential smoothing)."""
PROBE = 0.001
"""The wait in seconds that is reported while a probe tests an open breaker, because the real wait is unknown."""
LEAD = 8
"""The head start of a continuing turn over its tenant's other requests, as a number of requests. After that, the
requests of a longer turn queue normally.
"""
NEXT_PROBE = 1.0
"""Seconds after which another request starts even if the previous request has not been answered. This applies while it
is uncertain whether the backend is down.
"""
NEXT_FIRST = 0.1
"""Seconds between the starts of two first tries while it is uncertain whether the backend is down. Retries start at
once, because their outcome resolves the uncertainty.
"""


class Pace(Struct, frozen=True):
    """The limits of one backend.

    Args:
        concurrency: Maximum number of concurrent requests. Rate limit errors lower it temporarily.
        waiting: Maximum number of queued requests. Further requests are rejected.
        requests, tokens: Limits per minute. `None` means no limit.
        failures: Number of consecutive failures that opens the circuit breaker. Failures of the requests that were in
            flight at the first failure count as one.
        cooldown: Seconds for which the breaker stays open.
        max_pause: Longest pause in seconds that a backend may request for all sessions. If it requests a longer pause,
            the breaker opens.
        weights: Weights of the tenants in the queue. The default weight is 1.
    """

    concurrency: int = 256
    waiting: int = 10_000
    requests: int | None = None
    tokens: int | None = None
    failures: int = 10
    cooldown: float = 30.0
    max_pause: float = 20.0
    weights: Mapping[str, float] = {}


class Ticket(Struct, eq=False):
    """One try of a request, from its arrival at the `Admission` to its end.

    Args:
        size: Bytes of the request body.
        is_first: False for a retry.
        continues_turn: Whether an earlier request of the same turn was answered.
        wave: Number of the period in which the request started. A period ends when a rate limit error lowers the
            concurrency limit; further errors of requests from that period do not lower it again.
        breaker_wave: Number of the circuit breaker's period in which the request started. A period begins at the first
            failure after a success.
        is_probe: Whether the request is a probe, which tests whether the breaker can close.
        is_in_doubt: Whether the request started while it was uncertain if the backend was down.
        tokens, second: The number of reserved tokens, and the second in which they were reserved.
        waiter: Wakes the queued request.
        has_started: Whether the request has started.
    """

    tenant: str
    session: str
    size: int
    is_first: bool = True
    continues_turn: bool = False
    wave: int = 0
    breaker_wave: int = 0
    is_probe: bool = False
    is_in_doubt: bool = False
    tokens: float = 0.0
    second: int = 0
    waiter: Waiter | None = None
    has_started: bool = False


class Condition(Struct, frozen=True):
    """The current state of a backend.

    Args:
        in_flight, waiting: Numbers of running and of queued requests, over all sessions.
        limit: Maximum number of requests that may currently be in flight.
        closed_for: Seconds until the breaker allows a request, or 0 if requests are allowed.
        seconds_since_failure: Seconds since a request last failed after all its retries. None if no request has failed,
            or if a later request succeeded.
    """

    in_flight: int
    waiting: int
    limit: int
    closed_for: float
    seconds_since_failure: float | None


class Admission:
    """The queue and the limits that decide when each request to one backend starts.

    Args:
        name: Name of the backend, for messages.
        pace: The limits of the backend.
        now: Returns the time on the loop's clock, in seconds.
        call_at: Schedules a function call at a time on the loop's clock.
        min_span: Seconds that must pass after the first failure before the breaker may open, so that the retries of one
            request cannot open it.
    """

    in_flight: int
    answers: int

    def __init__(
        self,
        name: str,
        pace: Pace,
        now: Callable[[], float],
        call_at: Callable[[float, Callable[[], None]], object],
        min_span: float = 0.0,
    ) -> None:
        self._name = name
        self._pace = pace
        self._now = now
        self._call_at = call_at
        self._queue: FairQueue[Ticket] = FairQueue(pace.weights, self._queue_lead)
        self._retry_queue: FairQueue[Ticket] = FairQueue(pace.weights, self._queue_lead)
        self._requests = MinuteBudget(pace.requests) if pace.requests else None
        self._tokens = MinuteBudget(pace.tokens) if pace.tokens else None
        self._retries = RetryBudget(burst=max(10.0, pace.concurrency))
        self._per_byte = TOKENS_PER_BYTE
        self._paused_until = -inf  # no request starts before this time, because the backend asked for a pause
        self._next_check = inf
        self.concurrency: Concurrency = Concurrency(pace.concurrency)
        self.breaker: Breaker = Breaker(pace.failures, pace.cooldown, min_span)
        self.in_flight = self.answers = self._first_tries = self._in_doubt = 0
        self._probed = -inf  # when a request was last started while the backend was possibly down

    @property
    def waiting(self) -> int:
        """Number of queued requests, including retries."""
        return self._retry_queue.size + self._queue.size

    def condition(self) -> Condition:
        """Return the current state of the backend, for choosing a member of a pool, and for stats."""
        now, breaker = self._now(), self.breaker
        wait = breaker.wait(now)
        return Condition(
            self.in_flight,
            self.waiting,
            int(self.concurrency.limit),
            0.0 if wait is None else max(wait, PROBE),
            None if breaker.failed_at is None else now - breaker.failed_at,
        )

    async def wait_to_start(self, ticket: Ticket) -> None:
        """Wait until the request may start.

        Raises:
            CircuitOpen: The breaker is open.
            Overloaded: The queue is full.
        """
        if ticket.is_first:
            self._first_tries += 1
        if self.breaker.until is not None:
            self._admit_probe(ticket)
        elif not self._must_wait(ticket) and self._can_start(ticket):
            self._start(ticket)
        elif self._queue_of(ticket).size >= self._queue_capacity(ticket):
            raise Overloaded(
                f"The queue of backend {self._name!r} is full: {self._queue_of(ticket).size} requests wait, and "
                f"limits.waiting is {self._pace.waiting}; retry later, raise limits.waiting or "
                "limits.concurrency, or add a backend to a pool"
            )
        else:
            await self._wait_in_queue(ticket)

    def record_end(self, ticket: Ticket, failure: Failure | None, usage: Usage | None) -> None:
        """Record how a try ended, so that another request may start. `usage` is None if the try was stopped."""
        self.in_flight -= 1
        self._in_doubt -= ticket.is_in_doubt
        if self._tokens is not None and usage is not None:
            self._settle_tokens(self._tokens, ticket, failure, usage)
        if usage is None:
            if ticket.is_probe:
                self.breaker.cancel_probe()
        elif failure is None:
            self.answers += 1
            self._record_success()
            if not ticket.is_first:
                self._retries.refund_retry()
        else:
            self._record_failure(ticket, failure)
        if self.waiting:
            self._start_queued()

    def record_answer_start(self, ticket: Ticket) -> None:
        """Record that the answer to a request has started. If the request was a probe, the breaker closes now."""
        if ticket.is_probe:
            ticket.is_probe = False
            if self.breaker.probing and self.breaker.record_answer():
                self._restart_concurrency()
                self.concurrency.record_answer()  # allows one request in addition to the probe
        elif ticket.is_in_doubt:
            ticket.is_in_doubt = False
            self._in_doubt -= 1
            if self.breaker.is_in_doubt:
                self.breaker.record_answer()
                self._start_queued()

    def may_retry(self, failure: Failure) -> bool:
        """Return True if a request may be retried after `failure`.

        After a rate limit error, a retry is allowed unless the breaker is open. The retry does not add load, because it
        waits until the limits allow it.
        """
        if self.breaker.until is not None:
            return False
        return failure.kind == "rate_limit" or self._retries.take_retry(self._first_tries, self._now())

    def record_give_up(self) -> None:
        """Record that a request failed after all its retries, so that pools avoid this backend for a while."""
        self.breaker.failed_at = self._now()

    def pause(self, seconds: float) -> None:
        """Start no requests for this number of seconds, because the backend asked for a pause. A pause longer than
        `Pace.max_pause` has no effect.
        """
        if seconds <= self._pace.max_pause:
            self._paused_until = max(self._paused_until, self._now() + seconds)

    def _admit_probe(self, ticket: Ticket) -> None:
        """Start one request to test whether the breaker can close, regardless of the limits. Raise `CircuitOpen` if the
        breaker is still open.
        """
        if (wait := self.breaker.wait(self._now())) is not None:
            raise self._circuit_open_error(wait)
        ticket.is_probe = self.breaker.begin_request()
        self._start(ticket)

    def _queue_of(self, ticket: Ticket) -> FairQueue[Ticket]:
        """Return the queue in which the request waits. Retries have a queue of their own."""
        return self._queue if ticket.is_first else self._retry_queue

    def _must_wait(self, ticket: Ticket) -> bool:
        """Return True if queued requests go before this request."""
        return bool(self._retry_queue.size or (ticket.is_first and self._queue.size))

    def _queue_capacity(self, ticket: Ticket) -> int:
        """Return the capacity of the request's queue. The queue for retries is larger, because a retried request has
        already been accepted once.
        """
        most = self._pace.waiting
        return most if ticket.is_first else most + self._pace.concurrency

    def _circuit_open_error(self, wait: float) -> CircuitOpen:
        now = f"accepts no requests for {wait:.0f} s" if wait else "is being tested with one request"
        return CircuitOpen(
            f"Backend {self._name!r} {now}, because {self.breaker.in_a_row} consecutive requests failed, "
            "or the backend requested a wait; retry later, or add another backend to a pool",
            retry_after=wait,
        )

    def _can_start(self, ticket: Ticket) -> bool:
        """Return True if a request may start now. If it may start later, schedule another check for that time."""
        if self.in_flight > self.concurrency.limit - 1:
            return False
        is_in_doubt = self.breaker.is_in_doubt
        if self._paused_until == -inf and self._requests is None and self._tokens is None and not is_in_doubt:
            return True
        now = self._now()
        wait = self._paused_until - now
        if wait <= 0:
            self._paused_until = -inf
        if is_in_doubt:
            pause = NEXT_PROBE if self._in_doubt else NEXT_FIRST if ticket.is_first else 0.0
            wait = max(wait, self._probed + pause - now)
        if self._requests is not None:
            wait = max(wait, self._requests.wait(1, now))
        if self._tokens is not None:
            wait = max(wait, self._tokens.wait(ticket.size * self._per_byte, now))
        if wait <= 0:
            return True
        if now + wait < self._next_check:
            self._next_check = now + wait
            self._call_at(now + wait, self._on_next_check)
        return False

    def _start(self, ticket: Ticket) -> None:
        """Count a request as in flight, and reserve its share of the limits per minute."""
        ticket.has_started, ticket.wave, ticket.breaker_wave = True, self.concurrency.wave, self.breaker.wave
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

    async def _wait_in_queue(self, ticket: Ticket) -> None:
        ticket.waiter = event_loop().waiter()
        queue = self._queue_of(ticket)
        queue.put(ticket.tenant, ticket.session, ticket)
        try:
            await ticket.waiter
        except BaseException:  # the request was stopped, before or just after it was started
            if ticket.has_started:
                self.record_end(ticket, None, None)
            else:
                queue.remove(ticket.tenant, ticket.session, ticket)
                self._start_queued()  # other requests may have waited for this request
            raise
        if not ticket.has_started:  # woken because the breaker has opened
            raise self._circuit_open_error(self.breaker.wait(self._now()) or 0.0)

    def _on_next_check(self) -> None:
        self._next_check = inf
        self._start_queued()

    def _start_queued(self) -> None:
        """Start queued requests in order while the limits allow it."""
        while self.waiting:
            queue = self._retry_queue if self._retry_queue.size else self._queue
            if not self._can_start(ticket := queue.first()):
                break
            queue.pop(self._queue_cost(ticket))
            self._start(ticket)
            wake(ticket.waiter)

    def _queue_cost(self, ticket: Ticket) -> float:
        """Return the cost of a request in the fair queue: its expected number of tokens if tokens are limited,
        otherwise 1.
        """
        return max(1.0, ticket.size * self._per_byte) if self._tokens is not None else 1.0

    def _queue_lead(self, ticket: Ticket) -> float:
        """Return a request's head start over the tenant's other requests, in units of `_queue_cost`. Only requests that
        continue a turn get a head start.
        """
        return LEAD * self._queue_cost(ticket) if ticket.continues_turn else 0.0

    def _settle_tokens(
        self, budget: MinuteBudget, ticket: Ticket, failure: Failure | None, usage: Usage
    ) -> None:
        """Replace the reserved tokens with the tokens actually used, and update the estimate of tokens per byte."""
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
            self._restart_concurrency()
        elif self.concurrency.limit < self._pace.concurrency:
            self.concurrency.record_answer()

    def _restart_concurrency(self) -> None:
        """Reset the concurrency limit to 1, after the breaker has closed."""
        self.concurrency.restart()
        logger.circuit_closed(self._name)

    def _record_failure(self, ticket: Ticket, failure: Failure) -> None:
        """Update the limits after a failed try. If the breaker opens, log it."""
        was_open = self.breaker.until is not None
        self._adjust_limits(ticket, failure)
        if not was_open and (until := self.breaker.until) is not None:
            logger.circuit_opened(self._name, until - self._now(), self.breaker.in_a_row)

    def _adjust_limits(self, ticket: Ticket, failure: Failure) -> None:
        """Adjust the limits after a failed try.

        An error that does not indicate an outage proves that the backend is running.
        """
        asked = failure.retry_after
        if failure.kind == "rate_limit":
            self.concurrency.record_rate_limit(ticket.wave)
            self.concurrency.record_crowding(self.in_flight)
            if asked is not None:
                self.pause(asked)
        if failure.kind == "transient":
            if (self.breaker.until is None or ticket.is_probe) and self.breaker.record_failure(
                self._now(), ticket.breaker_wave
            ):
                self._reject_queued()
        elif failure.kind == "rate_limit" and (ticket.is_probe or (asked or 0) > self._pace.max_pause):
            self.breaker.open(self._now(), min(asked or inf, self._pace.cooldown))
            self._reject_queued()
        elif failure.status is not None:
            self.breaker.record_answer()
        elif ticket.is_probe:
            self.breaker.cancel_probe()

    def _reject_queued(self) -> None:
        """Reject all queued requests, because the breaker has opened."""
        for ticket in (*self._retry_queue.clear(), *self._queue.clear()):
            wake(ticket.waiter)
