"""Which binding serves the next turn: pools as pure rules.

A session's target names one backend or a pool. `manual` stays where it is; `round_robin` moves on with
every ask; `failover` takes its members in order, and after a member failed for good goes on to the next
one that has not been tried in this ask. A member that failed rests for the pool's cooldown. A switch that was held
is applied at the turn's end, or has failed by then.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from actors.core.events import SwitchApplied, SwitchFailed
from actors.errors import ConfigError

Policy: TypeAlias = Literal["manual", "round_robin", "failover"]


@dataclass(frozen=True, slots=True)
class Pool:
    """Backends that stand in for each other.

    Args:
        name: The pool's name; for a single backend, its own.
        members: Backend names, in order of preference.
        policy: How one is chosen.
        cooldown: Seconds a member rests after it failed for good.
        failover_after_output: Whether a continuation may follow an answer that was partly shown.
    """

    name: str
    members: tuple[str, ...]
    policy: Policy = "manual"
    cooldown: float = 30.0
    failover_after_output: bool = False


def first(pool: Pool, ask: int, cooldowns: Mapping[str, float], now: float) -> str:
    """Return the member that serves the first turn of an ask.

    Args:
        pool: The target.
        ask: Number of the ask, from 1: what a round robin counts.
        cooldowns: Until when members rest, by name, on the clock of `now`.
        now: Monotonic seconds.

    A resting member is passed over, unless all rest: then the choice is made as if none did.
    """
    start = (ask - 1) % len(pool.members) if pool.policy == "round_robin" else 0
    order = (*pool.members[start:], *pool.members[:start])
    if pool.policy == "manual":
        return order[0]
    return next((name for name in order if cooldowns.get(name, now) <= now), order[0])


def after_failure(pool: Pool, tried: Sequence[str], visible: bool) -> str | None:
    """Return the member for a continuation turn, or None if the ask has failed.

    Args:
        pool: The target.
        tried: Members tried in this ask, in order.
        visible: Whether any of an answer has reached the caller.
    """
    if pool.policy == "manual" or (visible and not pool.failover_after_output):
        return None
    start = pool.members.index(tried[-1]) + 1 if tried and tried[-1] in pool.members else 0
    order = (*pool.members[start:], *pool.members[:start])
    return next((name for name in order if name not in tried), None)


def settled(held: str, pool: Callable[[str], Pool]) -> SwitchApplied | SwitchFailed:
    """Return how a held switch ends at the turn's boundary.

    Args:
        held: Its target, which could be used when the switch was asked for.
        pool: Gives a target's pool, or raises `ConfigError` with the reason why it cannot be used any more.
    """
    try:
        pool(held)
    except ConfigError as error:
        return SwitchFailed(held, str(error))
    return SwitchApplied(held, held=True)
