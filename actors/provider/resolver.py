"""Targets: what a backend or pool that a session names comes to, resolved when a turn begins and kept between turns."""

from collections.abc import Callable, Mapping
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, TypeAlias

from msgspec.structs import asdict

from actors.adapters.adapter import Adapter, adapter
from actors.adapters.request import Settings, ToolSpec
from actors.adapters.settings import why_no_tools
from actors.core.history.compaction import Compaction
from actors.core.history.estimate import Calibrations
from actors.core.policy.routing import Pool, SkippedMember
from actors.core.stats.stats import ToolCounts
from actors.core.transcript.diagnostics import Refusal
from actors.core.values.identity import Binding, content_name
from actors.errors import ConfigError, ToolDefinitionError
from actors.kernel import Ref
from actors.provider.admission import Pace
from actors.provider.backend import ResolvedBackend
from actors.provider.budgets import SharedBudget
from actors.provider.credentials import Credentials, Headers
from actors.provider.learned import LearnedFacts
from actors.provider.places import PoolPlaces
from actors.provider.pricing import Pricing
from actors.provider.provider_actor import Meter, ProviderActor, ProviderCommand
from actors.provider.retries import Retries
from actors.provider.rounds import Endpoint
from actors.tools import Toolset
from actors.transport import Timeouts, Transport

if TYPE_CHECKING:
    from actors.config import Backend, Config

Provide: TypeAlias = Callable[[str, Binding], Ref[ProviderCommand]]
"""Returns who sends requests to a pool's member."""
BudgetsOf: TypeAlias = Callable[[str, str], tuple[SharedBudget, ...]]
"""Returns the budgets of a tenant and of a target."""
Refuse: TypeAlias = Callable[[Refusal], None]
"""Counts, logs and keeps a transcript that was refused."""


class BackendResolver:
    """What targets mean to sessions with the same tools and system prompt, which go with every request."""

    def __init__(
        self,
        config: "Config",
        provide: Provide,
        refuse: Refuse,
        tools: Toolset,
        system: str | None,
        counts: dict[str, ToolCounts],
        pricing: Pricing,
        compaction: Compaction,
        calibrations: Calibrations,
        budgets: BudgetsOf,
        learned: LearnedFacts,
        places: PoolPlaces,
    ) -> None:
        self.places = places
        self._learned = learned
        self.compaction, self.calibrations, self.budgets = compaction, calibrations, budgets
        self.rates, self.window, self.cost = pricing.rates, pricing.window, pricing.cost
        self.known_window = pricing.known_window
        self._pricing = pricing
        self._counts = counts
        self._config = config
        self.provider = provide
        self.refused = refuse
        self._system = system
        self.handovers = {tool.name: tool.handover for tool in tools if tool.handover is not None}
        self._tools = tuple(ToolSpec(tool.name, tool.description, tool.parameters) for tool in tools)
        self._resolved: dict[str, tuple[Backend, ResolvedBackend]] = {}

    def member(self, binding: Binding) -> str:
        """Return what names a binding's backend as a pool's member."""
        name = binding.backend
        return name if name in self._config.settings.backends else f"{name}:{binding.model}"

    @cached_property
    def preamble_size(self) -> int:
        """Bytes of the system prompt and of what requests say of the tools."""
        said = [(tool.name, tool.description, tool.parameters) for tool in self._tools]
        return sum(len(part) for tool in said for part in tool) + len(self._system or "")

    @cached_property
    def preamble(self) -> str:
        """Digest of the system prompt and the tools."""
        said = [(tool.name, tool.description, bytes(tool.parameters)) for tool in self._tools]
        return content_name(repr((self._system, said)))[:16]

    def pool(self, target: str, *, fits: bool = True) -> Pool:
        """Return the pool of a target; see `actors.provider.backend.Resolver`."""
        given: object = target
        settings = self._config.settings.pools.get(target) if isinstance(given, str) else None
        if settings is None:
            (backend,) = self._config.resolve(target).members
            if fits and (why := self._why_not(backend)):
                raise ConfigError(why)
            return Pool(target, (target,))
        reasons = {name: self._why_not_member(name, fits=fits) for name in settings.members}
        usable = tuple(name for name in settings.members if not reasons[name])
        if fits and not usable:
            raise ConfigError(f"No member of pool {target!r} takes tools. {next(iter(reasons.values()))}")
        served = usable or settings.members
        return Pool(
            target,
            served,
            settings.policy,
            settings.cooldown,
            settings.failover_after_output,
            settings.failover_on_refusal,
            tuple(settings.weights.get(name, 1) for name in served) if settings.weights else (),
            tuple(SkippedMember(name, reasons[name]) for name in settings.members if name not in served),
        )

    def _why_not_member(self, member: str, *, fits: bool) -> str:
        """Return why a pool's member is passed over; one that cannot be resolved now says so when it is asked."""
        try:
            backend = self._config.backend(member)
        except ConfigError:
            if fits:
                raise
            return ""
        return self._why_not(backend) if fits else self._why_no_tools(backend)

    def _why_not(self, backend: "Backend") -> str:
        """Return why a backend takes none of the session's tools. One that takes fewer is refused."""
        self._check_count(backend)
        return self._why_no_tools(backend)

    def _why_no_tools(self, backend: "Backend") -> str:
        """Return why a backend takes none of the session's tools, with the fix; empty if it takes them."""
        if not self._tools:
            return ""
        return why_no_tools(backend.model, self._config.dialect_of(backend.binding))

    def _check_count(self, backend: "Backend") -> None:
        """Refuse a backend whose dialect takes fewer tools than the session has."""
        most = self._config.dialect_of(backend.binding).request.max_tools
        if most is not None and (count := len(self._tools)) > most:
            raise ToolDefinitionError(
                f"The session has {count} tools and backend {backend.name!r} takes at most {most} "
                f"({backend.dialect}); give it fewer, or another backend"
            )

    def backend(self, member: str, dialect: str | None = None) -> ResolvedBackend:
        """Return what requests to a member are made with. The same until the configuration or a key changes."""
        backend = self._config.backend(member)
        if dialect is not None and dialect != backend.dialect:
            return self._made(self._config.speaking(backend, dialect))
        known = self._resolved.get(member)
        if known is None or known[0] is not backend:
            known = self._resolved[member] = backend, self._made(backend)
        return known[1]

    def _made(self, backend: "Backend") -> ResolvedBackend:
        self._pricing.prepare(backend.binding)
        self._check_count(backend)
        if why := self._why_no_tools(backend):
            raise ConfigError(why)
        settings = Settings(
            model=backend.model,
            system=self._system,
            tools=self._tools,
            **asdict(backend.request),
            thinking=backend.reasoning.mode,
            budgeted=self._config.reader(backend.binding).budgeted,
            thinking_tokens=backend.reasoning.tokens,
            upstream=backend.upstream,
            cache=backend.cache,
            stream=backend.stream,
        )
        counts = self._counts.setdefault(backend.binding.backend, ToolCounts())
        codec, facts = adapter(self._config.dialect_of(backend.binding)), self._learned.of(backend.binding)
        return ResolvedBackend(backend.binding, codec, settings, counts, facts)


def provider_at(
    backend: "Backend",
    codec: Adapter,
    credentials: Credentials,
    headers: Callable[[], Headers],
    query: Callable[[], str],
    transport: Transport,
    random: Random,
    weights: Mapping[str, float],
    meter: Meter,
) -> ProviderActor:
    """Return the actor that serves a configured backend."""
    limits = backend.limits
    endpoint = Endpoint(
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
    return ProviderActor(codec, endpoint, transport, random, meter)
