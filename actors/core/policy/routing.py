"""Choose the member of a pool that serves the next turn, from the members' current state.

A session's target is a backend or a pool. A policy orders a pool's members. Members already tried in this ask are
skipped, members that failed recently or are cooling down come last, and the first of the rest serves. Only `manual`
never moves from its first member.

    policy            begins with
    manual            the first member, and no other
    failover          the first member
    round_robin       the next member with every ask of the session; sessions start at successive members
    weighted          the same, in a sequence that repeats each member by its weight
    sticky            the member that served this session last while its prompt cache is warm, else as weighted
    cheapest          the member with the lowest cost for the request, by price and expected cache reads
    least_in_flight   the member with the fewest requests in flight and waiting

A deferred switch is applied, or has failed, by the end of the turn.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Literal, TypeAlias

from msgspec import Struct

from actors.core.log.events import SwitchApplied, SwitchFailed
from actors.errors import ConfigError

Policy: TypeAlias = Literal[
    "manual", "failover", "round_robin", "weighted", "sticky", "cheapest", "least_in_flight"
]

SPREADING: frozenset[Policy] = frozenset(("round_robin", "weighted", "sticky"))
"""Policies under which sessions start at different members."""
CACHE_LIFE = 300.0
"""Assumed seconds for which a provider's prompt cache stays warm after a request."""
REQUEST, ANSWER = 8000, 2000
"""Assumed bytes of a request and an answer in cost comparisons, if the session has sent no request yet."""


class SkippedMember(Struct, frozen=True):
    """A pool member that is skipped because it supports none of the session's tools; `why` is one line."""

    member: str
    why: str


class Pool(Struct, frozen=True):
    """Backends that replace each other, in order of preference; or a single backend under its own name.

    Args:
        name: The pool's name.
        members: Names of the backends.
        policy: The rule that orders the members.
        cooldown: Seconds for which a failed member is avoided, unless it answers another session earlier.
        failover_after_output: True if another member may continue after part of an answer was visible.
        failover_on_refusal: True if another member may continue after a member or the judge refused the transcript's
            structure.
        weights: Weights of the members, in their order; empty for equal weights.
        skipped: Configured members that are not among `members`.
    """

    name: str
    members: tuple[str, ...]
    policy: Policy = "manual"
    cooldown: float = 30.0
    failover_after_output: bool = False
    failover_on_refusal: bool = True
    weights: tuple[int, ...] = ()
    skipped: tuple[SkippedMember, ...] = ()

    def order(self, start: int) -> tuple[str, ...]:
        """Return all members, rotated to begin at index `start`."""
        return (*self.members[start:], *self.members[:start])


class Rates(Struct, frozen=True):
    """A backend's prices per token, in a currency that all members share."""

    input: float
    cached: float
    output: float


class Member(Struct, frozen=True):
    """The state of a member when one is chosen.

    Args:
        avoid: True if the member failed recently or is cooling down.
        in_flight: Requests of all sessions, waiting ones included.
        used: Seconds since this session's last request to the member; None if there was none.
        lane: Bytes of that request.
        rates: Its prices; None if unknown.
    """

    avoid: bool = False
    in_flight: int = 0
    used: float | None = None
    lane: int = 0
    rates: Rates | None = None

    @property
    def is_warm(self) -> bool:
        """True if the member's prompt cache may still hold this session's last request."""
        return self.used is not None and self.used < CACHE_LIFE


UNKNOWN = Member()


class Occasion(Struct, frozen=True):
    """The moment of a choice.

    Args:
        ask: Number of the ask, from 1, counted since the pool first served the session.
        place: The session's start position, under a policy that spreads sessions (`SPREADING`).
    """

    ask: int
    place: int = 0


def first(pool: Pool, members: Mapping[str, Member], occasion: Occasion) -> str:
    """Return the member that serves the first turn of an ask."""
    return _choose(_order(pool, members, occasion), members, ()) or pool.members[0]


def after_failure(
    pool: Pool, members: Mapping[str, Member], occasion: Occasion, tried: Sequence[str], *, visible: bool
) -> str | None:
    """Return the member for a continuation turn, or None if the ask fails.

    `visible` says whether part of an answer has reached the caller.
    """
    if pool.policy == "manual" or (visible and not pool.failover_after_output):
        return None
    order = _order(pool, members, occasion)
    if pool.policy in ("failover", "round_robin") and tried and tried[-1] in pool.members:
        order = pool.order(pool.members.index(tried[-1]) + 1)
    return _choose(order, members, tried)


def expected_cost(member: Member, size: int) -> float:
    """Return the expected cost of a request of `size` bytes, in a quarter of the currency unit; infinite if unknown.

    Bytes stand in for tokens, at about four bytes per token; only the comparison matters.
    """
    if member.rates is None:
        return float("inf")
    cached = min(size, member.lane) if member.is_warm else 0
    rates = member.rates
    return cached * rates.cached + (size - cached) * rates.input + ANSWER * rates.output


def _choose(order: Sequence[str], members: Mapping[str, Member], tried: Sequence[str]) -> str | None:
    """Return the first untried member that need not be avoided, else the first untried member."""
    left = [name for name in order if name not in tried]
    return next((name for name in left if not members.get(name, UNKNOWN).avoid), left[0] if left else None)


def _order(pool: Pool, members: Mapping[str, Member], occasion: Occasion) -> Sequence[str]:
    known = [(name, members.get(name, UNKNOWN)) for name in pool.members]
    at = occasion.place + occasion.ask - 1
    match pool.policy:
        case "manual":
            return pool.members[:1]
        case "failover":
            return pool.members
        case "round_robin":
            return pool.order(at % len(pool.members))
        case "weighted":
            return _weighted_order(pool, at)
        case "sticky":
            warm = sorted((member.used or 0.0, name) for name, member in known if member.is_warm)
            return [*(name for _, name in warm), *_weighted_order(pool, occasion.place)]
        case "cheapest":
            size = max(member.lane for _, member in known) or REQUEST
            return [name for name, _ in sorted(known, key=lambda each: expected_cost(each[1], size))]
        case "least_in_flight":
            return [name for name, _ in sorted(known, key=lambda each: each[1].in_flight)]


def _weighted_order(pool: Pool, place: int) -> tuple[str, ...]:
    """Return the members, beginning with the one at `place` in the pool's sequence."""
    sequence = _sequence(pool.weights or (1,) * len(pool.members))
    return pool.order(sequence[place % len(sequence)])


@lru_cache(maxsize=256)
def _sequence(weights: tuple[int, ...]) -> tuple[int, ...]:
    """Return a sequence of indexes in which each occurs as often as its weight, evenly spread."""
    return tuple(_smooth(weights))


def _smooth(weights: tuple[int, ...]) -> Iterator[int]:
    credit, whole = [0] * len(weights), sum(weights)
    for _ in range(whole):
        credit = [have + weight for have, weight in zip(credit, weights, strict=True)]
        best = max(range(len(weights)), key=lambda position: credit[position])
        credit[best] -= whole
        yield best


def resolve_switch(held: str, pool: Callable[[str], Pool]) -> SwitchApplied | SwitchFailed:
    """Return the outcome of a deferred switch at the end of its turn.

    The target was valid when the switch was requested; `pool` raises `ConfigError` if it no longer is.
    """
    try:
        pool(held)
    except ConfigError as error:
        return SwitchFailed(held, str(error))
    return SwitchApplied(held, held=True)
