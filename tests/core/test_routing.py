"""Pools: who serves the next turn, and who comes after a failure."""

import pytest

from actors.core.routing import Policy, Pool, after_failure, first

NAMES = ("a", "b", "c")


def pool(policy: Policy, *, after_output: bool = False) -> Pool:
    return Pool("p", NAMES, policy, failover_after_output=after_output)


@pytest.mark.requirement("REQ-915-004", "REQ-915-042")
def test_a_round_robin_goes_on_with_every_ask() -> None:
    assert "".join(first(pool("round_robin"), ask, {}, 0) for ask in range(1, 8)) == "abcabca"


def test_manual_and_failover_begin_with_the_first() -> None:
    for policy in ("manual", "failover"):
        assert {first(Pool("p", NAMES, policy), ask, {}, 0) for ask in range(1, 8)} == {"a"}


def test_a_resting_member_is_passed_over_until_its_time_is_up() -> None:
    cooldowns = {"a": 10.0, "b": 20.0}
    assert [first(pool("failover"), 1, cooldowns, now) for now in (0, 10, 15)] == ["c", "a", "a"]
    assert [first(pool("round_robin"), ask, cooldowns, 12) for ask in (1, 2, 3)] == ["a", "c", "c"]


def test_where_all_rest_the_choice_is_made_as_if_none_did() -> None:
    cooldowns = dict.fromkeys(NAMES, 10.0)
    assert [first(pool("round_robin"), ask, cooldowns, 0) for ask in (1, 2, 3)] == list(NAMES)


def test_a_manual_target_never_moves_by_itself() -> None:
    assert first(pool("manual"), 1, {"a": 10.0}, 0) == "a"
    assert after_failure(pool("manual"), ["a"], visible=False) is None


@pytest.mark.requirement("REQ-915-043")
@pytest.mark.parametrize("policy", ["failover", "round_robin"])
def test_after_a_failure_each_other_member_is_tried_once(policy: Policy) -> None:
    for start in NAMES:
        tried = [start]
        for _ in range(2):
            following = after_failure(pool(policy), tried, visible=False)
            assert following is not None
            tried.append(following)
        assert sorted(tried) == list(NAMES)
        assert after_failure(pool(policy), tried, visible=False) is None


def test_an_answer_that_was_partly_shown_is_continued_only_where_the_pool_says_so() -> None:
    assert after_failure(pool("failover"), ["a"], visible=True) is None
    assert after_failure(pool("failover", after_output=True), ["a"], visible=True) == "b"


def test_a_backend_that_is_no_member_is_followed_by_the_first_untried_one() -> None:
    assert after_failure(pool("failover"), ["elsewhere"], visible=False) == "a"
    assert after_failure(pool("failover"), [], visible=False) == "a"
