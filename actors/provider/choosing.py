"""Select a member of a pool according to the pool's policy. Each member's provider actor reports the member's state.

The turn driver uses this module. A provider actor sees the requests of all sessions to its backend, so each session
benefits from the results of all sessions' requests. The `Affinity` belongs to one session. It records the time and size
of the session's last request to each backend, whose prompt cache may still contain the prompt. In addition, it records
with which member the session started in each pool, because some pools spread their sessions over the members.
"""

from collections.abc import Mapping, Sequence

import anyio
from msgspec import Struct

from actors.core.policy.routing import (
    SPREADING,
    UNKNOWN,
    AskPosition,
    Member,
    Pool,
    choose_first,
    choose_next,
)
from actors.errors import ConfigError, KernelError
from actors.provider.provider_actor import Inspect
from actors.provider.resolver import Resolver


class Affinity(Struct):
    """A session's preference for certain pool members. It survives restarts of the session's actors, and is discarded
    when the session is closed.

    Args:
        places: For each pool, the position of the session's first member, and the number of the session's first ask in
            the pool.
        sent: For each backend, the loop time and the size in bytes of the last request. Recorded only for pool policies
            that use it.
    """

    places: dict[str, tuple[int, int]] = {}
    sent: dict[str, tuple[float, int]] = {}

    def __bool__(self) -> bool:
        return bool(self.places or self.sent)


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
        """Return the member that should answer the ask's first turn."""
        if pool.policy == "manual" or len(pool.members) == 1:
            return pool.members[0]
        # before any wait, so that positions are assigned in the order of the asks
        position = self._position(pool)
        return choose_first(pool, await self._member_states(pool), position)

    async def next_member(self, pool: Pool, tried: Sequence[str], *, visible: bool) -> str | None:
        """Return the pool member that should continue after a failed turn, or None to give up. `tried` lists the
        members used so far.

        `visible` is True if part of the failed answer was visible to the user.
        """
        if pool.policy == "manual" or len(pool.members) == 1:
            return None
        return choose_next(
            pool, await self._member_states(pool), self._position(pool), tried, visible=visible
        )

    def _position(self, pool: Pool) -> AskPosition:
        """Return the data that the pool's policy needs: the number of this ask in the pool, and the position of the
        session's first member.
        """
        if pool.policy not in SPREADING:
            return AskPosition(self._ask)
        places = self._affinity.places
        if pool.name not in places:
            places[pool.name] = self.resolver.places.next_place(pool.name), self._ask
        place, first_ask = places[pool.name]
        return AskPosition(self._ask - first_ask + 1, place)

    def record_request(self, pool: Pool, member: str, size: int) -> None:
        """Record a request to `member` of `size` bytes, for policies that prefer a backend with a warm prompt cache."""
        if pool.policy in AFFINITY_POLICIES:
            self._affinity.sent[member] = anyio.current_time(), size

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
        at, size = self._affinity.sent.get(name, (None, 0))
        return Member(
            failed or condition.closed_for > 0,
            condition.in_flight + condition.waiting,
            None if at is None else anyio.current_time() - at,
            size,
            self.resolver.rates(binding) if pool.policy == "cheapest" else None,
        )
