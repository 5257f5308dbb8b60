"""Check which pool member serves the next turn, and which follows after a failure."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.core.policy.routing import (
    CACHE_LIFE,
    AskPosition,
    Member,
    Policy,
    Pool,
    Rates,
    choose_first,
    choose_next,
)

NAMES = ("a", "b", "c")
MOVING: tuple[Policy, ...] = (
    "failover",
    "round_robin",
    "weighted",
    "sticky",
    "cheapest",
    "least_in_flight",
)
RATES = st.builds(Rates, st.floats(0, 10), st.floats(0, 1), st.floats(0, 50))
MEMBER = st.builds(
    Member,
    st.booleans(),
    st.integers(0, 100),
    st.none() | st.floats(0, 1000),
    st.integers(0, 10**6),
    st.none() | RATES,
)
MEMBERS = st.dictionaries(st.sampled_from(NAMES), MEMBER)
OCCASION = st.builds(AskPosition, st.integers(1, 100), st.integers(0, 2**32))
FRESH: dict[str, Member] = {}
AVOID = Member(should_avoid=True)


def pool(policy: Policy, *, after_output: bool = False, weights: tuple[int, ...] = ()) -> Pool:
    return Pool("p", NAMES, policy, failover_after_output=after_output, weights=weights)


@given(policy=st.sampled_from(MOVING), members=MEMBERS, position=OCCASION)
@pytest.mark.requirement("REQ-915-043")
def test_every_member_of_a_pool_is_tried_once_and_avoided_members_are_tried_last(
    policy: Policy, members: dict[str, Member], position: AskPosition
) -> None:
    tried = [choose_first(pool(policy), members, position)]
    while (following := choose_next(pool(policy), members, position, tried, visible=False)) is not None:
        tried.append(following)
        assert len(tried) <= len(NAMES)
    assert sorted(tried) == list(NAMES)
    avoided = [members.get(name, Member()).should_avoid for name in tried]
    assert avoided == sorted(avoided)


@pytest.mark.requirement("REQ-915-004", "REQ-915-042")
def test_a_round_robin_pool_advances_with_every_ask() -> None:
    asks = range(1, 8)
    assert "".join(choose_first(pool("round_robin"), FRESH, AskPosition(ask)) for ask in asks) == "abcabca"
    assert "".join(choose_first(pool("round_robin"), FRESH, AskPosition(ask, 4)) for ask in asks) == "bcabcab"


def test_manual_and_failover_pools_start_with_their_first_member() -> None:
    for policy in ("manual", "failover"):
        assert {
            choose_first(Pool("p", NAMES, policy), FRESH, AskPosition(ask, 5)) for ask in range(1, 8)
        } == {"a"}


def test_an_avoided_member_is_skipped_unless_all_are_avoided() -> None:
    assert choose_first(pool("failover"), {"a": AVOID}, AskPosition(1)) == "b"
    two = {"a": AVOID, "b": AVOID}
    assert [choose_first(pool("round_robin"), two, AskPosition(ask)) for ask in (1, 2, 3)] == ["c", "c", "c"]
    three = dict.fromkeys(NAMES, AVOID)
    assert [choose_first(pool("round_robin"), three, AskPosition(ask)) for ask in (1, 2, 3)] == list(NAMES)


def test_a_manual_pool_keeps_its_target_despite_failures() -> None:
    assert choose_first(pool("manual"), {"a": AVOID}, AskPosition(1)) == "a"
    assert choose_next(pool("manual"), FRESH, AskPosition(1), ["a"], visible=False) is None


@given(weights=st.tuples(*[st.integers(1, 20)] * 3), place=st.integers(0, 10**6))
def test_a_weighted_pool_keeps_its_shares_from_any_starting_point(
    weights: tuple[int, int, int], place: int
) -> None:
    whole = sum(weights)
    weighted = pool("weighted", weights=weights)
    served = [choose_first(weighted, FRESH, AskPosition(ask, place)) for ask in range(1, whole + 1)]
    assert Counter(served) == dict(zip(NAMES, weights, strict=True))


def test_a_weighted_pool_interleaves_its_members() -> None:
    weighted = pool("weighted", weights=(4, 1, 1))
    served = "".join(choose_first(weighted, FRESH, AskPosition(ask)) for ask in range(1, 13))
    assert "aaaa" not in served
    assert Counter(served) == {"a": 8, "b": 2, "c": 2}


def test_sessions_with_one_ask_are_distributed_by_weight() -> None:
    weighted = pool("weighted", weights=(2, 1, 1))
    served = Counter(choose_first(weighted, FRESH, AskPosition(1, place)) for place in range(400))
    assert served == {"a": 200, "b": 100, "c": 100}


def test_a_sticky_session_stays_with_the_backend_of_its_warm_cache() -> None:
    used = {
        "b": Member(seconds_since_use=10.0, lane_bytes=100),
        "c": Member(seconds_since_use=20.0, lane_bytes=100),
    }
    assert {choose_first(pool("sticky"), used, AskPosition(ask, 0)) for ask in range(1, 9)} == {"b"}
    assert choose_first(pool("sticky"), used | {"b": AVOID}, AskPosition(1)) == "c"
    cold = {"b": Member(seconds_since_use=CACHE_LIFE + 1, lane_bytes=100)}
    assert {choose_first(pool("sticky"), cold, AskPosition(1, place)) for place in range(9)} == set(NAMES)


def test_the_cheapest_pool_policy_counts_cached_tokens() -> None:
    cheap, dear = Rates(1.0, 0.1, 4.0), Rates(3.0, 0.3, 4.0)
    fresh = {"a": Member(rates=dear), "b": Member(rates=cheap)}
    assert choose_first(pool("cheapest"), fresh, AskPosition(1)) == "b"
    warm = {"a": Member(seconds_since_use=5.0, lane_bytes=100_000, rates=dear), "b": Member(rates=cheap)}
    assert choose_first(pool("cheapest"), warm, AskPosition(2)) == "a"  # cached tokens cost 0.3, others 1.0
    cold = {
        "a": Member(seconds_since_use=CACHE_LIFE + 1, lane_bytes=100_000, rates=dear),
        "b": Member(rates=cheap),
    }
    assert choose_first(pool("cheapest"), cold, AskPosition(3)) == "b"
    assert (
        choose_first(pool("cheapest"), {"c": Member(rates=dear)}, AskPosition(1)) == "c"
    )  # the other members have no known price


def test_the_least_busy_member_is_chosen_and_ties_go_to_the_first() -> None:
    busy = {"a": Member(in_flight=4), "b": Member(in_flight=1), "c": Member(in_flight=1)}
    assert choose_first(pool("least_in_flight"), busy, AskPosition(1)) == "b"
    assert choose_first(pool("least_in_flight"), FRESH, AskPosition(7)) == "a"


@pytest.mark.requirement("REQ-915-043")
@pytest.mark.parametrize("policy", ["failover", "round_robin"])
def test_after_a_failure_the_next_member_in_order_is_chosen(policy: Policy) -> None:
    for begin, following in (("a", "b"), ("b", "c"), ("c", "a")):
        assert choose_next(pool(policy), FRESH, AskPosition(1), [begin], visible=False) == following


def test_failover_after_partial_output_requires_the_pool_setting() -> None:
    assert choose_next(pool("failover"), FRESH, AskPosition(1), ["a"], visible=True) is None
    after = pool("failover", after_output=True)
    assert choose_next(after, FRESH, AskPosition(1), ["a"], visible=True) == "b"


def test_failover_from_a_non_member_goes_to_the_first_untried_member() -> None:
    assert choose_next(pool("failover"), FRESH, AskPosition(1), ["elsewhere"], visible=False) == "a"
    assert choose_next(pool("failover"), FRESH, AskPosition(1), [], visible=False) == "a"
