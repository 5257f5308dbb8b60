"""Share budgets among sessions. A shared budget belongs to a tenant, to a pool, or to the subagents that one batch of
tool calls started.

While a request is in flight, the budget counts an estimate of its usage, and after the answer its actual usage. If the
budget has no room for a request, the request waits until another request is answered. The oldest waiting request goes
first, unless another budget blocks it. If the estimates are correct, usage exceeds a budget by at most one request, as
with a single session's own budget.

A waiting request is in the queue of exactly one budget, which is one of those that have no room for it. A budget with
room has an empty queue. When a request ends, only the requests that can start are woken, because waking thousands each
time would take minutes.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from operator import attrgetter
from typing import Self

from msgspec import Struct

from actors.core.data.record import replace
from actors.core.settings.spending import (
    PERIOD_SECONDS,
    Budget,
    Cost,
    SessionUsage,
    exhausted_limit,
    remaining_budget,
)
from actors.core.stats.stats import BudgetStats
from actors.core.values.identity import Binding
from actors.core.values.stream import Usage
from actors.kernel.event_loop import EventLoop, Waiter, wake

_ARRIVALS = count(1)
_arrived = attrgetter("arrived")


class Demand(Struct, frozen=True):
    """The estimated usage of one request, in tokens and in money. The currency is that of the configured prices."""

    tokens: int = 0
    money: float = 0.0

    def __sub__(self, other: "Demand") -> "Demand":
        return Demand(self.tokens - other.tokens, self.money - other.money)


class Window:
    """Divides time into consecutive periods of equal length. A budget with a window restarts with each period.

    Args:
        seconds: Length of a period.
        now: A monotonic clock, in seconds.
    """

    __slots__ = ("_now", "_period_start", "_seconds")

    def __init__(self, seconds: float, now: Callable[[], float]) -> None:
        self._seconds, self._now, self._period_start = seconds, now, now()

    @property
    def seconds_left(self) -> float:
        """Seconds until the next period begins."""
        return self._period_start + self._seconds - self._now()

    def roll_over(self) -> bool:
        """If the current period has ended, begin the next one and return True. Otherwise, return False."""
        if (over := -self.seconds_left) < 0:
            return False
        self._period_start = self._now() - over % self._seconds
        return True


class SharedBudget:
    """A budget that several sessions share.

    Args:
        budget: The limits. The time limit is ignored, because the time of a tool call includes the time of its
            subagents.
        used_before: The usage that counted against the budget before this object was created.
        cost: Returns the cost of usage.
        loop: The event loop, in which requests wait.
        owner_label: Description of the budget, for error messages.
        window: The periods after which the budget restarts. `None` means that it never restarts.
    """

    __slots__ = (
        "_budget",
        "_cost",
        "_in_flight",
        "_reserved",
        "_used",
        "_window",
        "owner_label",
        "queue",
        "refused",
        "used_before",
        "waiter",
    )

    used_before: SessionUsage
    owner_label: str

    def __init__(
        self,
        budget: Budget,
        used_before: SessionUsage,
        cost: Cost,
        loop: EventLoop,
        owner_label: str = "the session's budget",
        window: Window | None = None,
    ) -> None:
        self._budget, self.used_before, self._cost = replace(budget, seconds=None), used_before, cost
        self._used, self._window, self.owner_label = used_before, window, owner_label
        self._in_flight, self._reserved = 0, Demand()
        self.waiter: Callable[[], Waiter] = loop.waiter
        self.refused: int = 0
        """Number of requests and asks that were rejected because the budget was used up."""
        self.queue: list[Share] = []
        """The shares of the sessions whose requests wait for this budget, oldest first."""

    @property
    def remaining(self) -> Budget:
        """The unused part of the budget, as the budget of a new session. Raises `OverBudget` if nothing is left."""
        return remaining_budget(self._budget, self.used, self._cost)

    @property
    def used(self) -> SessionUsage:
        """The usage in the current period."""
        if self._window is not None and self._window.roll_over():
            self._used = SessionUsage()
        return self._used

    @property
    def counts_money(self) -> bool:
        """True if the budget limits money, so that prices are required."""
        return self._budget.money is not None

    def used_up_limit(self) -> str | None:
        """Return one line that states which limit is used up, or None if no limit is."""
        why = exhausted_limit(self._budget, self.used, self._cost, self.owner_label)
        if why is None or self._window is None:
            return why
        return f"{why}; the budget restarts in {self._window.seconds_left:.0f} s"

    def has_room(self) -> bool:
        """Return True if the budget has room for one more request in addition to the requests in flight."""
        budget, used, reserved = self._budget, self.used, self._reserved
        return not self._in_flight or (
            (budget.rounds is None or used.rounds + self._in_flight < budget.rounds)
            and (budget.tokens is None or used.tokens + reserved.tokens < budget.tokens)
            and (budget.money is None or (used.total_cost(self._cost) or 0.0) + reserved.money < budget.money)
        )

    @property
    def is_open(self) -> bool:
        """True if requests need not wait, either because the budget has room, or because it is used up and rejects
        them.
        """
        return self.has_room() or self.used_up_limit() is not None

    def reserve(self, demand: Demand) -> None:
        """Count a request as in flight, with its estimated usage."""
        self._in_flight += 1
        self._reserved = Demand(self._reserved.tokens + demand.tokens, self._reserved.money + demand.money)

    def release(self, demand: Demand) -> None:
        """Stop counting a request as in flight."""
        self._in_flight -= 1
        self._reserved = self._reserved - demand if self._in_flight else Demand()

    def record_usage(self, binding: Binding, usage: Usage, *, is_round: bool) -> None:
        """Add the actual usage of a request. With `is_round`, the request counts as a round as well."""
        self._used = replace(self.used.plus(binding, usage), rounds=self.used.rounds + is_round)

    @property
    def stats(self) -> BudgetStats:
        """The limits, and the usage in the current period."""
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
    """The current request of one session, as the session's shared budgets count it.

    After the context manager is exited, the budgets do not count the request as in flight any more.
    """

    __slots__ = ("_budgets", "_demand", "_reserved", "_waiter", "_waits_for", "arrived")

    def __init__(self, *budgets: SharedBudget) -> None:
        self._budgets = budgets
        self._demand = Demand()
        self._reserved: Demand | None = None
        self._waiter: Waiter | None = None
        self._waits_for: SharedBudget | None = None
        self.arrived: int = 0
        """The number of the waiting request, in order of arrival; 0 if no request waits."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    @property
    def is_empty(self) -> bool:
        """True if the session has no shared budgets."""
        return not self._budgets

    async def admit(self, demand: Demand, is_stopped: Callable[[], bool]) -> str | None:
        """Wait until every budget has room, count the request as in flight, and return None. If a budget is used up,
        return one line that states which limit.

        A request that is stopped while it waits is not counted. In this case, too, the result is None.
        """
        self.release()
        self._demand = demand
        try:
            why = await self._wait_until_counted(is_stopped)
        except BaseException:
            self.release()
            raise
        finally:
            self._leave_queue()
            self.arrived, self._waiter = 0, None
        if why is not None or is_stopped():
            self.release()
        return why

    async def _wait_until_counted(self, is_stopped: Callable[[], bool]) -> str | None:
        """Wait until the request is counted or stopped, and return None. If a budget is used up, return one line that
        states which limit.
        """
        while not is_stopped():
            for budget in self._budgets:
                if (why := budget.used_up_limit()) is not None:
                    budget.refused += 1
                    return why
            if self._reserved is None:
                self._waiter = None
                _admit_waiting(self._budgets)  # a new period may have begun
                self.reserve_or_queue()
            if self._reserved is not None:
                return None
            self._waiter = self._budgets[0].waiter()
            await self._waiter
        return None

    def reserve_or_queue(self) -> None:
        """Count the request as in flight and wake it, or add it to the queue of a budget without room."""
        self._leave_queue()
        full = next((each for each in self._budgets if not each.is_open), None)
        if full is not None:
            self.arrived = self.arrived or next(_ARRIVALS)
            self._waits_for = full
            insort(full.queue, self, key=_arrived)
            return
        if all(each.used_up_limit() is None for each in self._budgets):
            self._reserved = self._demand
            for budget in self._budgets:
                budget.reserve(self._demand)
        wake(self._waiter)

    def _leave_queue(self) -> None:
        """Remove the request from the queue in which it waits, if any. This does not make room for other requests."""
        if (budget := self._waits_for) is not None:
            self._waits_for = None
            del budget.queue[bisect_left(budget.queue, self.arrived, key=_arrived)]

    @property
    def is_in_flight(self) -> bool:
        """True if the session's request is counted as in flight."""
        return self._reserved is not None

    def recheck(self) -> None:
        """Wake the waiting request, so that it checks whether it was stopped or a budget has changed."""
        wake(self._waiter)

    def record_usage(self, binding: Binding, usage: Usage, *, is_round: bool) -> None:
        """Add the usage of a finished request to every budget.

        With `is_round`, the request counts as a round as well.
        """
        if is_round or usage != Usage():
            for budget in self._budgets:
                budget.record_usage(binding, usage, is_round=is_round)
        self.release()

    def release(self) -> None:
        """Stop counting this session's request as in flight, and start waiting requests that now have room."""
        if (demand := self._reserved) is not None:
            self._reserved = None
            for budget in self._budgets:
                budget.release(demand)
            _admit_waiting(self._budgets)


def _admit_waiting(budgets: Sequence[SharedBudget]) -> None:
    """Start the waiting requests for which the budgets have room, oldest first."""
    while found := [budget for budget in budgets if budget.queue and budget.is_open]:
        min((budget.queue[0] for budget in found), key=_arrived).reserve_or_queue()


class RuntimeBudgets:
    """The budgets of a runtime's tenants and pools. Usage counts from the start of the runtime.

    Args:
        budgets: The limits, by `tenants.NAME` or `pools.NAME`.
        cost: Returns the cost of usage.
        loop: The event loop, in which requests wait.
        now: A monotonic clock, in seconds.
    """

    def __init__(
        self, budgets: Mapping[str, Budget], cost: Cost, loop: EventLoop, now: Callable[[], float]
    ) -> None:
        self._budgets = {
            name: _shared_budget(name, budget, cost, loop, now) for name, budget in budgets.items()
        }

    def budgets_of(self, tenant: str, target: str) -> tuple[SharedBudget, ...]:
        """Return the budgets that apply to the tenant's requests to a target: the tenant's budget and the target's
        budget.
        """
        budgets = self._budgets
        if not budgets:
            return ()
        found = budgets.get(f"tenants.{tenant}"), budgets.get(f"pools.{target}")
        return tuple(budget for budget in found if budget is not None)

    @property
    def stats(self) -> dict[str, BudgetStats]:
        """The limits and the usage of each budget, by its name."""
        return {name: budget.stats for name, budget in self._budgets.items()}


def _shared_budget(
    name: str, budget: Budget, cost: Cost, loop: EventLoop, now: Callable[[], float]
) -> SharedBudget:
    """Create the shared budget with the given name, such as `tenants.acme`."""
    table, _, owner = name.partition(".")
    window = None if budget.per is None else Window(PERIOD_SECONDS[budget.per], now)
    length = "" if budget.per is None else f" per {budget.per}"
    return SharedBudget(
        budget, SessionUsage(), cost, loop, f"the budget{length} of {table[:-1]} {owner!r}", window
    )
