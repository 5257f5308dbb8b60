"""Pricing: what a binding charges and how much it takes.

The figures of a backend come first, then those given for models, then the list prices of `actors.provider.list_prices`.
"""

from collections.abc import Callable
from time import time
from typing import TYPE_CHECKING

from actors.core.history.compaction import Windows
from actors.core.policy.routing import Rates
from actors.core.settings.spending import Price, Prices, price_of
from actors.core.values.identity import Binding
from actors.core.values.stream import Usage
from actors.provider.list_prices import DAY, UNLISTED, Listing, listing, prepare

if TYPE_CHECKING:
    from actors.config import Config


class Pricing:
    """The prices of a runtime's backends.

    Args:
        config: What backends say themselves, which counts first.
        prices: Of models.
        windows: Which context windows `window` returns: those of the configuration, or listed ones too.
        clock: The wall clock, in seconds since 1970. List prices change.
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

    def prepare(self, binding: Binding) -> None:
        """Get ready for questions about a binding that the configuration cannot answer."""
        if self._list_of(binding) and (
            self._price_given(binding) is None or self._window_given(binding) is None
        ):
            prepare()

    def cost(self, binding: Binding, usage: Usage) -> float | None:
        """Return what usage of a binding costs; None where its price is not known."""
        price = self._price(binding)
        return None if price is None else price.of(usage)

    def rates(self, binding: Binding) -> Rates | None:
        """Return what a binding charges, if that is known."""
        if (price := self._price(binding)) is None:
            return None
        return Rates(price.input, price.input if price.cache_read is None else price.cache_read, price.output)

    def window(self, binding: Binding) -> int | None:
        """Return the context window by which histories are made shorter, None if none is known."""
        return self.known_window(binding) if self._windows == "listed" else self._window_given(binding)

    def known_window(self, binding: Binding) -> int | None:
        """Return the context window as far as anything tells it: the configuration, else the list."""
        given = self._window_given(binding)
        return self._listed(binding).window if given is None else given

    def _window_given(self, binding: Binding) -> int | None:
        """Return the backend's own context window, else that of its model."""
        settings = self._config.settings.backends.get(binding.backend)
        if settings is not None and settings.context is not None:
            return settings.context
        price = price_of(self._prices, binding)
        return None if price is None else price.context

    def _price(self, binding: Binding) -> Price | None:
        """Return the price that was given, else the list price."""
        given = self._price_given(binding)
        return self._listed(binding).price if given is None else given

    def _listed(self, binding: Binding) -> Listing:
        provider = self._list_of(binding)
        return listing(provider, binding.model, int(self._clock() // DAY)) if provider else UNLISTED

    def _list_of(self, binding: Binding) -> str:
        """Return whose list prices hold for a binding; empty where none do."""
        settings = self._config.settings.backends.get(binding.backend)
        return self._config.price_list(binding.backend if settings is None else settings.kind)

    def _price_given(self, binding: Binding) -> Price | None:
        """Return the backend's own price, else that of its model."""
        settings = self._config.settings.backends.get(binding.backend)
        if settings is None or settings.price is None:
            return price_of(self._prices, binding)
        return settings.price
