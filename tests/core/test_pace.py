"""Check the pacing of a backend: minute budgets, concurrency, retry budget and circuit breaker."""

from hypothesis import given
from hypothesis import strategies as st

from actors.core.policy.pace import MINUTE, Breaker, Concurrency, MinuteBudget, RetryBudget

STEPS = st.lists(st.tuples(st.floats(0, 30), st.floats(0.1, 80), st.floats(0, 100)), min_size=1, max_size=60)


@given(steps=STEPS, limit=st.integers(1, 60))
def test_usage_in_any_minute_stays_within_the_limit_per_minute(
    steps: list[tuple[float, float, float]], limit: int
) -> None:
    budget, now, used = MinuteBudget(limit), 1000.0, list[tuple[float, float]]()
    for pause, amount, share in steps:
        now += pause
        now += budget.wait(amount, now)
        assert budget.wait(amount, now) <= 0
        second = budget.reserve(amount, now)
        final = min(amount, limit) * min(share, 99) / 100  # never more than was reserved
        budget.settle(second, amount, final)
        used.append((now, final))
    for start, _ in used:
        within = sum(amount for at, amount in used if start <= at < start + MINUTE)
        assert within <= limit + 1e-6


def test_usage_above_the_reservation_delays_the_next_request() -> None:
    budget = MinuteBudget(100)
    second = budget.reserve(10, 5.5)
    budget.settle(second, 10, 100)
    assert budget.wait(1, 6.0) == 60.0
    assert budget.wait(1, 66.0) == 0


def test_a_reservation_expires_a_minute_after_the_end_of_its_second() -> None:
    budget = MinuteBudget(10)
    budget.reserve(10, 0.9)
    assert budget.wait(1, 60.5) == 0.5
    assert budget.wait(1, 61.0) == 0


def test_an_unused_reservation_is_available_again() -> None:
    budget = MinuteBudget(100)
    second = budget.reserve(100, 5.5)
    assert budget.wait(60, 6.0) > 0
    budget.settle(second, 100, 40)
    assert budget.wait(60, 6.0) == 0


def test_an_amount_above_the_minute_limit_is_admitted_if_nothing_else_is_reserved() -> None:
    budget = MinuteBudget(100)
    assert budget.wait(5000, 0.0) == 0
    budget.reserve(5000, 0.0)
    assert budget.wait(5000, 30.0) == 31.0


@given(
    steps=st.lists(st.tuples(st.integers(0, 50), st.floats(0, 5)), max_size=80), share=st.floats(0.01, 0.5)
)
def test_retries_are_limited_to_a_burst_plus_a_share_of_requests(
    steps: list[tuple[int, float]], share: float
) -> None:
    budget, requests, now, granted = RetryBudget(share, burst=10), 0, 50.0, 0
    for more, pause in steps:
        requests += more
        now += pause
        granted += budget.take_retry(requests, now)
        assert granted <= 10 + share * requests + (now - 50.0) + 1e-6


def test_a_single_session_never_runs_out_of_retries() -> None:
    budget = RetryBudget(burst=10)
    assert all(budget.take_retry(asked, 60.0 * asked) for asked in range(1, 100) for _ in range(10))


@given(st.lists(st.sampled_from(["answered", "limited", "late"]), max_size=200), st.integers(1, 50))
def test_the_concurrency_limit_stays_between_one_and_its_ceiling(happenings: list[str], ceiling: int) -> None:
    places = Concurrency(ceiling)
    for happening in happenings:
        wave, before = places.wave, places.limit
        if happening == "answered":
            places.record_answer()
            assert before <= places.limit <= before + 1
        elif happening == "limited":
            places.record_rate_limit(wave)
            assert places.limit == max(1.0, before / 2)
        else:
            places.record_rate_limit(wave - 1)  # sent before the last decrease
            assert places.limit == before
        assert 1 <= places.limit <= ceiling


def test_the_concurrency_limit_grows_by_about_one_after_one_answer_per_slot() -> None:
    places = Concurrency(64)
    places.record_rate_limit(0)
    for _ in range(33):
        places.record_answer()
    assert 32.9 < places.limit < 33.1


def test_a_circuit_breaker_opens_after_consecutive_failures_and_admits_one_probe() -> None:
    breaker = Breaker(failures=3, cooldown=10)
    assert [breaker.record_failure(now) for now in (0.0, 1.0, 2.0)] == [False, False, True]
    assert breaker.wait(2.0) == 10
    assert breaker.wait(11.9) is not None
    assert breaker.wait(12.0) is None
    assert breaker.begin_request()
    assert breaker.wait(12.0) == 0  # another request is the probe
    assert breaker.record_failure(13.0)
    assert breaker.wait(22.0) == 1
    assert breaker.wait(23.0) is None
    assert breaker.begin_request()
    assert breaker.record_answer()
    assert (breaker.wait(23.0), breaker.begin_request()) == (None, False)


def test_a_successful_answer_between_two_failures_keeps_the_circuit_breaker_closed() -> None:
    breaker = Breaker(failures=2, cooldown=10)
    for now in range(20):
        assert not breaker.record_failure(float(now))
        assert not breaker.record_answer()
    assert breaker.wait(20.0) is None


def test_a_cancelled_probe_lets_the_next_probe_begin() -> None:
    breaker = Breaker(failures=1, cooldown=10)
    breaker.record_failure(0.0)
    assert breaker.begin_request()
    breaker.cancel_probe()
    assert breaker.wait(10.0) is None


def test_failures_of_requests_that_were_in_flight_together_count_once() -> None:
    breaker = Breaker(failures=3, cooldown=10)
    before = breaker.wave
    assert not any(breaker.record_failure(0.0, before) for _ in range(40))
    assert breaker.in_a_row == 1
    assert breaker.is_in_doubt
    assert [breaker.record_failure(now, breaker.wave) for now in (1.0, 2.0)] == [False, True]
    assert not breaker.is_in_doubt


def test_failures_of_one_burst_that_follow_an_answer_count_once() -> None:
    breaker = Breaker(failures=2, cooldown=10)
    before = breaker.wave
    for _ in range(5):
        assert not breaker.record_failure(0.0, before)
        breaker.record_answer()
    assert not any(breaker.record_failure(0.0, before) for _ in range(5))
    assert breaker.record_failure(1.0, breaker.wave)


def test_a_circuit_breaker_opens_only_if_the_failures_span_its_minimum_period() -> None:
    breaker = Breaker(failures=2, cooldown=10, min_span=5)
    assert not any(breaker.record_failure(now) for now in (0.0, 1.0, 2.0, 4.9))
    assert breaker.record_failure(5.0)


def test_after_a_partly_served_burst_the_limit_equals_the_number_of_served_requests() -> None:
    places = Concurrency(64)
    places.record_rate_limit(0)
    for others in range(63, 3, -1):
        places.record_crowding(others)
    assert places.limit == 4
    for _ in range(28):
        places.record_answer()
    assert places.limit == 32  # it grows quickly up to the value after the first halving
    places.record_answer()
    assert places.limit < 32.1
    places.record_crowding(0)
    assert places.limit > 32  # a rejection without concurrent answers says nothing about the limit
