"""Which member of a pool serves the next turn: pure rules over what is known of the members at that moment.

A session's target names one backend or a pool. A policy puts a pool's members in an order; those that were tried in
this ask are left out, those that failed lately or are left alone come last, and the first of the rest serves. Only
`manual` never moves: it stays with its first member, whatever happens.

    policy            begins with
    manual            the first member, and no other
    failover          the first member
    round_robin       the next one with every ask of the session; sessions begin one behind the other
    weighted          the same, in a sequence in which each has its share
    sticky            the one that this session was served by last while its prompt cache is warm, else as weighted
    cheapest          the one that the request costs least at, by price and what its cache will read
    least_in_flight   the one with the fewest requests in flight and waiting

A switch that was held is applied at the turn's end, or has failed by then.
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
"""Policies by which each session begins at a place of its own."""
CACHE_LIFE = 300.0
"""Seconds for which a provider's prompt cache is taken to be warm after a request."""
REQUEST, ANSWER = 8000, 2000
"""Bytes that a request and an answer are taken to have where costs are compared; what was sent is counted as it was."""


class SkippedMember(Struct, frozen=True):
    """A member of a pool that is not asked, and why in one line: it takes none of the session's tools."""

    member: str
    why: str


class Pool(Struct, frozen=True):
    """Backends that stand in for each other, in order of preference; or a single one, under its own name.

    A member that failed for good is passed over for `cooldown` seconds, or until it answered somebody.
    `failover_after_output`: a continuation may follow an answer that was partly shown. `failover_on_refusal`: it may
    follow a transcript that a member, or the judge, refused for its structure. `weights` are those of the members, in
    their order; 1 each if there are none. `skipped`: members of the configuration that are not among `members`.
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
        """Return all members, beginning with the one at `start`."""
        return (*self.members[start:], *self.members[:start])


class Rates(Struct, frozen=True):
    """What a backend charges for a token, in any money that all members share."""

    input: float
    cached: float
    output: float


class Member(Struct, frozen=True):
    """What is known of a member when one is chosen.

    Args:
        avoid: It failed lately, or is left alone.
        in_flight: Its requests of all sessions, those that wait included.
        used: Seconds since this session last sent it a request; None if it never did.
        lane: Bytes of that request.
        rates: What it charges, if that is known.
    """

    avoid: bool = False
    in_flight: int = 0
    used: float | None = None
    lane: int = 0
    rates: Rates | None = None

    @property
    def is_warm(self) -> bool:
        """Whether its prompt cache may still hold what this session sent last."""
        return self.used is not None and self.used < CACHE_LIFE


UNKNOWN = Member()


class Occasion(Struct, frozen=True):
    """When a member is chosen.

    Args:
        ask: The number of the ask, from 1, counted since the session was first served by the pool.
        place: Where the session begins, in a pool that spreads its sessions (`SPREADING`).
    """

    ask: int
    place: int = 0


def first(pool: Pool, members: Mapping[str, Member], occasion: Occasion) -> str:
    """Return the member that serves the first turn of an ask."""
    return _chosen(_ordered(pool, members, occasion), members, ()) or pool.members[0]


def after_failure(
    pool: Pool, members: Mapping[str, Member], occasion: Occasion, tried: Sequence[str], *, visible: bool
) -> str | None:
    """Return the member for a continuation turn, or None if the ask has failed.

    `visible` says whether any of an answer has reached the caller.
    """
    if pool.policy == "manual" or (visible and not pool.failover_after_output):
        return None
    order = _ordered(pool, members, occasion)
    if pool.policy in ("failover", "round_robin") and tried and tried[-1] in pool.members:
        order = pool.order(pool.members.index(tried[-1]) + 1)
    return _chosen(order, members, tried)


def expected_cost(member: Member, size: int) -> float:
    """Return what a request of so many bytes would cost, in a quarter of the rates' money; unknown rates cost most."""
    if member.rates is None:
        return float("inf")
    cached = min(size, member.lane) if member.is_warm else 0
    rates = member.rates
    return cached * rates.cached + (size - cached) * rates.input + ANSWER * rates.output


def _chosen(order: Sequence[str], members: Mapping[str, Member], tried: Sequence[str]) -> str | None:
    """Return the first that was not tried and need not be avoided; if all must be, the first not tried."""
    left = [name for name in order if name not in tried]
    return next((name for name in left if not members.get(name, UNKNOWN).avoid), left[0] if left else None)


def _ordered(pool: Pool, members: Mapping[str, Member], occasion: Occasion) -> Sequence[str]:
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
            return _weighted(pool, at)
        case "sticky":
            warm = sorted((member.used or 0.0, name) for name, member in known if member.is_warm)
            return [*(name for _, name in warm), *_weighted(pool, occasion.place)]
        case "cheapest":
            size = max(member.lane for _, member in known) or REQUEST
            return [name for name, _ in sorted(known, key=lambda each: expected_cost(each[1], size))]
        case "least_in_flight":
            return [name for name, _ in sorted(known, key=lambda each: each[1].in_flight)]


def _weighted(pool: Pool, place: int) -> tuple[str, ...]:
    """Return the members, beginning with the one whose turn it is at a place of the pool's sequence."""
    sequence = _sequence(pool.weights or (1,) * len(pool.members))
    return pool.order(sequence[place % len(sequence)])


@lru_cache(maxsize=256)
def _sequence(weights: tuple[int, ...]) -> tuple[int, ...]:
    """Return positions in which each comes up as often as its weight says, spread evenly."""
    return tuple(_smooth(weights))


def _smooth(weights: tuple[int, ...]) -> Iterator[int]:
    credit, whole = [0] * len(weights), sum(weights)
    for _ in range(whole):
        credit = [have + weight for have, weight in zip(credit, weights, strict=True)]
        best = max(range(len(weights)), key=lambda position: credit[position])
        credit[best] -= whole
        yield best


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
