"""Choosing a pool's member: what is known of each is asked of its provider's actor, and the pool's policy decides.

How a backend does is known by its own actor alone, so whatever one session learns of it the others have learned too.
What is a session's own is its `Affinity`: where it began in a pool, and where it was sent how much, and when, since its
prompt cache may be warm there. A pool that spreads its sessions gives each the next place when it first asks there.
"""

from collections.abc import Mapping, Sequence

import anyio
from msgspec import Struct, field

from actors.core.policy.routing import SPREADING, UNKNOWN, Member, Occasion, Pool, after_failure, first
from actors.errors import ConfigError, KernelError
from actors.provider.provider_actor import Inspect
from actors.provider.resolver import Resolver


class Affinity(Struct):
    """What binds a session to members of pools. Kept while it is open, whatever becomes of its actors.

    Args:
        places: By pool, its place there and the number of the ask that it began with.
        sent: When it last sent each backend a request, and its bytes, by name: kept for pools that mind it.
    """

    places: dict[str, tuple[int, int]] = field(default_factory=dict)
    sent: dict[str, tuple[float, int]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.places or self.sent)


MINDING = frozenset(("sticky", "cheapest"))


class MemberSelector:
    """Chooses for one ask.

    Args:
        resolver: What targets mean; another once the tools change.
        affinity: The session's own.
        ask: The number of the ask.
    """

    def __init__(self, resolver: Resolver, affinity: Affinity, ask: int) -> None:
        self.resolver = resolver
        self._affinity, self._ask = affinity, ask

    async def first(self, pool: Pool) -> str:
        """Return the member that serves the ask's first turn."""
        if pool.policy == "manual" or len(pool.members) == 1:
            return pool.members[0]
        occasion = self._occasion(pool)  # ahead of any wait: places are given in the order of the asks
        return first(pool, await self._members(pool), occasion)

    async def following(self, pool: Pool, tried: Sequence[str], *, visible: bool) -> str | None:
        """Return the member that goes on after a failed turn, or None."""
        if pool.policy == "manual" or len(pool.members) == 1:
            return None
        return after_failure(pool, await self._members(pool), self._occasion(pool), tried, visible=visible)

    def _occasion(self, pool: Pool) -> Occasion:
        if pool.policy not in SPREADING:
            return Occasion(self._ask)
        places = self._affinity.places
        if pool.name not in places:
            places[pool.name] = self.resolver.places.take(pool.name), self._ask
        place, first_ask = places[pool.name]
        return Occasion(self._ask - first_ask + 1, place)

    def sent(self, pool: Pool, member: str, size: int) -> None:
        """Note what a turn sent last."""
        if pool.policy in MINDING:
            self._affinity.sent[member] = anyio.current_time(), size

    async def _members(self, pool: Pool) -> Mapping[str, Member]:
        return {name: await self._member(name, pool) for name in pool.members}

    async def _member(self, name: str, pool: Pool) -> Member:
        try:
            binding = self.resolver.backend(name).binding
            condition = await self.resolver.provider(name, binding).ask(Inspect())
        except (ConfigError, KernelError):
            return UNKNOWN  # it says why when it is tried
        failed = condition.failed is not None and condition.failed < pool.cooldown
        at, size = self._affinity.sent.get(name, (None, 0))
        return Member(
            failed or condition.closed_for > 0,
            condition.in_flight + condition.waiting,
            None if at is None else anyio.current_time() - at,
            size,
            self.resolver.rates(binding) if pool.policy == "cheapest" else None,
        )
