"""List prices and context windows of models, read from the package `genai-prices` if it is installed.

`actors.provider.pricing` uses them where the configuration has no figure of its own. The package is data: nothing here
asks the network, and no request depends on it. Importing it takes a quarter of a second of CPU, so the import begins
in a thread when a backend is first used, and the first lookup waits for its end.
"""

from datetime import UTC, datetime
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from threading import Thread
from typing import Any

from msgspec import Struct

from actors.core.settings.spending import Price

_SNAPSHOT = "genai_prices.data_snapshot"


class Listing(Struct, frozen=True):
    """What the package knows of a model: US dollars for a million tokens, and the tokens of its context window."""

    price: Price | None = None
    window: int | None = None


UNLISTED = Listing()
"""A model that the package does not know, or any model where the package is not installed."""


@cache
def is_installed() -> bool:
    """Return True if the package is there, without importing it."""
    return find_spec("genai_prices") is not None


@cache
def prepare() -> None:
    """Begin to import the package, once in a process, so that the first lookup need not wait long."""
    if is_installed():
        Thread(target=import_module, args=(_SNAPSHOT,), name="list-prices", daemon=True).start()


@lru_cache(maxsize=1024)
def listing(provider: str, model: str, day: int) -> Listing:
    """Return the prices and the context window that the package lists for a model.

    A price that depends on the size of the request counts at its first tier. Tokens that a cache read or wrote cost as
    much as other input where no price of theirs is listed.

    Args:
        provider: The provider's id in the package.
        model: The model's name, as the provider spells it.
        day: Days since 1970: prices change.
    """
    if not is_installed():
        return UNLISTED
    try:
        _, found = import_module(_SNAPSHOT).get_snapshot().find_provider_model(model, None, provider, None)
    except LookupError:
        return UNLISTED
    prices = found.get_prices(datetime.fromtimestamp(day * DAY, UTC))
    plain, output, read, written = (_dollars(getattr(prices, f"{name}_mtok", None)) for name in _FIGURES)
    window = found.context_window
    if plain is None or output is None:
        return Listing(window=window)
    read, written = plain if read is None else read, plain if written is None else written
    return Listing(Price(plain, output, read, written, window), window)


DAY = 86_400
_FIGURES = ("input", "output", "cache_read", "cache_write")


def _dollars(listed: Any) -> float | None:  # Any: a decimal, or tiers of them
    """Return a listed price, or the first of its tiers."""
    base = getattr(listed, "base", listed)
    return None if base is None else float(base)
