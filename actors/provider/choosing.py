"""Select the member of a pool: collect the state of each member from its provider actor, and apply the pool's policy.

The turn driver uses this. Only a backend's own actor knows the backend's state, so each session benefits from the
requests of all sessions. The `Affinity` belongs to one session. It contains the session's starting place in each pool,
and the time and size of its last request to each backend, whose prompt cache may still contain the prompt. In a pool
that spreads its sessions, each session gets the next place at its first ask.
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
    """The preference of a session for members of pools. It lasts while the session is open, across restarts of its
    actors.

    Args:
        places: By pool, the session's starting place and the number of its first ask there.
        sent: By backend, the loop time of the last request and its size in bytes. Recorded only for pools whose policy
            reads it.
    """

    places: dict[str, tuple[int, int]] = {}
    sent: dict[str, tuple[float, int]] = {}

    def __bool__(self) -> bool:
        return bool(self.places or self.sent)


AFFINITY_POLICIES = frozenset(("sticky", "cheapest"))
"""Policies that consider the last requests of the session."""


class MemberSelector:
    """A selector of pool members for the turns of one ask.

    Args:
        resolver: The resolver of targets; replaced when the tools change.
        affinity: The affinity of the session.
        ask_number: The number of the ask in its session.
    """

    def __init__(self, resolver: Resolver, affinity: Affinity, ask_number: int) -> None:
        self.resolver = resolver
        self._affinity, self._ask = affinity, ask_number

    async def first_member(self, pool: Pool) -> str:
        """Return the member that answers the ask's first turn."""
        if pool.policy == "manual" or len(pool.members) == 1:
            return pool.members[0]
        # before any wait, so that places are assigned in the order of the asks
        position = self._position(pool)
        return choose_first(pool, await self._member_states(pool), position)

    async def next_member(self, pool: Pool, tried: Sequence[str], *, visible: bool) -> str | None:
        """Return the member for the next turn after a failed turn, or None. `tried` lists the members used so far.

        `visible` means that a part of the failed answer was visible.
        """
        if pool.policy == "manual" or len(pool.members) == 1:
            return None
        return choose_next(
            pool, await self._member_states(pool), self._position(pool), tried, visible=visible
        )

    def _position(self, pool: Pool) -> AskPosition:
        """Return the number of this ask in the pool, and the session's starting place, for the pool's policy."""
        if pool.policy not in SPREADING:
            return AskPosition(self._ask)
        places = self._affinity.places
        if pool.name not in places:
            places[pool.name] = self.resolver.places.next_place(pool.name), self._ask
        place, first_ask = places[pool.name]
        return AskPosition(self._ask - first_ask + 1, place)

    def record_request(self, pool: Pool, member: str, size: int) -> None:
        """Record the last request of a turn, for policies that prefer the backend with a warm prompt cache."""
        if pool.policy in AFFINITY_POLICIES:
            self._affinity.sent[member] = anyio.current_time(), size

    async def _member_states(self, pool: Pool) -> Mapping[str, Member]:
        return {name: await self._member_state(name, pool) for name in pool.members}

    async def _member_state(self, name: str, pool: Pool) -> Member:
        """Return the current state of a pool's member; `UNKNOWN` if the member cannot be used."""
        try:
            binding = self.resolver.backend(name).binding
            condition = await self.resolver.provider(name, binding).ask(Inspect())
        except (ConfigError, KernelError):
            return UNKNOWN  # the error is raised when the member is used
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
