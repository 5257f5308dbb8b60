"""Choose the pool member that serves the next turn, from the current state of the members.

A session's target is a backend or a pool. A policy orders the members of a pool. Members that were already tried in
this ask are skipped, members that failed recently or are cooling down come last, and the first remaining member serves
the turn. The policy `manual` always uses the first member.

    policy            begins with
    manual            the first member, and uses no other member
    failover          the first member
    round_robin       the next member with every ask of the session; sessions start at successive members
    weighted          as round_robin, in a sequence that repeats each member by its weight
    sticky            the member that served this session last while its prompt cache is warm, else as weighted
    cheapest          the member with the lowest cost for the request, by price and expected cache reads
    least_in_flight   the member with the fewest requests in flight and waiting

At the end of a turn, a deferred switch is either applied or fails.
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
"""The policies under which different sessions start at different members."""
CACHE_LIFE = 300.0
"""Seconds after a request for which a provider's prompt cache is assumed to contain the request."""
REQUEST, ANSWER = 8000, 2000
"""Assumed sizes of a request and an answer in cost comparisons, in bytes. The size of a request is assumed only while
the session has sent none.
"""


class SkippedMember(Struct, frozen=True):
    """A pool member that is skipped because it accepts none of the session's tools.

    Args:
        member: Name of the backend.
        reason: The reason, on one line.
    """

    member: str
    reason: str


class Pool(Struct, frozen=True):
    """Backends that can replace each other, in order of preference. A single backend is a pool under its own name.

    Args:
        name: The pool's name.
        members: Names of the backends.
        policy: The rule that orders the members.
        cooldown: Seconds for which a failed member is avoided, unless it answers another session earlier.
        failover_after_output: True if another member may continue after the caller has received part of an answer.
        failover_on_refusal: True if another member may continue after a member or the judge rejected the transcript's
            structure.
        weights: Weights of the members, in their order; empty for equal weights.
        skipped: Configured members that are not in `members`, because they accept none of the session's tools.
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
        """Return all members, rotated so that the member at index `start` is first."""
        return (*self.members[start:], *self.members[:start])


class Rates(Struct, frozen=True):
    """A backend's prices per token, in the currency that all members use."""

    input: float
    cached: float
    output: float


class Member(Struct, frozen=True):
    """The state of a pool member at the moment of a choice.

    Args:
        should_avoid: True if the member failed recently or is cooling down.
        in_flight: Requests of all sessions, including waiting requests.
        seconds_since_use: Seconds since this session's last request to the member; None if there was none.
        lane_bytes: Size of this session's last request to the member, in bytes.
        rates: The member's prices; None if unknown.
    """

    should_avoid: bool = False
    in_flight: int = 0
    seconds_since_use: float | None = None
    lane_bytes: int = 0
    rates: Rates | None = None

    @property
    def is_warm(self) -> bool:
        """True if the provider's prompt cache may still contain this session's last request to the member."""
        return self.seconds_since_use is not None and self.seconds_since_use < CACHE_LIFE


UNKNOWN = Member()


class AskPosition(Struct, frozen=True):
    """The position of an ask in its session, and of the session in the pool. Both decide where round robin starts.

    Args:
        ask: Number of the ask, from 1, counted since the pool first served the session.
        place: The session's start position, under a policy that spreads sessions (`SPREADING`).
    """

    ask: int
    place: int = 0


def choose_first(pool: Pool, members: Mapping[str, Member], position: AskPosition) -> str:
    """Return the member that serves the first turn of an ask."""
    return _first_available(_order_members(pool, members, position), members, ()) or pool.members[0]


def choose_next(
    pool: Pool, members: Mapping[str, Member], position: AskPosition, tried: Sequence[str], *, visible: bool
) -> str | None:
    """Return the member that continues an ask after a failed turn; None if no member may, so that the ask fails.

    `tried` are the members that have served the ask, in order. `visible` is True if the caller has received part of an
    answer.
    """
    if pool.policy == "manual" or (visible and not pool.failover_after_output):
        return None
    order = _order_members(pool, members, position)
    if pool.policy in ("failover", "round_robin") and tried and tried[-1] in pool.members:
        order = pool.order(pool.members.index(tried[-1]) + 1)
    return _first_available(order, members, tried)


def expected_cost(member: Member, size: int) -> float:
    """Return a cost of a request of `size` bytes to this member, for comparisons; infinite if its prices are unknown.

    The cost counts bytes in place of tokens, so it is about four times the real cost.
    """
    if member.rates is None:
        return float("inf")
    cached = min(size, member.lane_bytes) if member.is_warm else 0
    rates = member.rates
    return cached * rates.cached + (size - cached) * rates.input + ANSWER * rates.output


def _first_available(order: Sequence[str], members: Mapping[str, Member], tried: Sequence[str]) -> str | None:
    """Return the first untried member, preferably one that need not be avoided; None if all members were tried."""
    untried = [name for name in order if name not in tried]
    return next(
        (name for name in untried if not members.get(name, UNKNOWN).should_avoid),
        untried[0] if untried else None,
    )


def _order_members(pool: Pool, members: Mapping[str, Member], position: AskPosition) -> Sequence[str]:
    known = [(name, members.get(name, UNKNOWN)) for name in pool.members]
    at = position.place + position.ask - 1
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
            warm = sorted((member.seconds_since_use or 0.0, name) for name, member in known if member.is_warm)
            return [*(name for _, name in warm), *_weighted_order(pool, position.place)]
        case "cheapest":
            size = max(member.lane_bytes for _, member in known) or REQUEST
            return [name for name, _ in sorted(known, key=lambda each: expected_cost(each[1], size))]
        case "least_in_flight":
            return [name for name, _ in sorted(known, key=lambda each: each[1].in_flight)]


def _weighted_order(pool: Pool, place: int) -> tuple[str, ...]:
    """Return all members, rotated so that the member at position `place` of the weighted sequence is first.

    The weighted sequence repeats endlessly.
    """
    sequence = _weighted_sequence(pool.weights or (1,) * len(pool.members))
    return pool.order(sequence[place % len(sequence)])


@lru_cache(maxsize=256)
def _weighted_sequence(weights: tuple[int, ...]) -> tuple[int, ...]:
    """Return member indexes, each as often as its weight and evenly spread: `(2, 1)` gives `(0, 1, 0)`."""
    return tuple(_spread_indexes(weights))


def _spread_indexes(weights: tuple[int, ...]) -> Iterator[int]:
    credit, whole = [0] * len(weights), sum(weights)
    for _ in range(whole):
        credit = [have + weight for have, weight in zip(credit, weights, strict=True)]
        best = max(range(len(weights)), key=lambda position: credit[position])
        credit[best] -= whole
        yield best


def resolve_switch(target: str, pool: Callable[[str], Pool]) -> SwitchApplied | SwitchFailed:
    """Return the outcome of a deferred switch to `target`, at the end of the turn.

    The target was valid when the switch was requested. `pool` looks up a target and raises `ConfigError` if the target
    is not valid any more.
    """
    try:
        pool(target)
    except ConfigError as error:
        return SwitchFailed(target, str(error))
    return SwitchApplied(target, was_queued=True)
