"""Select the member of a pool: collect the state of each member from its provider actor, and apply the pool's policy.

The turn driver uses it. Only a backend's own actor knows its state, so each session profits from the experience of
all. The `Affinity` belongs to a session: its starting place in a pool, and when it last sent how much to each
backend, whose prompt cache may still hold it. In a pool that spreads its sessions, each session gets the next place
at its first ask.
"""

from collections.abc import Mapping, Sequence

import anyio
from msgspec import Struct

from actors.core.policy.routing import SPREADING, UNKNOWN, Member, Occasion, Pool, after_failure, first
from actors.errors import ConfigError, KernelError
from actors.provider.provider_actor import Inspect
from actors.provider.resolver import Resolver


class Affinity(Struct):
    """The affinity of a session to members of pools. It is kept while the session is open, across restarts of its
    actors.

    Args:
        places: By pool, the session's place and the number of its first ask there.
        sent: By backend, the time of the last request and its size in bytes. Only recorded for pools that use it.
    """

    places: dict[str, tuple[int, int]] = {}
    sent: dict[str, tuple[float, int]] = {}

    def __bool__(self) -> bool:
        return bool(self.places or self.sent)


MINDING = frozenset(("sticky", "cheapest"))


class MemberSelector:
    """Selects the members for one ask.

    Args:
        resolver: The resolver of targets; replaced when the tools change.
        affinity: The affinity of the session.
        ask: The number of the ask.
    """

    def __init__(self, resolver: Resolver, affinity: Affinity, ask: int) -> None:
        self.resolver = resolver
        self._affinity, self._ask = affinity, ask

    async def first(self, pool: Pool) -> str:
        """Return the member that serves the ask's first turn."""
        if pool.policy == "manual" or len(pool.members) == 1:
            return pool.members[0]
        occasion = self._occasion(pool)  # before any wait: places are assigned in the order of the asks
        return first(pool, await self._members(pool), occasion)

    async def next_member(self, pool: Pool, tried: Sequence[str], *, visible: bool) -> str | None:
        """Return the member that takes over after a failed turn, or None."""
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

    def record_request(self, pool: Pool, member: str, size: int) -> None:
        """Record the last request of a turn."""
        if pool.policy in MINDING:
            self._affinity.sent[member] = anyio.current_time(), size

    async def _members(self, pool: Pool) -> Mapping[str, Member]:
        return {name: await self._member(name, pool) for name in pool.members}

    async def _member(self, name: str, pool: Pool) -> Member:
        try:
            binding = self.resolver.backend(name).binding
            condition = await self.resolver.provider(name, binding).ask(Inspect())
        except (ConfigError, KernelError):
            return UNKNOWN  # its error is reported when it is tried
        failed = condition.failed is not None and condition.failed < pool.cooldown
        at, size = self._affinity.sent.get(name, (None, 0))
        return Member(
            failed or condition.closed_for > 0,
            condition.in_flight + condition.waiting,
            None if at is None else anyio.current_time() - at,
            size,
            self.resolver.rates(binding) if pool.policy == "cheapest" else None,
        )
