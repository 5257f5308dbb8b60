"""Allowances: what the sessions of a tenant, or of a pool, may use together in a period. Rules without a clock.

A period begins when the runtime is entered, and the next one when it is over, by a clock that nobody sets. So a `day`
is 24 hours, and no date.
"""

from collections.abc import Mapping
from math import inf
from typing import Any, Final, Literal, Protocol, TypeAlias, get_args

from actors.core.data.form import Form
from actors.errors import ConfigError

Period: TypeAlias = Literal["minute", "hour", "day"]
SECONDS: Final[Mapping[Period, int]] = {"minute": 60, "hour": 3600, "day": 86_400}
"""How long each is."""


class Allowance(Form, frozen=True):
    """What all sessions of a tenant, or of a pool, may use together; None has no end.

    Args:
        tokens: Of requests and answers together.
        money: In the currency of the prices.
        per: The period; None for the life of the runtime.
    """

    tokens: int | None = None
    money: float | None = None
    per: Period | None = None


def checked_allowance(name: str, given: Allowance) -> Allowance:
    """Return an allowance that can be kept; `name` is who has it.

    Raises:
        ConfigError: It is none, allows nothing or everything, or has a period that there is not.
    """
    if not isinstance(given, Allowance):
        raise ConfigError(f"The budget of {name!r} is {given!r}; it takes an Allowance")
    for part, kinds in (("tokens", (int,)), ("money", (int, float))):
        value = getattr(given, part)
        if value is not None and not (type(value) in kinds and 0 < value < inf):
            raise ConfigError(f"The budget of {name!r} has {part}={value!r}; it takes a number above 0")
    if given.tokens is None and given.money is None:
        raise ConfigError(f"The budget of {name!r} bounds nothing; give it tokens or money")
    if given.per not in (None, *get_args(Period)):
        periods = ", ".join(map(repr, get_args(Period)))
        raise ConfigError(f"The budget of {name!r} is per {given.per!r}; it takes {periods} or None")
    return given


class _Filed(Protocol):
    def model_dump(self) -> dict[str, Any]: ...  # Any: fields of an `Allowance`


class _Owner(Protocol):
    @property
    def budget(self) -> _Filed | None: ...


TABLES: Final = ("tenants", "pools")


def allowances(
    given: Mapping[str, Allowance], tenants: Mapping[str, _Owner], pools: Mapping[str, _Owner]
) -> dict[str, Allowance]:
    """Return the allowances of a runtime by `tenants.NAME` and `pools.NAME`: those given, and behind them the file's.

    Raises:
        ConfigError: One cannot be kept, or is of something that there is not.
    """
    made = {}
    for table, owners in zip(TABLES, (tenants, pools), strict=True):
        for name, owner in owners.items():
            if owner.budget is not None:
                made[f"{table}.{name}"] = Allowance(**owner.budget.model_dump())
    for name, allowance in given.items():
        table, _, owned = str(name).partition(".")
        if table not in TABLES or not owned:
            raise ConfigError(f"budgets: {name!r} is no tenants.NAME and no pools.NAME")
        if table == "pools" and owned not in pools:
            raise ConfigError(f"budgets: there is no pool {owned!r}; add it to [pools]")
        made[name] = checked_allowance(name, allowance)
    return made
