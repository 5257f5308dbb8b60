"""Choosing a pool's member: what is known of each is asked of its provider's actor, and the pool's policy decides.

How a backend does is known by its own actor alone, so whatever one session learns of it the others have learned too.
What is a session's own is where it was sent how much, and when: there its prompt cache may be warm.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias
from zlib import crc32

import anyio

from actors.backends.backend import Resolver
from actors.core.routing import UNKNOWN, Member, Occasion, Pool, after_failure, first
from actors.errors import ConfigError, KernelError
from actors.provider import Inspect

Warmth: TypeAlias = dict[str, tuple[float, int]]
"""When a session last sent each backend a request, and its bytes, by name: kept for pools that mind it."""

MINDING = frozenset(("sticky", "cheapest"))


class MemberChoice:
    """Chooses for one ask.

    Args:
        resolver: What targets mean; another once the tools change.
        warmth: The session's own.
        session, ask: Its id, and the number of the ask.
    """

    def __init__(self, resolver: Resolver, warmth: Warmth, session: str, ask: int) -> None:
        self.resolver = resolver
        self._warmth = warmth
        self._occasion = Occasion(ask, crc32(session.encode()))

    async def first(self, pool: Pool) -> str:
        """Return the member that serves the ask's first turn."""
        if pool.policy == "manual" or len(pool.members) == 1:
            return pool.members[0]
        return first(pool, await self._members(pool), self._occasion)

    async def following(self, pool: Pool, tried: Sequence[str], *, visible: bool) -> str | None:
        """Return the member that goes on after a failed turn, or None."""
        if pool.policy == "manual" or len(pool.members) == 1:
            return None
        return after_failure(pool, await self._members(pool), self._occasion, tried, visible=visible)

    def sent(self, pool: Pool, member: str, size: int) -> None:
        """Note what a turn sent last."""
        if pool.policy in MINDING:
            self._warmth[member] = anyio.current_time(), size

    async def _members(self, pool: Pool) -> Mapping[str, Member]:
        return {name: await self._member(name, pool) for name in pool.members}

    async def _member(self, name: str, pool: Pool) -> Member:
        try:
            binding = self.resolver.backend(name).binding
            condition = await self.resolver.provider(name, binding).ask(Inspect())
        except (ConfigError, KernelError):
            return UNKNOWN  # it says why when it is tried
        failed = condition.failed is not None and condition.failed < pool.cooldown
        at, size = self._warmth.get(name, (None, 0))
        return Member(
            failed or condition.closed_for > 0,
            condition.in_flight + condition.waiting,
            None if at is None else anyio.current_time() - at,
            size,
            self.resolver.rates(binding) if pool.policy == "cheapest" else None,
        )
