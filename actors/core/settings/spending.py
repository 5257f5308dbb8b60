"""Define prices and budgets, and count the usage of sessions.

Sessions, providers and the configuration use this module. If a price is missing, every cost that depends on it is
unknown, because costs are never estimated.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Final, Literal, TypeAlias

from actors.core.data.record import StoredRecord, replace
from actors.core.settings.values import (
    Range,
    check_fields,
    number_range,
    positive_range,
    whole_range,
    word_range,
)
from actors.core.values.identity import Binding
from actors.core.values.stream import Usage
from actors.errors import ConfigError, OverBudget

MILLION = 1_000_000


class Price(StoredRecord, frozen=True):
    """The prices of a model, per million tokens. All prices of a runtime must be in one currency.

    Args:
        input: The price of input tokens.
        output: The price of output tokens.
        cache_read, cache_write: The prices of input tokens that are read from and written to the provider's cache. If
            they are None, the cost of usage with cached tokens is unknown.
        context: The model's context window, in tokens of a request and its answer together. This field is not a price.
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


_MONEY = number_range("a finite number of at least 0", 0)
PRICE_RANGES: Final[Mapping[str, Range]] = {
    **dict.fromkeys(("input", "output", "cache_read", "cache_write"), _MONEY),
    "context": whole_range("a whole number of at least 1"),
}

Prices: TypeAlias = Mapping[str, Price]
"""Prices by model name or pattern with `*`. An exact name comes before patterns; the first matching pattern wins."""


def price_of(prices: Prices, binding: Binding) -> Price | None:
    """Return the price of a binding's model; None if no name or pattern matches the model."""
    if (exact := prices.get(binding.model)) is not None:
        return exact
    return next((price for pattern, price in prices.items() if fnmatchcase(binding.model, pattern)), None)


def checked_prices(prices: Prices) -> Prices:
    """Return the prices with their fields checked.

    Raises:
        ConfigError: `prices` is not a mapping of strings to `Price` values, or a price is below 0.
    """
    given: object = prices  # `object`, because a caller without a type checker may pass any value
    if not isinstance(given, Mapping) or not all(isinstance(model, str) for model in given):
        raise ConfigError("prices= must be a mapping of model names or patterns to Price values")
    for model, price in prices.items():
        if not isinstance(price, Price):
            raise ConfigError(f"prices= must map {model!r} to a Price, not to {price!r}")
    return {
        model: check_fields(price, PRICE_RANGES, f"The price of {model!r}") for model, price in prices.items()
    }


def combine_prices(from_program: Prices, from_file: Prices) -> Prices:
    """Return the prices of a program, followed by the prices that only the file contains.

    Raises:
        ConfigError: The program's prices are invalid; see `checked_prices`.
    """
    known = dict(checked_prices(from_program))
    return known | {name: price for name, price in from_file.items() if name not in known}


Period: TypeAlias = Literal["minute", "hour", "day"]
PERIOD_SECONDS: Final[Mapping[Period, int]] = {"minute": 60, "hour": 3600, "day": 86_400}


class Budget(StoredRecord, frozen=True):
    """A limit on the usage of one session, or of all sessions of a tenant or a pool together. None means no limit.

    Args:
        rounds: Answered requests.
        tokens: Tokens of requests and answers together.
        money: Cost, in the currency of the prices.
        seconds: Seconds in which asks run. Only a session's budget may limit seconds.
        per: The period after which a shared budget starts again; a `day` is 24 hours. If None, the limits apply to the
            complete life of the session or the runtime.
    """

    rounds: int | None = None
    tokens: int | None = None
    money: float | None = None
    seconds: float | None = None
    per: Period | None = None


BUDGET_RANGES: Final[Mapping[str, Range]] = {
    "rounds": whole_range("a whole number of at least 1"),
    "tokens": whole_range("a whole number of at least 1"),
    "money": positive_range("a finite number above 0"),
    "seconds": positive_range("a number of seconds above 0"),
    "per": word_range(tuple(PERIOD_SECONDS)),
}
SHARED_LIMITS = ("rounds", "tokens", "money")
"""The limits that a shared budget may have. Seconds can only be limited per session."""


def checked_budget(budget: Budget) -> Budget:
    """Return a session's budget in its stored form.

    Raises:
        ConfigError: `budget` is not a `Budget`, has a limit that is not above 0, or has a period.
    """
    budget = _check_budget(budget, "budget=")
    if budget.per is not None:
        raise ConfigError(
            "budget= has a period, but a session's budget limits its complete life; remove `per`"
        )
    return budget


def _check_budget(budget: Budget, owner: str) -> Budget:
    if not isinstance(budget, Budget):
        raise ConfigError(f"{owner} must be a Budget, not {type(budget).__name__}")
    return check_fields(budget, BUDGET_RANGES, owner)


def has_shared_limit(budget: Budget) -> bool:
    """Return True if the budget has a limit that sessions can share: rounds, tokens or money."""
    return any(getattr(budget, limit) is not None for limit in SHARED_LIMITS)


def shared_budgets(
    from_program: Mapping[str, Budget], from_file: Mapping[str, Budget], pools: Collection[str]
) -> dict[str, Budget]:
    """Return a runtime's shared budgets by `tenants.NAME` and `pools.NAME`. The program's budgets override the file's.

    Args:
        from_program: The budgets of the program.
        from_file: The budgets of the file.
        pools: Names of the configured pools.

    Raises:
        ConfigError: A budget is invalid, or its name is neither that of a tenant nor that of a configured pool.
    """
    return {
        **from_file,
        **{name: _checked_shared_budget(name, budget, pools) for name, budget in from_program.items()},
    }


def _checked_shared_budget(name: object, budget: Budget, pools: Collection[str]) -> Budget:
    table, _, owned = str(name).partition(".")
    if table not in ("tenants", "pools") or not owned:
        raise ConfigError(
            f"budgets= has the name {name!r}; a name must have the form tenants.NAME or pools.NAME"
        )
    if table == "pools" and owned not in pools:
        raise ConfigError(f"budgets= names the pool {owned!r}, which is not configured; add it to [pools]")
    owner = f"The budget of {name!r}"
    budget = _check_budget(budget, owner)
    if budget.seconds is not None:
        raise ConfigError(
            f"{owner} limits seconds, which only a session's budget can limit; remove `seconds`"
        )
    if not has_shared_limit(budget):
        raise ConfigError(f"{owner} has no limit; set at least one of {', '.join(SHARED_LIMITS)}")
    return budget


TENANT = 64
"""The maximum length of a tenant's name, in characters."""


def checked_tenant(tenant: str) -> str:
    """Return a tenant's name if it is valid.

    Raises:
        ConfigError: The name is not a string, too long, or not printable.
    """
    given: object = tenant  # `object`, because a caller without a type checker may pass any value
    if not isinstance(given, str) or len(given) > TENANT or not given.isprintable():
        raise ConfigError(
            f"tenant= must be a string of at most {TENANT} printable characters, not {str(given)[:80]!r}"
        )
    return tenant


Cost: TypeAlias = Callable[[Binding, Usage], float | None]
"""Returns the cost of a binding's usage; None if the cost is unknown."""


class SessionUsage(StoredRecord, frozen=True):
    """The usage of a session, as its log records it.

    Args:
        rounds: Answered requests.
        seconds: Seconds in which asks ran.
        usage: The tokens used with each binding.
    """

    rounds: int = 0
    seconds: float = 0.0
    usage: tuple[tuple[Binding, Usage], ...] = ()

    def plus(self, binding: Binding, usage: Usage) -> "SessionUsage":
        """Return the usage with one more round on `binding` added."""
        known = dict(self.usage)
        known[binding] = known.get(binding, Usage()) + usage
        return replace(self, rounds=self.rounds + 1, usage=tuple(known.items()))

    def with_subagent(self, other: "SessionUsage") -> "SessionUsage":
        """Return the usage with a subagent's rounds and tokens added.

        The subagent's seconds are not added, because they are part of this session's seconds already.
        """
        known = dict(self.usage)
        for binding, usage in other.usage:
            known[binding] = known.get(binding, Usage()) + usage
        return replace(self, rounds=self.rounds + other.rounds, usage=tuple(known.items()))

    @property
    def tokens(self) -> int:
        """The tokens of all requests and answers together."""
        return sum(usage.input_tokens + usage.output_tokens for _, usage in self.usage)

    def total_cost(self, cost: Callable[[Binding, Usage], float | None]) -> float | None:
        """Return the cost of the usage; None if a price is missing. `cost` returns the cost per binding."""
        return sum_costs(cost(binding, usage) for binding, usage in self.usage)


def sum_costs(costs: Iterable[float | None]) -> float | None:
    """Return the sum of the costs; None if one of the costs is unknown."""
    sums = 0.0
    for cost in costs:
        if cost is None:
            return None
        sums += cost
    return sums


def exhausted_limit(
    budget: Budget, used: SessionUsage, cost: Cost, whose: str = "the session's budget"
) -> str | None:
    """Return a message about the first exhausted limit of a budget; None while no limit is exhausted.

    The message begins with `whose`, the name of the budget. A limit on money also counts as exhausted if a price is
    missing.
    """
    if budget.rounds is not None and used.rounds >= budget.rounds:
        return f"{whose} of {budget.rounds} rounds is used up"
    if budget.tokens is not None and (tokens := used.tokens) >= budget.tokens:
        return f"{whose} of {budget.tokens} tokens is used up ({tokens} were used)"
    if budget.seconds is not None and used.seconds >= budget.seconds:
        return f"{whose} of {budget.seconds:g} seconds is used up"
    if budget.money is not None:
        money = used.total_cost(cost)
        if money is None:
            return f"{whose} of {budget.money:g} cannot be enforced without {_missing_price(used, cost)}"
        if money >= budget.money:
            return f"{whose} of {budget.money:g} is used up ({money:g} was paid)"
    return None


def _missing_price(used: SessionUsage, cost: Cost) -> str:
    """Return the name and the model of the first missing price, such as `the price cache_read of model 'm'`."""
    for binding, usage in used.usage:
        parts = {
            "a price": Usage(),
            "the price cache_read": Usage(cache_read_tokens=usage.cache_read_tokens),
            "the price cache_write": Usage(cache_write_tokens=usage.cache_write_tokens),
        }
        for price, part in parts.items():
            if cost(binding, part) is None:
                return f"{price} of model {binding.model!r}"
    raise AssertionError("the cost is unknown although every model in the usage has all prices")


def remaining_budget(budget: Budget, used: SessionUsage, cost: Cost) -> Budget:
    """Return the unused part of a session's budget, as the budget of a subagent.

    The result does not limit seconds, because the parent session counts them.

    Raises:
        OverBudget: A limit of the session's budget is exhausted.
    """
    if (why := exhausted_limit(budget, used, cost)) is not None:
        raise OverBudget(f"The subagent cannot be opened: {why}")
    money = budget.money
    if money is not None:
        money -= used.total_cost(cost) or 0.0
    return Budget(
        None if budget.rounds is None else budget.rounds - used.rounds,
        None if budget.tokens is None else budget.tokens - used.tokens,
        money,
    )
