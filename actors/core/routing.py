"""Which binding serves the next turn: pools as pure rules.

A session's target names one backend or a pool. `manual` stays where it is; `round_robin` moves on with
every ask; `failover` takes its members in order, and after a member failed for good goes on to the next
one that has not been tried in this ask. A member that failed rests for the pool's cooldown. A switch that was held
is applied at the turn's end, or has failed by then.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from actors.core.events import SwitchApplied, SwitchFailed
from actors.errors import ConfigError

Policy: TypeAlias = Literal["manual", "round_robin", "failover"]


class Pool(Struct, frozen=True):
    """Backends that stand in for each other, in order of preference; or a single one, under its own name.

    A member that failed for good rests for `cooldown` seconds. `failover_after_output`: a continuation may follow an
    answer that was partly shown.
    """

    name: str
    members: tuple[str, ...]
    policy: Policy = "manual"
    cooldown: float = 30.0
    failover_after_output: bool = False

    def order(self, start: int) -> tuple[str, ...]:
        """Return all members, beginning with the one at `start`."""
        return (*self.members[start:], *self.members[:start])


def first(pool: Pool, ask: int, cooldowns: Mapping[str, float], now: float) -> str:
    """Return the member that serves the first turn of an ask.

    Asks are numbered from 1; `cooldowns` say until when members rest, on the monotonic clock of `now`. A resting member
    is passed over, unless all rest: then the choice is made as if none did.
    """
    if pool.policy == "manual":
        return pool.members[0]
    order = pool.order((ask - 1) % len(pool.members) if pool.policy == "round_robin" else 0)
    return next((name for name in order if cooldowns.get(name, now) <= now), order[0])


def after_failure(pool: Pool, tried: Sequence[str], visible: bool) -> str | None:
    """Return the member for a continuation turn, or None if the ask has failed.

    `visible` says whether any of an answer has reached the caller.
    """
    if pool.policy == "manual" or (visible and not pool.failover_after_output):
        return None
    start = pool.members.index(tried[-1]) + 1 if tried and tried[-1] in pool.members else 0
    return next((name for name in pool.order(start) if name not in tried), None)


def settled(held: str, pool: Callable[[str], Pool]) -> SwitchApplied | SwitchFailed:
    """Return how a held switch ends at the turn's boundary.

    Its target could be used when the switch was asked for; `pool` may raise `ConfigError`, which says why it no longer
    can.
    """
    try:
        pool(held)
    except ConfigError as error:
        return SwitchFailed(held, str(error))
    return SwitchApplied(held, held=True)
