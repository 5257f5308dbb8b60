"""Look up the prices and the context window of a binding.

A backend's configured values take precedence over the configured prices of models, and these take precedence over the
list prices in the package `genai-prices`, if it is installed.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from threading import Thread
from time import time
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from actors.core.history.compaction import Windows
from actors.core.policy.routing import Rates
from actors.core.settings.spending import Price, Prices, price_of
from actors.core.values.identity import Binding
from actors.core.values.stream import Usage

if TYPE_CHECKING:
    from actors.config import Config

_SNAPSHOT = "genai_prices.data_snapshot"


class Listing(Struct, frozen=True):
    """Data about a model from `genai-prices`: prices in US dollars per million tokens, and the context window in
    tokens.
    """

    price: Price | None = None
    window: int | None = None


UNLISTED = Listing()
"""The listing of an unknown model, or of any model if `genai-prices` is not installed."""


@cache
def is_installed() -> bool:
    """Return True if `genai-prices` is installed, without importing it."""
    return find_spec("genai_prices") is not None


@cache
def import_list_prices() -> None:
    """Start importing `genai-prices` in a thread, once per process. The first lookup of a price waits for the import.

    The import takes a quarter of a second of CPU time. The package contains data and opens no connection.
    """
    if is_installed():
        Thread(target=import_module, args=(_SNAPSHOT,), name="list-prices", daemon=True).start()


@lru_cache(maxsize=1024)
def find_listing(provider: str, model: str, day: int) -> Listing:
    """Return the list prices and the context window of a model.

    If a price depends on the request's size, the first tier is used. If there are no cache prices, cached tokens have
    the price of ordinary input tokens.

    Args:
        provider: The provider's id in `genai-prices`.
        model: The provider's name for the model.
        day: The date for which to look up prices, in days since 1970.
    """
    if not is_installed():
        return UNLISTED
    try:
        _, found = import_module(_SNAPSHOT).get_snapshot().find_provider_model(model, None, provider, None)
    except LookupError:
        return UNLISTED
    prices = found.get_prices(datetime.fromtimestamp(day * DAY, UTC))
    plain, output, read, written = (_list_price(getattr(prices, f"{name}_mtok", None)) for name in _FIGURES)
    window = found.context_window
    if plain is None or output is None:
        return Listing(window=window)
    read, written = plain if read is None else read, plain if written is None else written
    return Listing(Price(plain, output, read, written, window), window)


DAY = 86_400
_FIGURES = ("input", "output", "cache_read", "cache_write")


def _list_price(listed: Any) -> float | None:  # Any: types of `genai-prices`, an optional dependency
    """Return a price; for a price with tiers, return the first tier. Return None if there is no price."""
    base = getattr(listed, "base", listed)
    return None if base is None else float(base)


class Pricing:
    """The prices and context windows of a runtime's backends.

    Args:
        config: The configuration, whose values take precedence.
        prices: The configured prices of models.
        windows: With `configured`, `window` returns only configured context windows; with `listed`, it also returns
            context windows from `genai-prices`.
        clock: Returns the wall-clock time in seconds since 1970. It is needed because list prices change.
    """

    def __init__(
        self,
        config: "Config",
        prices: Prices,
        windows: Windows = "configured",
        clock: Callable[[], float] = time,
    ) -> None:
        self._clock = clock
        self._config, self._prices, self._windows = config, prices, windows

    def prepare_prices(self, binding: Binding) -> None:
        """Start importing the list prices if the binding's price or context window is not configured."""
        if self._price_list_provider(binding) and (
            self._configured_price(binding) is None or self._configured_window(binding) is None
        ):
            import_list_prices()

    def cost(self, binding: Binding, usage: Usage) -> float | None:
        """Return the cost of usage, or None if the price is unknown."""
        price = self._price(binding)
        return None if price is None else price.of(usage)

    def rates(self, binding: Binding) -> Rates | None:
        """Return a binding's prices, for choosing the cheapest member; None if they are unknown."""
        if (price := self._price(binding)) is None:
            return None
        return Rates(price.input, price.input if price.cache_read is None else price.cache_read, price.output)

    def window(self, binding: Binding) -> int | None:
        """Return the context window in tokens that compaction uses for a binding, or None if compaction must not use
        one.
        """
        return self.known_window(binding) if self._windows == "listed" else self._configured_window(binding)

    def known_window(self, binding: Binding) -> int | None:
        """Return the context window in tokens, or None if it is unknown. A configured window takes precedence over
        `genai-prices`.
        """
        given = self._configured_window(binding)
        return self._listing_of(binding).window if given is None else given

    def _configured_window(self, binding: Binding) -> int | None:
        """Return the context window in tokens that is configured for the backend or, failing that, for the model;
        otherwise None.
        """
        settings = self._config.settings.backends.get(binding.backend)
        if settings is not None and settings.context is not None:
            return settings.context
        price = price_of(self._prices, binding)
        return None if price is None else price.context

    def _price(self, binding: Binding) -> Price | None:
        """Return the configured price of a binding or, failing that, its list price; None if both are unknown."""
        given = self._configured_price(binding)
        return self._listing_of(binding).price if given is None else given

    def _listing_of(self, binding: Binding) -> Listing:
        provider = self._price_list_provider(binding)
        return find_listing(provider, binding.model, int(self._clock() // DAY)) if provider else UNLISTED

    def _price_list_provider(self, binding: Binding) -> str:
        """Return the id of a binding's provider in `genai-prices`, or an empty string if it has none."""
        settings = self._config.settings.backends.get(binding.backend)
        return self._config.price_list(binding.backend if settings is None else settings.kind)

    def _configured_price(self, binding: Binding) -> Price | None:
        """Return the price that is configured for the backend or, failing that, for the model; otherwise None."""
        settings = self._config.settings.backends.get(binding.backend)
        if settings is None or settings.price is None:
            return price_of(self._prices, binding)
        return settings.price
