"""Admission: which of the requests that sessions have for a backend goes now.

Each backend has one, and its provider actor owns it. A request goes if there is a place for it, the account's minute
has room, the backend asked nobody to wait, and nobody waits before it. Else it waits in a bounded queue, where tenants
share by weight and sessions alike. Of a tenant's requests, those that continue a turn go ahead: turns that have begun
end soon, where all would otherwise advance together and none end for long. Those that are tried again have a queue of
their own, which is served first.

While it is in doubt whether the backend is down, one goes after the other. A backend that fails every time is not
asked: who comes is refused at once, and so are those who wait.

A request that waits to be tried again is not here: it holds no place and no slot of the queue. As long as no limit is
in force, to enter and to leave is to count.
"""

from collections.abc import Callable, Mapping
from math import inf

from msgspec import Struct, field

from actors import telemetry
from actors.adapters.failure import Failure
from actors.core.policy.fair import FairQueue
from actors.core.policy.pace import Breaker, Concurrency, MinuteBudget, RetryBudget
from actors.core.values.stream import Usage
from actors.errors import CircuitOpen, Overloaded
from actors.kernel.parking import Waiter, parking, wake

TOKENS_PER_BYTE = 0.25
"""What a byte of a request is reserved as, before usage was reported."""
LEARNING = 0.2
"""How much of its last error that figure makes up for with each report."""
PROBE = 0.001
LEAD = 8
"""Requests by which one that continues a turn goes ahead of its tenant's others. A longer turn waits with them."""
NEXT_PROBE = 1.0
"""Seconds after which, in doubt, one more request goes out beside one that has no answer yet."""
NEXT_FIRST = 0.1
"""Seconds between two requests that, in doubt, are tried for the first time: those that are tried again decide."""


class Pace(Struct, frozen=True):
    """What one backend is sent.

    Args:
        concurrency: Requests at once, at most; the rate limits it answers with lower it for a while.
        waiting: Requests that may wait for a place; one more is refused.
        requests, tokens: In any minute; None has no limit of its own.
        failures: Failed tries in a row after which it is left alone; what was in flight at the first counts as one.
        cooldown: Seconds for which it is.
        patience: Seconds that it may ask everybody to wait; if it asks for more, it is left alone meanwhile.
        weights: Of tenants, where their requests wait; 1 for one that is not named.
    """

    concurrency: int = 256
    waiting: int = 10_000
    requests: int | None = None
    tokens: int | None = None
    failures: int = 10
    cooldown: float = 30.0
    patience: float = 20.0
    weights: Mapping[str, float] = field(default_factory=dict)


class Ticket(Struct, eq=False):
    """One try of a request, the first or a later one, from before it enters until it has left.

    `size` is its body's, in bytes; `continues` says that its turn has had an answer already.
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
    """How a backend does.

    Args:
        in_flight, waiting: Requests of all sessions.
        limit: How many may be in flight now.
        closed_for: Seconds for which it is left alone; 0 if it is asked.
        failed: Seconds since a round failed for good with no answer to anybody since; None if none did.
    """

    in_flight: int
    waiting: int
    limit: int
    closed_for: float
    failed: float | None


class Admission:
    """Lets requests in.

    Args:
        name: Of the backend, for messages.
        pace: Its limits.
        now: The loop's clock.
        later: Calls a function at a time of that clock.
        least: Seconds that failures must last before the backend is left alone: one request's tries take as long.
    """

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
        self._hold = -inf  # until when nobody is let in, because the backend said so
        self._next_look = inf
        self.concurrency = Concurrency(pace.concurrency)
        self.breaker = Breaker(pace.failures, pace.cooldown, least)
        self.in_flight = self.answers = self._first_tries = self._in_doubt = 0
        self._probed = -inf  # when a request went out last in doubt

    @property
    def waiting(self) -> int:
        """How many wait for a place."""
        return self._again.size + self._queue.size

    def condition(self) -> Condition:
        """Return how the backend does."""
        now, breaker = self._now(), self.breaker
        wait = breaker.wait(now)
        return Condition(
            self.in_flight,
            self.waiting,
            int(self.concurrency.limit),
            0.0 if wait is None else max(wait, PROBE),  # while another probes, there is no knowing
            None if breaker.failed_at is None else now - breaker.failed_at,
        )

    async def enter(self, ticket: Ticket) -> None:
        """Wait for a place.

        Raises:
            CircuitOpen: The backend is left alone for now.
            Overloaded: As many wait as may.
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
        """Give the place back, with how the try ended; `usage` is None if it was stopped."""
        self.in_flight -= 1
        self._in_doubt -= ticket.is_in_doubt
        if self._tokens is not None and usage is not None:
            self._settle(self._tokens, ticket, failure, usage)
        if usage is None:
            if ticket.probes:
                self.breaker.cancel_probe()
        elif failure is None:
            self.answers += 1
            self._answered()
            if not ticket.is_first:
                self._retries.give_back()
        else:
            self._failed(ticket, failure)
        if self.waiting:
            self._serve()

    def begun(self, ticket: Ticket) -> None:
        """Note that a probe's answer has begun well: the breaker closes, and nobody waits for the answer's end."""
        if ticket.probes:
            ticket.probes = False
            if self.breaker.probing and self.breaker.record_answer():
                self._closed()
                self.concurrency.record_answer()  # beside it there is room for one
        elif ticket.is_in_doubt:
            ticket.is_in_doubt = False
            self._in_doubt -= 1
            if self.breaker.is_in_doubt:
                self.breaker.record_answer()
                self._serve()

    def may_retry(self, failure: Failure) -> bool:
        """Say whether one more retry is granted. Those of rate limits wait for a place, and multiply nothing."""
        if self.breaker.until is not None:
            return False
        return failure.kind == "rate_limit" or self._retries.take(self._first_tries, self._now())

    def gave_up(self) -> None:
        """Note that a round failed for good: for a while, pools pass over this backend."""
        self.breaker.failed_at = self._now()

    def hold(self, seconds: float) -> None:
        """Let nobody in for so long, as the backend asks; nothing if that is longer than anybody is made to wait."""
        if seconds <= self._pace.patience:
            self._hold = max(self._hold, self._now() + seconds)

    def _probe(self, ticket: Ticket) -> None:
        """Let one request through a breaker that is half-open, whatever else is in flight."""
        if (wait := self.breaker.wait(self._now())) is not None:
            raise self._open(wait)
        ticket.probes = self.breaker.probe()
        self._begin(ticket)

    def _queue_of(self, ticket: Ticket) -> FairQueue[Ticket]:
        return self._queue if ticket.is_first else self._again

    def _must_wait(self, ticket: Ticket) -> bool:
        """Say whether others wait that go before it."""
        return bool(self._again.size or (ticket.is_first and self._queue.size))

    def _most_waiting(self, ticket: Ticket) -> int:
        """Return how many may wait. What had a place may wait for another: it has been accepted."""
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
        """Say whether there is room for a request now. If only time will make some, look again then."""
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
        ticket.waiter = parking().waiter()
        queue = self._queue_of(ticket)
        queue.put(ticket.tenant, ticket.session, ticket)
        try:
            await ticket.waiter
        except BaseException:  # it was stopped, before or just after its turn came
            if ticket.is_in:
                self.leave(ticket, None, None)
            else:
                queue.remove(ticket.tenant, ticket.session, ticket)
                self._serve()  # it may have been what the others waited behind
            raise
        if not ticket.is_in:
            raise self._open(self.breaker.wait(self._now()) or 0.0)

    def _look(self) -> None:
        self._next_look = inf
        self._serve()

    def _serve(self) -> None:
        """Let in those who wait, in turn, as far as there is room."""
        while self.waiting:
            queue = self._again if self._again.size else self._queue
            if not self._fits(ticket := queue.first()):
                break
            queue.take(self._cost(ticket))
            self._begin(ticket)
            wake(ticket.waiter)

    def _cost(self, ticket: Ticket) -> float:
        """Return what a session is charged for a request: one, or its tokens where those are limited."""
        return max(1.0, ticket.size * self._per_byte) if self._tokens is not None else 1.0

    def _lead(self, ticket: Ticket) -> float:
        return LEAD * self._cost(ticket) if ticket.continues else 0.0

    def _settle(self, budget: MinuteBudget, ticket: Ticket, failure: Failure | None, usage: Usage) -> None:
        used = usage.input_tokens + usage.output_tokens
        if used and ticket.size:
            self._per_byte += LEARNING * (used / ticket.size - self._per_byte)
        if used or failure is not None:
            budget.settle(ticket.second, ticket.tokens, used)

    def _answered(self) -> None:
        breaker = self.breaker
        if (
            breaker.in_a_row or breaker.failed_at is not None or breaker.until is not None
        ) and breaker.record_answer():
            self._closed()
        elif self.concurrency.limit < self._pace.concurrency:
            self.concurrency.record_answer()

    def _closed(self) -> None:
        """Begin again at one request: the breaker was open, and is closed."""
        self.concurrency.restart()
        telemetry.circuit_closed(self._name)

    def _failed(self, ticket: Ticket, failure: Failure) -> None:
        """Learn from a failed try, and log that the breaker opens, if it does."""
        was_open = self.breaker.until is not None
        self._learn(ticket, failure)
        if not was_open and (until := self.breaker.until) is not None:
            telemetry.circuit_opened(self._name, until - self._now(), self.breaker.in_a_row)

    def _learn(self, ticket: Ticket, failure: Failure) -> None:
        """Learn from a failed try. Whatever the backend says but that it is down shows that it is there."""
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
        """Refuse all who wait: the breaker has opened."""
        for ticket in (*self._again.clear(), *self._queue.clear()):
            wake(ticket.waiter)
