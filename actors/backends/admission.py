"""Admission: which of the requests that sessions have for a backend goes now.

Each backend has one, and its provider actor owns it. A request goes if there is a place for it, the account's minute
has room, the backend asked nobody to wait, and nobody waits before it. Else it waits in a bounded queue, where tenants
share by weight and sessions alike. Of a tenant's requests, those that continue a turn go ahead: turns that have begun
end soon, where all would otherwise advance together and none end for long.

A backend that fails every time is not asked: who comes is refused at once, and so are those who wait.

A request that waits to be tried again is not here: it holds no place and no slot of the queue. As long as no limit is
in force, to enter and to leave is to count.
"""

from collections.abc import Callable, Mapping
from math import inf

from msgspec import Struct, field

from actors.adapters.failure import Failure
from actors.core.fair import FairQueue
from actors.core.pace import Breaker, Concurrency, MinuteBudget, RetryBudget
from actors.core.stream import Usage
from actors.errors import CircuitOpen, Overloaded
from actors.kernel.parking import Waiter, parking, wake

TOKENS_PER_BYTE = 0.25
"""What a byte of a request is reserved as, before usage was reported."""
LEARNING = 0.2
"""How much of its last error that figure makes up for with each report."""
PROBE = 0.001
LEAD = 8
"""Requests by which one that continues a turn goes ahead of its tenant's others. A longer turn waits with them."""


class Pace(Struct, frozen=True):
    """What one backend is sent.

    Args:
        concurrency: Requests at once, at most; the rate limits it answers with lower it for a while.
        waiting: Requests that may wait for a place; one more is refused.
        requests, tokens: In any minute; None has no limit of its own.
        failures: Failed tries in a row after which it is left alone.
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
    probes: bool = False
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
    """

    def __init__(
        self,
        name: str,
        pace: Pace,
        now: Callable[[], float],
        later: Callable[[float, Callable[[], None]], object],
    ) -> None:
        self._name = name
        self._pace = pace
        self._now = now
        self._later = later
        self._queue: FairQueue[Ticket] = FairQueue(pace.weights, self._lead)
        self._requests = MinuteBudget(pace.requests) if pace.requests else None
        self._tokens = MinuteBudget(pace.tokens) if pace.tokens else None
        self._retries = RetryBudget(burst=max(10.0, pace.concurrency))
        self._per_byte = TOKENS_PER_BYTE
        self._hold = -inf  # until when nobody is let in, because the backend said so
        self._next_look = inf
        self.concurrency = Concurrency(pace.concurrency)
        self.breaker = Breaker(pace.failures, pace.cooldown)
        self.in_flight = self._first_tries = 0

    @property
    def waiting(self) -> int:
        """How many wait for a place."""
        return self._queue.size

    def condition(self) -> Condition:
        """Return how the backend does."""
        now, breaker = self._now(), self.breaker
        wait = breaker.wait(now)
        return Condition(
            self.in_flight,
            self._queue.size,
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
        elif not self._queue.size and self._fits(ticket):
            self._begin(ticket)
        elif self._queue.size >= self._pace.waiting:
            raise Overloaded(
                f"{self._queue.size} requests wait for backend {self._name!r}, and limits.waiting is "
                f"{self._pace.waiting}; ask later, ask less at a time, or raise it or limits.concurrency"
            )
        else:
            await self._wait(ticket)

    def leave(self, ticket: Ticket, failure: Failure | None, usage: Usage | None) -> None:
        """Give the place back, with how the try ended; `usage` is None if it was stopped."""
        self.in_flight -= 1
        if self._tokens is not None and usage is not None:
            self._settle(self._tokens, ticket, failure, usage)
        if usage is None:
            if ticket.probes:
                self.breaker.withdrawn()
        elif failure is None:
            self._answered()
        else:
            self._failed(ticket, failure)
        if self._queue.size:
            self._serve()

    def begun(self, ticket: Ticket) -> None:
        """Note that a probe's answer has begun well: the breaker closes, and nobody waits for the answer's end."""
        ticket.probes = False
        if self.breaker.probing and self.breaker.answered():
            self.concurrency.restart()
            self.concurrency.answered()  # beside it there is room for one

    def may_retry(self) -> bool:
        """Say whether one more retry is granted."""
        return self.breaker.until is None and self._retries.take(self._first_tries, self._now())

    def gave_up(self) -> None:
        """Note that a round failed for good: for a while, pools pass over this backend."""
        self.breaker.failed_at = self._now()

    def hold(self, seconds: float) -> None:
        """Let nobody in for so long: the backend asks for it."""
        self._hold = max(self._hold, self._now() + min(seconds, self._pace.patience))

    def _probe(self, ticket: Ticket) -> None:
        """Let one request through a breaker that is half-open, whatever else is in flight."""
        if (wait := self.breaker.wait(self._now())) is not None:
            raise self._open(wait)
        ticket.probes = self.breaker.probe()
        self._begin(ticket)

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
        if self._hold == -inf and self._requests is None and self._tokens is None:
            return True
        now = self._now()
        wait = self._hold - now
        if wait <= 0:
            self._hold = -inf
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
        ticket.is_in, ticket.wave = True, self.concurrency.wave
        self.in_flight += 1
        if self._requests is not None:
            self._requests.reserve(1, self._now())
        if self._tokens is not None:
            ticket.tokens = ticket.size * self._per_byte
            ticket.second = self._tokens.reserve(ticket.tokens, self._now())

    async def _wait(self, ticket: Ticket) -> None:
        ticket.waiter = parking().waiter()
        self._queue.put(ticket.tenant, ticket.session, ticket)
        try:
            await ticket.waiter
        except BaseException:  # it was stopped, before or just after its turn came
            if ticket.is_in:
                self.leave(ticket, None, None)
            else:
                self._queue.remove(ticket.tenant, ticket.session, ticket)
                self._serve()  # it may have been what the others waited behind
            raise
        if not ticket.is_in:
            raise self._open(self.breaker.wait(self._now()) or 0.0)

    def _look(self) -> None:
        self._next_look = inf
        self._serve()

    def _serve(self) -> None:
        """Let in those who wait, in turn, as far as there is room."""
        while self._queue.size and self._fits(ticket := self._queue.first()):
            self._queue.take(self._cost(ticket))
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
        ) and breaker.answered():
            self.concurrency.restart()
        elif self.concurrency.limit < self._pace.concurrency:
            self.concurrency.answered()

    def _failed(self, ticket: Ticket, failure: Failure) -> None:
        """Learn from a failed try. Whatever the backend says but that it is down shows that it is there."""
        asked = failure.retry_after
        if failure.kind == "rate_limit":
            self.concurrency.limited(ticket.wave)
            if asked is not None and asked <= self._pace.patience:
                self.hold(asked)
        if failure.kind == "transient":
            if (self.breaker.until is None or ticket.probes) and self.breaker.failed(self._now()):
                self._turn_away()
        elif failure.kind == "rate_limit" and (ticket.probes or (asked or 0) > self._pace.patience):
            self.breaker.open(self._now(), min(asked or inf, self._pace.cooldown))
            self._turn_away()
        elif failure.status is not None:
            self.breaker.answered()
        elif ticket.probes:
            self.breaker.withdrawn()

    def _turn_away(self) -> None:
        """Refuse all who wait: the breaker has opened."""
        for ticket in self._queue.clear():
            wake(ticket.waiter)
