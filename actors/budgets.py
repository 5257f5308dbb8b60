"""A budget that several sessions use at the same time: those below the calls of one batch.

Each request of theirs counts when it has been answered, and until then as what it may come to: one round, and `GROWTH`
times the tokens and the money of the largest request that was answered before. A request for which that leaves nothing
waits until another has been answered, and then looks again. So what is used exceeds the budget by one request, as in a
session alone, if none is more than `GROWTH` times as large as all before it.
"""

from collections.abc import Callable

from actors.core.form import replace
from actors.core.identity import Binding
from actors.core.spending import Budget, Cost, Used, left, total, why_over
from actors.core.stream import Usage
from actors.kernel.parking import Changes, Parking

GROWTH = 2


class SharedBudget:
    """What is left for the sessions below one, while a batch of its calls runs.

    Args:
        budget: Of the session above. Its seconds are counted there: the calls are in them.
        before: What that had used when the batch began.
        cost: What usage costs, by the prices of the session above.
        parking: How a task waits.
    """

    __slots__ = ("_budget", "_changes", "_cost", "_in_flight", "_largest", "_used", "before")

    def __init__(self, budget: Budget, before: Used, cost: Cost, parking: Parking) -> None:
        self._budget, self.before, self._cost = replace(budget, seconds=None), before, cost
        self._used = before
        requests = max(before.rounds, 1)
        self._largest = before.tokens / requests, (self._money or 0.0) / requests
        self._in_flight = 0
        self._changes = Changes(parking)

    @property
    def left(self) -> Budget:
        """What a session that is opened now may use. Raises `OverBudget` where nothing is left."""
        return left(self._budget, self._used, self._cost)

    async def admitted(self, is_stopped: Callable[[], bool]) -> str | None:
        """Wait until there is room for a request, and count it as in flight; else return why there will be none.

        One that is stopped meanwhile is not counted.
        """
        while not is_stopped():
            if (why := why_over(self._budget, self._used, self._cost)) is not None:
                return why
            if not self._in_flight or self._is_roomy():
                self._in_flight += 1
                return None
            await self._changes.next()
        return None

    def look_again(self) -> None:
        """Have those who wait look whether they were stopped, and whether there is room."""
        self._changes.tell()

    def settle(self, binding: Binding, usage: Usage, *, is_round: bool) -> None:
        """Count what a request has used. `is_round`: as a round too."""
        self._used = replace(self._used.plus(binding, usage), rounds=self._used.rounds + is_round)
        tokens, money = self._largest
        used = usage.input_tokens + usage.output_tokens
        self._largest = max(tokens, used), max(money, self._cost(binding, usage) or 0.0)

    def ended(self) -> None:
        """Note that a request is in flight no more."""
        self._in_flight -= 1
        self._changes.tell()

    def _is_roomy(self) -> bool:
        """Say whether something is left behind the requests in flight."""
        budget, used, flying = self._budget, self._used, self._in_flight
        tokens, money = self._largest
        return (
            (budget.rounds is None or used.rounds + flying < budget.rounds)
            and (budget.tokens is None or used.tokens + flying * GROWTH * tokens < budget.tokens)
            and (budget.money is None or (self._money or 0.0) + flying * GROWTH * money < budget.money)
        )

    @property
    def _money(self) -> float | None:
        return total(self._cost(binding, usage) for binding, usage in self._used.usage)


class Share:
    """One session's requests under a budget that it shares, one at a time."""

    __slots__ = ("_is_counted", "_shared")

    def __init__(self, shared: SharedBudget) -> None:
        self._shared, self._is_counted = shared, False

    async def admitted(self, is_stopped: Callable[[], bool]) -> str | None:
        """Have the next request counted; see `SharedBudget.admitted`."""
        self.ended()
        why = await self._shared.admitted(is_stopped)
        self._is_counted = why is None and not is_stopped()
        return why

    def look_again(self) -> None:
        """See `SharedBudget.look_again`."""
        self._shared.look_again()

    def settle(self, binding: Binding, usage: Usage, *, is_round: bool) -> None:
        """Count what a request has used; it is in flight no more."""
        if is_round or usage != Usage():
            self._shared.settle(binding, usage, is_round=is_round)
        self.ended()

    def ended(self) -> None:
        """Note that this session's request is in flight no more."""
        if self._is_counted:
            self._is_counted = False
            self._shared.ended()
