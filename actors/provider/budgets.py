"""Share budgets among sessions: of a tenant, of a pool, or of the subagents below a batch of calls.

A request counts with its actual usage when it has been answered, and with an estimate until then. If the budget has
no room for it, it waits until an answered request frees some; the oldest request goes first, unless another budget
blocks it. So the usage exceeds a budget by at most one request, as in a single session, if the estimates are right.

A request waits in the line of a single budget without room, so the line of a budget with room is empty. The end of a
request wakes only the requests that go next: waking thousands each time would take minutes.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from operator import attrgetter
from typing import Self

from msgspec import Struct

from actors.core.data.record import replace
from actors.core.settings.spending import PERIOD_SECONDS, Budget, Cost, Used, remaining_budget, why_over
from actors.core.stats.stats import BudgetStats
from actors.core.values.identity import Binding
from actors.core.values.stream import Usage
from actors.kernel.event_loop import EventLoop, Waiter, wake

_ARRIVALS = count(1)
_arrived = attrgetter("arrived")


class Demand(Struct, frozen=True):
    """The estimated usage of a request."""

    tokens: int = 0
    money: float = 0.0

    def __sub__(self, other: "Demand") -> "Demand":
        return Demand(self.tokens - other.tokens, self.money - other.money)


class Window:
    """The consecutive periods of a budget.

    Args:
        seconds: Length of a period.
        now: A monotonic clock, in seconds.
    """

    __slots__ = ("_from", "_now", "_seconds")

    def __init__(self, seconds: float, now: Callable[[], float]) -> None:
        self._seconds, self._now, self._from = seconds, now, now()

    @property
    def seconds_left(self) -> float:
        """Seconds until the next period begins."""
        return self._from + self._seconds - self._now()

    def roll_over(self) -> bool:
        """Return True if a new period has begun since the last call, and move to it."""
        if (over := -self.seconds_left) < 0:
            return False
        self._from = self._now() - over % self._seconds
        return True


class SharedBudget:
    """A budget that several sessions share.

    Args:
        budget: The limits. Seconds are ignored: the time of subagents is part of their call's.
        before: The usage so far.
        cost: Returns the cost of usage.
        loop: Creates waiters.
        whose: Description of the budget for messages.
        window: The periods after which the budget restarts; None without periods.
    """

    __slots__ = (
        "_budget",
        "_cost",
        "_in_flight",
        "_reserved",
        "_used",
        "_window",
        "before",
        "line",
        "refused",
        "waiter",
        "whose",
    )

    before: Used
    whose: str

    def __init__(
        self,
        budget: Budget,
        before: Used,
        cost: Cost,
        loop: EventLoop,
        whose: str = "the session's budget",
        window: Window | None = None,
    ) -> None:
        self._budget, self.before, self._cost = replace(budget, seconds=None), before, cost
        self._used, self._window, self.whose = before, window, whose
        self._in_flight, self._reserved = 0, Demand()
        self.waiter: Callable[[], Waiter] = loop.waiter
        self.refused: int = 0
        """Requests and asks rejected because the budget was used up."""
        self.line: list[Share] = []
        """The sessions whose requests wait for this budget, oldest first."""

    @property
    def remaining(self) -> Budget:
        """The budget for a session that is opened now. Raises `OverBudget` if the shared budget is used up."""
        return remaining_budget(self._budget, self.used, self._cost)

    @property
    def used(self) -> Used:
        """The usage in this period."""
        if self._window is not None and self._window.roll_over():
            self._used = Used()
        return self._used

    @property
    def counts_money(self) -> bool:
        """True if the budget needs prices."""
        return self._budget.money is not None

    def why_over(self) -> str | None:
        """Return which limit is used up, in one line; None if none is."""
        why = why_over(self._budget, self.used, self._cost, self.whose)
        if why is None or self._window is None:
            return why
        return f"{why}; it begins anew in {self._window.seconds_left:.0f} s"

    def is_roomy(self) -> bool:
        """Return True if the budget has room in addition to the requests in flight."""
        budget, used, reserved = self._budget, self.used, self._reserved
        return not self._in_flight or (
            (budget.rounds is None or used.rounds + self._in_flight < budget.rounds)
            and (budget.tokens is None or used.tokens + reserved.tokens < budget.tokens)
            and (budget.money is None or (used.total_cost(self._cost) or 0.0) + reserved.money < budget.money)
        )

    @property
    def is_open(self) -> bool:
        """True if no request has to wait: the budget has room, or is used up."""
        return self.is_roomy() or self.why_over() is not None

    def reserve(self, demand: Demand) -> None:
        """Count a request as in flight."""
        self._in_flight += 1
        self._reserved = Demand(self._reserved.tokens + demand.tokens, self._reserved.money + demand.money)

    def release(self, demand: Demand) -> None:
        """Stop counting a request as in flight."""
        self._in_flight -= 1
        self._reserved = self._reserved - demand if self._in_flight else Demand()

    def settle(self, binding: Binding, usage: Usage, *, is_round: bool) -> None:
        """Count the usage of a request; with `is_round`, as a round too."""
        self._used = replace(self.used.plus(binding, usage), rounds=self.used.rounds + is_round)

    @property
    def stats(self) -> BudgetStats:
        """The limits and the usage so far."""
        budget, used, window = self._budget, self.used, self._window
        return BudgetStats(
            rounds=budget.rounds,
            tokens=budget.tokens,
            money=budget.money,
            used_rounds=used.rounds,
            used_tokens=used.tokens,
            used_money=used.total_cost(self._cost) if self.counts_money else None,
            reserved_tokens=self._reserved.tokens,
            in_flight=self._in_flight,
            refused=self.refused,
            left_seconds=None if window is None else window.seconds_left,
        )


class Share:
    """The requests of one session under its shared budgets, one at a time. Leaving its context releases the request."""

    __slots__ = ("_budgets", "_demand", "_reserved", "_waiter", "_waits_for", "arrived")

    def __init__(self, *budgets: SharedBudget) -> None:
        self._budgets = budgets
        self._demand = Demand()
        self._reserved: Demand | None = None
        self._waiter: Waiter | None = None
        self._waits_for: SharedBudget | None = None
        self.arrived: int = 0
        """The number of the waiting request; older requests have lower numbers."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    @property
    def is_empty(self) -> bool:
        """True if the session shares no budget."""
        return not self._budgets

    async def admit(self, demand: Demand, is_stopped: Callable[[], bool]) -> str | None:
        """Wait until each budget has room and count the request as in flight; if a budget is used up, return why.

        A request that is stopped while it waits is not counted.
        """
        self.release()
        self._demand = demand
        try:
            why = await self._wait_for_room(is_stopped)
        except BaseException:
            self.release()
            raise
        finally:
            self._leave()
            self.arrived, self._waiter = 0, None
        if why is not None or is_stopped():
            self.release()
        return why

    async def _wait_for_room(self, is_stopped: Callable[[], bool]) -> str | None:
        """Return after the request was counted or stopped; return a reason if a budget is used up."""
        while not is_stopped():
            for budget in self._budgets:
                if (why := budget.why_over()) is not None:
                    budget.refused += 1
                    return why
            if self._reserved is None:
                self._waiter = None
                _share_room(self._budgets)  # a new period may have begun
                self.proceed()
            if self._reserved is not None:
                return None
            self._waiter = self._budgets[0].waiter()
            await self._waiter
        return None

    def proceed(self) -> None:
        """Count the request and wake it, or queue it in the line of a budget without room."""
        self._leave()
        full = next((each for each in self._budgets if not each.is_open), None)
        if full is not None:
            self.arrived = self.arrived or next(_ARRIVALS)
            self._waits_for = full
            insort(full.line, self, key=_arrived)
            return
        if all(each.why_over() is None for each in self._budgets):
            self._reserved = self._demand
            for budget in self._budgets:
                budget.reserve(self._demand)
        wake(self._waiter)

    def _leave(self) -> None:
        """Leave the line in which the request waits, if any. This frees no room for other requests."""
        if (budget := self._waits_for) is not None:
            self._waits_for = None
            del budget.line[bisect_left(budget.line, self.arrived, key=_arrived)]

    @property
    def is_in_flight(self) -> bool:
        """True if a request is counted as in flight."""
        return self._reserved is not None

    def look_again(self) -> None:
        """Wake the waiting request to check whether it was stopped, has room, or will never have room."""
        wake(self._waiter)

    def settle(self, binding: Binding, usage: Usage, *, is_round: bool) -> None:
        """Count the usage of the request, which is no longer in flight."""
        if is_round or usage != Usage():
            for budget in self._budgets:
                budget.settle(binding, usage, is_round=is_round)
        self.release()

    def release(self) -> None:
        """Stop counting this session's request as in flight."""
        if (demand := self._reserved) is not None:
            self._reserved = None
            for budget in self._budgets:
                budget.release(demand)
            _share_room(self._budgets)


def _share_room(budgets: Sequence[SharedBudget]) -> None:
    """Assign the room of the budgets to their waiting requests, oldest first."""
    while found := [budget for budget in budgets if budget.line and budget.is_open]:
        min((budget.line[0] for budget in found), key=_arrived).proceed()


class RuntimeBudgets:
    """The budgets of a runtime's tenants and pools. Usage counts from the start of the runtime.

    Args:
        budgets: By `tenants.NAME` and `pools.NAME`.
        cost: Returns the cost of usage.
        loop: Creates waiters.
        now: A monotonic clock, in seconds.
    """

    def __init__(
        self, budgets: Mapping[str, Budget], cost: Cost, loop: EventLoop, now: Callable[[], float]
    ) -> None:
        self._budgets = {
            name: _shared_budget(name, budget, cost, loop, now) for name, budget in budgets.items()
        }

    def of(self, tenant: str, target: str) -> tuple[SharedBudget, ...]:
        """Return the budgets that apply to a session's requests."""
        budgets = self._budgets
        if not budgets:
            return ()
        found = budgets.get(f"tenants.{tenant}"), budgets.get(f"pools.{target}")
        return tuple(budget for budget in found if budget is not None)

    @property
    def stats(self) -> dict[str, BudgetStats]:
        """The stats of each budget."""
        return {name: budget.stats for name, budget in self._budgets.items()}


def _shared_budget(
    name: str, budget: Budget, cost: Cost, loop: EventLoop, now: Callable[[], float]
) -> SharedBudget:
    table, _, owner = name.partition(".")
    window = None if budget.per is None else Window(PERIOD_SECONDS[budget.per], now)
    length = "" if budget.per is None else f" per {budget.per}"
    return SharedBudget(budget, Used(), cost, loop, f"the budget{length} of {table[:-1]} {owner!r}", window)
