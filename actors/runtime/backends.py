"""Manage the backends of a runtime, and their provider actors, prices and budgets.

All sessions of the runtime share the counters of each backend, and the facts learned about the backend.
"""

from collections.abc import Mapping
from functools import lru_cache
from random import Random
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from actors.adapters.adapter import adapter
from actors.core.dialects.dialect import Dialect
from actors.core.history.compaction import COMPACTION_RANGES, Calibrations, Compaction
from actors.core.render import RenderTarget
from actors.core.session.lanes import Rules
from actors.core.settings.spending import Budget, Prices, combine_prices, shared_budgets
from actors.core.settings.values import check_fields
from actors.core.stats.stats import BackendStats
from actors.core.transcript.transcript import Encoder
from actors.core.values.identity import Binding
from actors.kernel import Ref, System
from actors.provider.backend import LearnedFacts
from actors.provider.budgets import RuntimeBudgets
from actors.provider.pricing import Pricing
from actors.provider.provider_actor import ProviderCommand
from actors.provider.providers import Meters, Providers
from actors.provider.resolver import RecordRefusal, Resolver, StartPositions
from actors.telemetry import logger
from actors.tools import Toolset
from actors.transport import Transport

if TYPE_CHECKING:
    from actors.config import Config

MAX_CACHED_RULES = 256
"""Maximum number of bindings whose rules are cached."""


class RuntimeBackends:
    """The backends of one runtime.

    Args:
        config: Contains the backends and pools.
        transport: Sends the requests.
        random: Source of randomness for the jitter of retries, and for the member with which a pool starts.
        is_seeded: Whether `random` has a seed. If so, pools start with their first member.
        prices, compaction, budgets: The arguments of `Runtime`, which take precedence over the configuration file.
        on_refusal: Called with each transcript that a provider rejected because of its structure.

    Raises:
        ConfigError: The summarizer in `compaction` is not a backend, or a key of `budgets` is not a tenant or pool.
    """

    learned: LearnedFacts

    def __init__(
        self,
        config: "Config",
        transport: Transport,
        random: Random,
        *,
        is_seeded: bool,
        prices: Prices | None,
        compaction: Compaction | None,
        budgets: Mapping[str, Budget] | None,
        on_refusal: RecordRefusal,
    ) -> None:
        settings = config.settings
        self._config, self._on_refusal = config, on_refusal
        self.prices: Prices = combine_prices(prices or {}, settings.prices)
        self.compaction: Compaction = settings.compaction
        if compaction is not None:
            self.compaction = check_fields(compaction, COMPACTION_RANGES, "compaction=")
        if (summarizer := self.compaction.summarizer) is not None:
            config.check_backend(summarizer)
        self._pricing = Pricing(config, self.prices, self.compaction.windows)
        self._calibrations, self.learned = Calibrations(), LearnedFacts()
        self._start_positions = StartPositions(random, is_seeded=is_seeded)
        self._shared_budgets = shared_budgets(budgets or {}, settings.budgets, settings.pools)
        self.meters: Meters = Meters(logger.slow_handler)
        self.providers: Providers = Providers(config, transport, random, self.meters)
        self.rules: Rules = lru_cache(MAX_CACHED_RULES)(self._rules)
        """Returns the rendering rules of a binding."""
        self._resolvers: WeakValueDictionary[tuple[Toolset, str | None], Resolver] = WeakValueDictionary()
        self._system: System
        self.budgets: RuntimeBudgets

    def set_system(self, system: System) -> None:
        """Set the actor system, which exists only once the runtime has been entered."""
        self._system = system
        self.budgets = RuntimeBudgets(self._shared_budgets, self._pricing.cost, system.loop, system.now)

    def resolver(self, tools: Toolset, system: str | None) -> Resolver:
        """Return the resolver that all sessions with these tools and this system prompt share."""
        if (known := self._resolvers.get((tools, system))) is None:
            known = self._resolvers[tools, system] = Resolver(
                self._config,
                self.provider,
                self._on_refusal,
                tools,
                system,
                self.meters.tools,
                self._pricing,
                self.compaction,
                self._calibrations,
                self.budgets.budgets_of,
                self.learned,
                self._start_positions,
            )
        return known

    def provider(self, member: str, binding: Binding) -> Ref[ProviderCommand]:
        """Return the provider actor of a pool member. The first call for a member spawns its actor."""
        return self.providers.provider(self._system, member, binding)

    @property
    def stats(self) -> dict[str, BackendStats]:
        """Return the statistics of each backend that has been used, by name."""
        return self.meters.backend_stats(self._pricing.cost)

    def _rules(self, binding: Binding) -> tuple[Dialect, Encoder, RenderTarget]:
        """Return the dialect, the encoder and the render target of a binding."""
        codec = adapter(self._config.dialect_of(binding))
        return codec.dialect, codec.encoder, self._config._render_target(binding)
