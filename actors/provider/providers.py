"""Start the provider actors of a runtime, and keep their counters.

There is one actor per backend and binding, which the first request starts. All counters of a runtime are in one object,
so that they can be read without sending messages to actors.
"""

from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from msgspec import Struct, field

from actors.adapters.adapter import adapter
from actors.core.settings.spending import sum_costs
from actors.core.stats.measures import AskCounts, RequestCounts, ToolMeasures, bounded_label
from actors.core.stats.stats import BackendStats, ModelStats, ToolCounts, ToolStats
from actors.core.values.identity import Binding
from actors.core.values.stream import Usage
from actors.errors import ConfigError
from actors.journal.health import JournalHealth
from actors.kernel import SHARED, Ref, Restart, System
from actors.provider.admission import Pace
from actors.provider.attempts import Retries
from actors.provider.credentials import Credentials, Headers
from actors.provider.provider_actor import Meter, ProviderActor, ProviderCommand
from actors.provider.rounds import Endpoint
from actors.transport import Timeouts, Transport

if TYPE_CHECKING:
    from actors.config import Backend, Config


class Meters(Struct):
    """All counters of a runtime.

    Args:
        tools: Counts of tool calls, by backend.
        providers: The binding and the meter of each provider actor, including stopped actors.
        on_slow: Called for each slow handler, after it was counted.
        slow_handlers: Number of handlers that blocked the event loop too long.
        journal: Measurements of the journal.
        asks: Counts of the sessions' asks.
        calls: Measurements of tool calls.
    """

    on_slow: Callable[[str, str, float], object]
    tools: dict[str, ToolCounts] = {}
    providers: list[tuple[Binding, Meter]] = []
    slow_handlers: int = 0
    journal: JournalHealth = field(default_factory=JournalHealth)
    asks: AskCounts = field(default_factory=AskCounts)
    calls: ToolMeasures = field(default_factory=ToolMeasures)

    def add_meter(self, binding: Binding) -> Meter:
        """Create and return the meter of a new provider actor."""
        meter = Meter()
        self.providers.append((binding, meter))
        return meter

    def record_slow_handler(self, actor: str, message: str, seconds: float) -> None:
        """Count a handler that blocked the event loop."""
        self.slow_handlers += 1
        self.on_slow(actor, message, seconds)

    @property
    def session_activity(self) -> tuple[dict[str, int], int, int, int, dict[str, ToolStats]]:
        """A tuple of five values: the number of asks by outcome, the number of queued asks, the number of sessions that
        are asking, the number of sessions that are waiting, and the stats of tools by name.
        """
        asks, stages = self.asks, self.asks.stages
        outcomes = {str(outcome): count for outcome, count in asks.outcomes.items()}
        queues = asks.queued, stages["asking"], stages["waiting"]
        return outcomes, *queues, self.calls.stats

    def backend_stats(self, cost: Callable[[Binding, Usage], float | None]) -> dict[str, BackendStats]:
        """Return the stats of each backend that was used.

        `cost` returns the cost of usage, or None if it is unknown.
        """
        names = dict.fromkeys([*self.tools, *[binding.backend for binding, _ in self.providers]])
        return {name: self._backend_stats(name, cost) for name in names}

    def _backend_stats(self, name: str, cost: Callable[[Binding, Usage], float | None]) -> BackendStats:
        meters = [meter for binding, meter in self.providers if binding.backend == name]
        admitted = [meter.admission for meter in meters if meter.admission is not None]
        return BackendStats(
            self.tools.get(name, ToolCounts()).plus(ToolCounts()),  # adding empty counts makes a copy
            sum(meter.counters["requests"] for meter in meters),
            sum(meter.counters["retries"] for meter in meters),
            sum(each.in_flight for each in admitted),
            sum(each.waiting for each in admitted),
            any(each.breaker.until is not None for each in admitted),
            sum(meter.counters["refused_media"] for meter in meters),
            sum(meter.counters["refused_parameter"] for meter in meters),
            self._model_stats(name, cost),
        )

    def _model_stats(
        self, backend: str, cost: Callable[[Binding, Usage], float | None]
    ) -> dict[str, ModelStats]:
        counts, costs = dict[str, RequestCounts](), dict[str, float | None]()
        for binding, meter in self.providers:
            if binding.backend == backend:
                model = bounded_label(binding.model, counts)
                counts.setdefault(model, RequestCounts()).add(meter.requests)
                costs[model] = sum_costs((costs.get(model, 0.0), cost(binding, meter.requests.usage)))
        return {model: each.stats(costs[model]) for model, each in counts.items()}


class Providers:
    """The provider actors of one runtime.

    Args:
        config: The configuration of the backends.
        transport: Sends the requests.
        random: Draws the jitter of retries.
        meters: Counts requests and answers.
    """

    def __init__(self, config: "Config", transport: Transport, random: Random, meters: Meters) -> None:
        self._config, self._transport, self._random, self._meters = config, transport, random, meters
        self._count = 0
        self.actors: dict[tuple[str, Binding], Ref[ProviderCommand]] = {}

    def provider(self, system: System, member: str, binding: Binding) -> Ref[ProviderCommand]:
        """Return the provider actor of a pool's member. The first call for a member and binding starts the actor.

        Raises:
            ConfigError: The member cannot be used, or the maximum number of backends (`limits.backends`) is in use.
        """
        if (known := self.actors.get((member, binding))) is not None:
            return known
        config = self._config
        if len(self.actors) >= (most := config.limits.backends):
            raise ConfigError(
                f"Cannot use backend {member!r}, because {most} backends are in use already; raise limits.backends"
            )
        from actors.provider.configured_credentials import credentials_of, headers_of, url_query_of

        backend = config.backend(member)
        endpoint = _build_endpoint(
            backend,
            credentials_of(config, member),
            partial(headers_of, config, member),
            partial(url_query_of, config, member),
            {name: tenant.weight for name, tenant in config.settings.tenants.items()},
        )
        meter = self._meters.add_meter(backend.binding)
        codec = adapter(config.dialect_of(binding))
        make = partial(ProviderActor, codec, endpoint, self._transport, self._random, meter)
        self._count += 1
        name = f"provider/{backend.name}/{self._count}"
        ref: Ref[ProviderCommand] = system.spawn(make, name, depth=SHARED, restart=Restart(intensity=10))
        self.actors[member, binding] = ref
        forget = partial(self.actors.pop, (member, binding), None)
        system.watch(ref, forget)  # after an actor has crashed too often, the next request starts a new one
        return ref


def _build_endpoint(
    backend: "Backend",
    credentials: Credentials,
    headers: Callable[[], Headers],
    query: Callable[[], str],
    weights: Mapping[str, float],
) -> Endpoint:
    limits = backend.limits
    return Endpoint(
        backend.endpoint,
        credentials,
        headers,
        query,
        Timeouts(
            limits.connect_timeout,
            limits.first_byte_timeout,
            limits.idle_timeout,
            limits.timeout,
            pool=limits.first_byte_timeout,
        ),
        Retries(attempts=limits.attempts),
        Pace(
            limits.concurrency,
            limits.waiting,
            limits.requests_per_minute,
            limits.tokens_per_minute,
            limits.failures,
            limits.cooldown,
            weights=weights,
        ),
        backend.stream,
        limits.answer_bytes,
        limits.silence_timeout,
    )
