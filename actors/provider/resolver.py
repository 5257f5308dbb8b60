"""Resolve the name of a target to its pool, backends, provider actors, prices and context windows, and select a member.

A session resolves its target when a turn begins. Sessions with the same tools and system prompt share a resolver.

The turn driver selects a member of a pool according to the pool's policy. Each member's provider actor reports the
member's state, which depends on the requests of all sessions to that backend. The session's `Affinity` records the time
and the size of the session's last request to each backend, whose prompt cache may still contain the prompt. It also
records with which member the session started in each pool, because some pools spread their sessions over the members.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, TypeAlias

import anyio
from msgspec import Struct
from msgspec.structs import asdict

from actors.adapters.adapter import adapter
from actors.adapters.request import Settings, ToolSpec
from actors.adapters.settings import tools_rejection_reason
from actors.core.history.compaction import (
    MIN_SAVING,
    Calibrations,
    Compaction,
    estimate_tokens,
    possible_savings,
)
from actors.core.ledger import Ledger
from actors.core.policy.routing import (
    SPREADING,
    UNKNOWN,
    AskPosition,
    Member,
    Pool,
    Rates,
    SkippedMember,
    choose_first,
    choose_next,
)
from actors.core.session.state import SessionState
from actors.core.settings.spending import Budget, exhausted_limit
from actors.core.stats.stats import ToolCounts
from actors.core.transcript.diagnostics import Refusal
from actors.core.values.identity import Binding, content_digest
from actors.core.values.stream import Usage
from actors.errors import ConfigError, KernelError, ToolDefinitionError
from actors.kernel import Ref
from actors.provider.backend import LearnedFacts, ResolvedBackend
from actors.provider.budgets import SharedBudget
from actors.provider.pricing import Pricing
from actors.provider.provider_actor import Inspect, ProviderCommand
from actors.tools import Toolset
from actors.tools.tool import Handover

if TYPE_CHECKING:
    from actors.config import Backend, Config

POSITION_RANGE = 1 << 16
"""The number of positions from which a process draws the first position in a pool at random."""


class StartPositions:
    """Assigns each new session the position of its first member, in pools that spread their sessions over the members.

    Each session starts one position after the previous session. A runtime has one object of this class. The first
    position is random, so that sessions are spread even if each of many processes opens only one session. If
    `is_seeded`, the first position is 0.
    """

    def __init__(self, random: Random, *, is_seeded: bool) -> None:
        self._random, self._is_seeded = random, is_seeded
        self._next: dict[str, int] = {}

    def next_position(self, pool: str) -> int:
        """Return the start position of the next session in a pool."""
        place = self._next.get(pool)
        if place is None:
            place = 0 if self._is_seeded else self._random.randrange(POSITION_RANGE)
        self._next[pool] = place + 1
        return place


Provide: TypeAlias = Callable[[str, Binding], Ref[ProviderCommand]]
"""A function that returns the provider actor of a pool's member."""
BudgetsOf: TypeAlias = Callable[[str, str], tuple[SharedBudget, ...]]
"""A function that returns the budgets of a tenant and of a target."""
RecordRefusal: TypeAlias = Callable[[Refusal], None]
"""A function that counts, logs and dumps a transcript that a provider rejected."""


class Resolver:
    """Looks up pools and backends by name. Sessions with the same tools and system prompt share one object.

    The tools and the system prompt are part of every request to a resolved backend.

    Attributes:
        start_positions: Assigns the start positions of new sessions in pools that spread their sessions.
        compaction: When and how histories are compacted.
        calibrations: Ratios of reported to estimated tokens, by binding.
        budgets: Returns the budgets that apply to a tenant and a target.
        rates: Returns the prices of a binding, or None if they are unknown.
        cost: Returns the cost of usage, or None if a price is unknown.
        window: Returns the context window in tokens that compaction uses for a binding, or None if compaction must not
            use one.
        known_window: Returns the context window of a binding in tokens, or None if it is unknown.
        provider: Returns the provider actor of a pool's member. Raises `ConfigError` if the member cannot be used.
        record_refusal: Counts, logs and dumps a transcript that a provider rejected because of its structure.
        handovers: The tools that hand the conversation over to another target, by name.
    """

    compaction: Compaction
    calibrations: Calibrations
    budgets: BudgetsOf
    rates: Callable[[Binding], Rates | None]
    window: Callable[[Binding], int | None]
    known_window: Callable[[Binding], int | None]
    cost: Callable[[Binding, Usage], float | None]

    def __init__(
        self,
        config: "Config",
        provide: Provide,
        record_refusal: RecordRefusal,
        tools: Toolset,
        system: str | None,
        counts: dict[str, ToolCounts],
        pricing: Pricing,
        compaction: Compaction,
        calibrations: Calibrations,
        budgets: BudgetsOf,
        learned: LearnedFacts,
        start_positions: StartPositions,
    ) -> None:
        self.start_positions = start_positions
        self._learned = learned
        self.compaction, self.calibrations, self.budgets = compaction, calibrations, budgets
        self.rates, self.window, self.cost = pricing.rates, pricing.window, pricing.cost
        self.known_window = pricing.known_window
        self._pricing = pricing
        self._counts = counts
        self._config = config
        self.provider = provide
        self.record_refusal = record_refusal
        self._system = system
        self.handovers: dict[str, Handover] = {
            tool.name: tool._handover for tool in tools if tool._handover is not None
        }
        self._tools = tuple(ToolSpec(tool.name, tool.description, tool.parameters) for tool in tools)
        self._resolved: dict[str, tuple[Backend, ResolvedBackend]] = {}

    def member(self, binding: Binding) -> str:
        """Return the name under which a pool lists a binding's backend: the backend's name, or `provider:model` if the
        backend is not configured.
        """
        name = binding.backend
        return name if name in self._config.settings.backends else f"{name}:{binding.model}"

    @cached_property
    def request_head_size(self) -> int:
        """Size in bytes of the system prompt and of the tools' names, descriptions and schemas."""
        said = [(tool.name, tool.description, tool.parameters) for tool in self._tools]
        return sum(len(part) for tool in said for part in tool) + len(self._system or "")

    @cached_property
    def config_digest(self) -> str:
        """A digest of the system prompt and the tools, which changes if either of them changes."""
        said = [(tool.name, tool.description, bytes(tool.parameters)) for tool in self._tools]
        return content_digest(repr((self._system, said)))[:16]

    def pool(self, target: str, *, must_fit: bool = True) -> Pool:
        """Return the pool of a target. A single backend is a pool with one member.

        Args:
            target: The name that the user gave.
            must_fit: Whether to raise an error if a member accepts fewer tools than the session has, or if no member
                accepts tools. If False, the request fails later instead. In both cases, members that accept no tools
                are skipped.

        Raises:
            ConfigError: The target does not exist or cannot be used.
        """
        given: object = target
        settings = self._config.settings.pools.get(target) if isinstance(given, str) else None
        if settings is None:
            (backend,) = self._config.resolve(target).members
            if must_fit and (why := self._why_unusable(backend)):
                raise ConfigError(why)
            return Pool(target, (target,))
        reasons = {name: self._why_skipped(name, must_fit=must_fit) for name in settings.members}
        usable = tuple(name for name in settings.members if not reasons[name])
        if must_fit and not usable:
            raise ConfigError(f"No member of pool {target!r} accepts tools. {next(iter(reasons.values()))}")
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

    def _why_skipped(self, member: str, *, must_fit: bool) -> str:
        """Return the reason to skip a pool's member, or an empty string.

        If `must_fit` is False, a member that cannot be resolved is not skipped; the error is raised when the member is
        used.
        """
        try:
            backend = self._config.backend(member)
        except ConfigError:
            if must_fit:
                raise
            return ""
        return self._why_unusable(backend) if must_fit else self._why_no_tools(backend)

    def _why_unusable(self, backend: "Backend") -> str:
        """Return the reason why a backend accepts no tools, or an empty string.

        Raises:
            ToolDefinitionError: The backend accepts fewer tools than the session has.
        """
        self._check_tool_count(backend)
        return self._why_no_tools(backend)

    def _why_no_tools(self, backend: "Backend") -> str:
        """Return the reason why a backend accepts no tools, and a fix. Return an empty string if the backend accepts
        tools, or if the session has no tools.
        """
        if not self._tools:
            return ""
        return tools_rejection_reason(backend.model, self._config.dialect_of(backend.binding))

    def _check_tool_count(self, backend: "Backend") -> None:
        """Raise `ToolDefinitionError` if the backend's dialect accepts fewer tools than the session has."""
        most = self._config.dialect_of(backend.binding).request.max_tools
        if most is not None and (count := len(self._tools)) > most:
            raise ToolDefinitionError(
                f"The session has {count} tools, but backend {backend.name!r} accepts at most {most} "
                f"({backend.dialect}); remove some tools or use another backend"
            )

    def backend(self, member: str, dialect: str | None = None) -> ResolvedBackend:
        """Return the backend of a pool member. Repeated calls return the same object until the configuration or a key
        changes.

        Args:
            member: The member's name.
            dialect: The dialect in which to continue an open turn. `None` means the member's current dialect.

        Raises:
            ConfigError: The member does not exist or cannot be used.
        """
        backend = self._config.backend(member)
        if dialect is not None and dialect != backend.dialect:
            return self._resolve_backend(self._config.with_dialect(backend, dialect))
        known = self._resolved.get(member)
        if known is None or known[0] is not backend:
            known = self._resolved[member] = backend, self._resolve_backend(backend)
        return known[1]

    def _resolve_backend(self, backend: "Backend") -> ResolvedBackend:
        self._pricing.prepare_prices(backend.binding)
        self._check_tool_count(backend)
        if why := self._why_no_tools(backend):
            raise ConfigError(why)
        settings = Settings(
            model=backend.model,
            system=self._system,
            tools=self._tools,
            **asdict(backend.request),
            thinking=backend.reasoning.mode,
            budgeted=self._config._render_target(backend.binding).budgeted,
            thinking_tokens=backend.reasoning.tokens,
            upstream=backend.upstream,
            cache=backend.cache,
            stream=backend.stream,
        )
        counts = self._counts.setdefault(backend.binding.backend, ToolCounts())
        codec, facts = (
            adapter(self._config.dialect_of(backend.binding)),
            self._learned.facts_of(backend.binding),
        )
        return ResolvedBackend(backend.binding, codec, settings, counts, facts)


def check_prices(
    resolver: Resolver, target: str, tenant: str, budget: Budget | None, *, must_fit: bool = True
) -> None:
    """Raise an error if a budget in money or the policy `cheapest` needs a price that is unknown.

    Args:
        resolver: The resolver of the session.
        target: The target, whose pool may have a budget.
        tenant: The tenant, which may have a budget.
        budget: The budget of the session.
        must_fit: See `Resolver.pool`.

    Raises:
        ConfigError: A price is missing, or the target cannot be used.
    """
    pool = resolver.pool(target, must_fit=must_fit)
    if pool.policy == "cheapest" and not any(
        resolver.rates(resolver.backend(member).binding) for member in pool.members
    ):
        raise ConfigError(
            f"Pool {pool.name!r} has the policy 'cheapest', but no member has a price; add `price` to its "
            "backends, or the models to [prices] or Runtime(prices=...)"
        )
    is_counted = budget is not None and budget.money is not None
    if not (is_counted or any(each.counts_money for each in resolver.budgets(tenant, target))):
        return
    for member in pool.members:
        binding = resolver.backend(member).binding
        if resolver.cost(binding, Usage()) is None:
            raise ConfigError(
                f"A cost budget needs the price of model {binding.model!r} (backend {member!r}), but the price is "
                "unknown; add it to [prices] or to Runtime(prices=...)"
            )


def used_up_limit(resolver: Resolver, state: SessionState) -> str | None:
    """Return one line that states which limit of the session's budget is used up, or None if no limit is."""
    if state.budget is None or state.used is None:
        return None
    return exhausted_limit(state.budget, state.used, resolver.cost)


def expected_tokens(resolver: Resolver, state: SessionState, ledger: Ledger, binding: Binding) -> int:
    """Return an estimate of the input tokens of a session's next request to a binding."""
    ratio = resolver.calibrations[binding].ratio
    return estimate_tokens(state.history, ledger, state.measured, binding, resolver.request_head_size, ratio)


def compaction_limit(
    resolver: Resolver, state: SessionState, ledger: Ledger, binding: Binding, before_index: int
) -> float | None:
    """Return the token limit that makes it necessary to compact a session's history before its next request.

    Return None if the request does not reach the limit, if there is no limit, or if compacting the messages before
    index `before_index` would save too little.
    """
    settings, window = resolver.compaction, resolver.window(binding)
    if settings.threshold is None or window is None:
        return None
    most = window * settings.threshold
    if expected_tokens(resolver, state, ledger, binding) < most:
        return None
    ratio = resolver.calibrations[binding].ratio
    return (
        most
        if possible_savings(state.history, ledger, settings, before_index, ratio) >= most * MIN_SAVING
        else None
    )


class Affinity(Struct):
    """A session's preference for certain pool members. It survives restarts of the session's actors, and is discarded
    when the session is closed.

    Args:
        start_positions: By pool, the position of the session's first member, and the number of the session's first ask
            in the pool.
        last_requests: For each backend, the loop time and the size in bytes of the last request. Recorded only for pool
            policies that use it.
    """

    start_positions: dict[str, tuple[int, int]] = {}
    last_requests: dict[str, tuple[float, int]] = {}

    def __bool__(self) -> bool:
        return bool(self.start_positions or self.last_requests)


AFFINITY_POLICIES = frozenset(("sticky", "cheapest"))
"""Policies that consider the last requests of the session."""


class MemberSelector:
    """Selects pool members for the turns of one ask.

    Args:
        resolver: Resolves targets. It is replaced when the tools change.
        affinity: The affinity of the session.
        ask_number: The number of the ask in its session.
    """

    def __init__(self, resolver: Resolver, affinity: Affinity, ask_number: int) -> None:
        self.resolver = resolver
        self._affinity, self._ask = affinity, ask_number

    async def first_member(self, pool: Pool) -> str:
        """Return the pool member that should answer the ask's first turn."""
        if pool.policy == "manual" or len(pool.members) == 1:
            return pool.members[0]
        # before any wait, so that positions are assigned in the order of the asks
        position = self._ask_position(pool)
        return choose_first(pool, await self._member_states(pool), position)

    async def next_member(self, pool: Pool, tried: Sequence[str], *, visible: bool) -> str | None:
        """Return the pool member that should continue after a failed turn, or None to give up. `tried` lists the
        members used so far.

        `visible` is True if part of the failed answer was visible to the user.
        """
        if pool.policy == "manual" or len(pool.members) == 1:
            return None
        return choose_next(
            pool, await self._member_states(pool), self._ask_position(pool), tried, visible=visible
        )

    def _ask_position(self, pool: Pool) -> AskPosition:
        """Return what the pool's policy needs to know about this ask: its number among the session's asks in the pool,
        and the position of the session's first member.
        """
        if pool.policy not in SPREADING:
            return AskPosition(self._ask)
        start_positions = self._affinity.start_positions
        if pool.name not in start_positions:
            start_positions[pool.name] = self.resolver.start_positions.next_position(pool.name), self._ask
        place, first_ask = start_positions[pool.name]
        return AskPosition(self._ask - first_ask + 1, place)

    def record_request(self, pool: Pool, member: str, size: int) -> None:
        """Record a request to `member` of `size` bytes, for policies that prefer a backend with a warm prompt cache."""
        if pool.policy in AFFINITY_POLICIES:
            self._affinity.last_requests[member] = anyio.current_time(), size

    async def _member_states(self, pool: Pool) -> Mapping[str, Member]:
        return {name: await self._member_state(name, pool) for name in pool.members}

    async def _member_state(self, name: str, pool: Pool) -> Member:
        """Return the current state of a pool's member, or `UNKNOWN` if the member cannot be used."""
        try:
            binding = self.resolver.backend(name).binding
            condition = await self.resolver.provider(name, binding).ask(Inspect())
        except (ConfigError, KernelError):
            return UNKNOWN  # the same error is raised again when the member is used
        since = condition.seconds_since_failure
        failed = since is not None and since < pool.cooldown
        at, size = self._affinity.last_requests.get(name, (None, 0))
        return Member(
            failed or condition.closed_for > 0,
            condition.in_flight + condition.waiting,
            None if at is None else anyio.current_time() - at,
            size,
            self.resolver.rates(binding) if pool.policy == "cheapest" else None,
        )
