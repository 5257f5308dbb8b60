"""Define prices and budgets, and count the usage of sessions.

Sessions, providers and the configuration use this module. A missing price makes every cost that needs it unknown;
costs are never estimated.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Final, Literal, TypeAlias

from actors.core.data.record import StoredRecord, replace
from actors.core.settings.ranges import Range, check_fields, number, positive, whole, word
from actors.core.values.identity import Binding
from actors.core.values.stream import Usage
from actors.errors import ConfigError, OverBudget

MILLION = 1_000_000


class Price(StoredRecord, frozen=True):
    """The price of a million tokens of a model. All prices must be in one currency.

    Args:
        input: The price of input tokens.
        output: The price of output tokens.
        cache_read, cache_write: The prices of input tokens that are read from and written to the provider's cache.
            Without them, the cost of usage with cached tokens is unknown.
        context: Not a price: the context window of the model, in tokens of a request and its answer together.
    """

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    context: int | None = None

    def of(self, usage: Usage) -> float | None:
        """Return the cost of this usage; None if a price is missing."""
        read, written = usage.cache_read_tokens, usage.cache_write_tokens
        if (read and self.cache_read is None) or (written and self.cache_write is None):
            return None
        plain = max(usage.input_tokens - read - written, 0)
        cached = read * (self.cache_read or 0) + written * (self.cache_write or 0)
        return (plain * self.input + usage.output_tokens * self.output + cached) / MILLION


_MONEY = number("a finite number from 0", 0)
PRICE_RANGES: Final[Mapping[str, Range]] = {
    **dict.fromkeys(("input", "output", "cache_read", "cache_write"), _MONEY),
    "context": whole("a whole number from 1"),
}

Prices: TypeAlias = Mapping[str, Price]
"""Prices by model: its name, or a pattern with `*`. The name counts before patterns, a pattern before later ones."""


def price_of(prices: Prices, binding: Binding) -> Price | None:
    """Return the price of a binding's model, None if it is unknown."""
    if (exact := prices.get(binding.model)) is not None:
        return exact
    return next((price for pattern, price in prices.items() if fnmatchcase(binding.model, pattern)), None)


def checked_prices(prices: Prices) -> Prices:
    """Return prices that can be used.

    Raises:
        ConfigError: They are no mapping, or one is no `Price`, or has a figure below 0.
    """
    given: object = prices  # an unchecked caller may pass any object
    if not isinstance(given, Mapping) or not all(isinstance(model, str) for model in given):
        raise ConfigError("prices= takes a mapping of models' names, or patterns, to each one's Price")
    for model, price in prices.items():
        if not isinstance(price, Price):
            raise ConfigError(f"prices: {model!r} has {price!r}; it takes a Price")
    return {
        model: check_fields(price, PRICE_RANGES, f"The price of {model!r}") for model, price in prices.items()
    }


def all_prices(given: Prices, filed: Prices) -> Prices:
    """Return the prices of a program, followed by those of a file. Raises what `checked_prices` does."""
    known = dict(checked_prices(given))
    return known | {name: price for name, price in filed.items() if name not in known}


Period: TypeAlias = Literal["minute", "hour", "day"]
PERIOD_SECONDS: Final[Mapping[Period, int]] = {"minute": 60, "hour": 3600, "day": 86_400}


class Budget(StoredRecord, frozen=True):
    """The usage that is allowed to one session, or to all sessions of a tenant or a pool together; None is no limit.

    Args:
        rounds: Answered requests.
        tokens: Tokens of requests and answers together.
        money: Cost, in the currency of the prices.
        seconds: Seconds in which asks run. For a session only.
        per: The period after which a shared budget starts again; a `day` is 24 hours. None limits the life of the
            session or of the runtime.
    """

    rounds: int | None = None
    tokens: int | None = None
    money: float | None = None
    seconds: float | None = None
    per: Period | None = None


BUDGET_RANGES: Final[Mapping[str, Range]] = {
    "rounds": whole("a whole number from 1"),
    "tokens": whole("a whole number from 1"),
    "money": positive("a finite number above 0"),
    "seconds": positive("seconds above 0"),
    "per": word(tuple(PERIOD_SECONDS)),
}
SHARED_LIMITS = ("rounds", "tokens", "money")
"""The limits that sessions can share. Seconds limit one session."""


def checked_budget(budget: Budget) -> Budget:
    """Return the budget of a session as it is stored.

    Raises:
        ConfigError: It is not a `Budget`, has a limit that is not above 0, or a period.
    """
    budget = _check_budget(budget, "budget=")
    if budget.per is not None:
        raise ConfigError(
            "budget= has a period; a session's budget limits its whole life, so leave `per` out"
        )
    return budget


def _check_budget(budget: Budget, owner: str) -> Budget:
    if not isinstance(budget, Budget):
        raise ConfigError(f"{owner} takes a Budget, not {type(budget).__name__}")
    return check_fields(budget, BUDGET_RANGES, owner)


def has_shared_limit(budget: Budget) -> bool:
    """Return True if a budget limits something that sessions can share."""
    return any(getattr(budget, limit) is not None for limit in SHARED_LIMITS)


def shared_budgets(
    given: Mapping[str, Budget], filed: Mapping[str, Budget], pools: Collection[str]
) -> dict[str, Budget]:
    """Return the budgets of a runtime by `tenants.NAME` and `pools.NAME`: those of the program replace the file's.

    Args:
        given: The budgets of the program.
        filed: The budgets of the file.
        pools: Names of the configured pools.

    Raises:
        ConfigError: A budget is wrong, or its name is neither that of a tenant nor that of a pool.
    """
    return {**filed, **{name: _checked_shared(name, budget, pools) for name, budget in given.items()}}


def _checked_shared(name: object, budget: Budget, pools: Collection[str]) -> Budget:
    table, _, owned = str(name).partition(".")
    if table not in ("tenants", "pools") or not owned:
        raise ConfigError(f"budgets: {name!r} is neither tenants.NAME nor pools.NAME")
    if table == "pools" and owned not in pools:
        raise ConfigError(f"budgets: there is no pool {owned!r}; add it to [pools]")
    owner = f"The budget of {name!r}"
    budget = _check_budget(budget, owner)
    if budget.seconds is not None:
        raise ConfigError(f"{owner} has seconds; only the budget of a session limits them")
    if not has_shared_limit(budget):
        raise ConfigError(f"{owner} has no limit; give it {', '.join(SHARED_LIMITS)}, or some of them")
    return budget


TENANT = 64
"""The maximum length of a tenant's name, in characters."""


def checked_tenant(tenant: str) -> str:
    """Return a tenant's name.

    Raises:
        ConfigError: The name is no string, too long, or not printable.
    """
    given: object = tenant  # an unchecked caller may pass any object
    if not isinstance(given, str) or len(given) > TENANT or not given.isprintable():
        raise ConfigError(f"tenant= takes at most {TENANT} printable characters, not {str(given)[:80]!r}")
    return tenant


Cost: TypeAlias = Callable[[Binding, Usage], float | None]
"""Returns the cost of usage of a binding; None if it is unknown."""


class Used(StoredRecord, frozen=True):
    """The usage of a session, as its log records it."""

    rounds: int = 0
    seconds: float = 0.0
    usage: tuple[tuple[Binding, Usage], ...] = ()

    def plus(self, binding: Binding, usage: Usage) -> "Used":
        """Return the usage after one more round."""
        known = dict(self.usage)
        known[binding] = known.get(binding, Usage()) + usage
        return replace(self, rounds=self.rounds + 1, usage=tuple(known.items()))

    def with_subagent(self, other: "Used") -> "Used":
        """Return the usage with that of a subagent added. Its seconds are already part of this session's seconds."""
        known = dict(self.usage)
        for binding, usage in other.usage:
            known[binding] = known.get(binding, Usage()) + usage
        return replace(self, rounds=self.rounds + other.rounds, usage=tuple(known.items()))

    @property
    def tokens(self) -> int:
        """The tokens of requests and answers together."""
        return sum(usage.input_tokens + usage.output_tokens for _, usage in self.usage)

    def total_cost(self, cost: Callable[[Binding, Usage], float | None]) -> float | None:
        """Return the cost; None if a price is missing."""
        return total(cost(binding, usage) for binding, usage in self.usage)


def total(costs: Iterable[float | None]) -> float | None:
    """Return the sum of costs; None if one of them is unknown."""
    sums = 0.0
    for cost in costs:
        if cost is None:
            return None
        sums += cost
    return sums


def why_over(budget: Budget, used: Used, cost: Cost, whose: str = "the session's budget") -> str | None:
    """Return a message that names the exhausted limit of a budget; None while no limit is exhausted."""
    if budget.rounds is not None and used.rounds >= budget.rounds:
        return f"{whose} of {budget.rounds} rounds is used up"
    if budget.tokens is not None and (tokens := used.tokens) >= budget.tokens:
        return f"{whose} of {budget.tokens} tokens is used up ({tokens} were used)"
    if budget.seconds is not None and used.seconds >= budget.seconds:
        return f"{whose} of {budget.seconds:g} seconds is used up"
    if budget.money is not None:
        money = used.total_cost(cost)
        if money is None:
            return f"{whose} of {budget.money:g} cannot be enforced without {_missing(used, cost)}"
        if money >= budget.money:
            return f"{whose} of {budget.money:g} is used up ({money:g} was paid)"
    return None


def _missing(used: Used, cost: Cost) -> str:
    """Return the name of the first missing price."""
    for binding, usage in used.usage:
        parts = {
            "a price": Usage(),
            "the price cache_read": Usage(cache_read_tokens=usage.cache_read_tokens),
            "the price cache_write": Usage(cache_write_tokens=usage.cache_write_tokens),
        }
        for what, part in parts.items():
            if cost(binding, part) is None:
                return f"{what} of model {binding.model!r}"
    raise AssertionError("each part has its price")


def remaining_budget(budget: Budget, used: Used, cost: Cost) -> Budget:
    """Return the budget that remains for a subagent. It has no seconds, because its parent counts them.

    Raises:
        OverBudget: A limit is exhausted.
    """
    if (why := why_over(budget, used, cost)) is not None:
        raise OverBudget(f"No subagent is opened: {why}")
    money = budget.money
    if money is not None:
        money -= used.total_cost(cost) or 0.0
    return Budget(
        None if budget.rounds is None else budget.rounds - used.rounds,
        None if budget.tokens is None else budget.tokens - used.tokens,
        money,
    )
