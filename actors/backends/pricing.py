"""Pricing: what a binding charges and how much it takes, by the configuration and by prices that were given."""

from typing import TYPE_CHECKING

from actors.core.identity import Binding
from actors.core.routing import Rates
from actors.core.spending import Price, Prices, price_of
from actors.core.stream import Usage

if TYPE_CHECKING:
    from actors.config import Config


class Pricing:
    """The prices of a runtime's backends.

    Args:
        config: What backends say themselves, which counts first.
        prices: Of models.
    """

    def __init__(self, config: "Config", prices: Prices) -> None:
        self._config, self._prices = config, prices

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
        """Return the backend's own context window, else that of its model."""
        settings = self._config.settings.backends.get(binding.backend)
        if settings is not None and settings.context is not None:
            return settings.context
        price = price_of(self._prices, binding)
        return None if price is None else price.context

    def _price(self, binding: Binding) -> Price | None:
        """Return the backend's own price, else that of its model."""
        settings = self._config.settings.backends.get(binding.backend)
        if settings is None or settings.price is None:
            return price_of(self._prices, binding)
        return Price(**settings.price.model_dump())
