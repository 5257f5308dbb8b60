"""Check the parsing of times in headers: every form, bounded, with invalid values ignored."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.adapters.classify import classify
from actors.adapters.retry_after import MAX_AHEAD, seconds_until, seconds_until_quota
from actors.core.dialects.profiles import ANTHROPIC, OPENAI_CHAT

NOW = 1_800_000_000.0  # Fri, 15 Jan 2027 08:00:00 GMT
FORMS = [
    ("1.5", 1.5),
    ("0", 0.0),
    ("-5", 0.0),
    ("86400", 86_400.0),
    ("17ms", 0.017),
    ("120µs", 0.00012),
    ("6m0s", 360.0),
    ("2m59.56s", 179.56),
    ("1d2h", 93_600.0),
    ("5h2m0s", 18_120.0),
    ("PT20S", 20.0),
    ("1800000060", 60.0),
    ("1800000060.5", 60.5),
    ("1800000060000", 60.0),
    ("1800000060000000", 60.0),
    ("1800000060000000000", 60.0),
    ("1799999000", 0.0),
    ("2027-01-15T08:01:00Z", 60.0),
    ("2027-01-15T09:01:00.5+01:00", 60.0),
    ("Fri, 15 Jan 2027 08:01:00 GMT", 60.0),
    ("Fri, 15 Jan 2027 07:00:00 GMT", 0.0),
    ("Friday, 15-Jan-27 08:01:00 GMT", 60.0),
    ("Fri Jan 15 08:01:00 2027", 60.0),
]
NONSENSE = (
    "",
    "soon",
    "nan",
    "inf",
    "999999",
    "123456789",
    "1e15000",
    "1s later",
    "2027-01-15",
    "9999999999",
    "-",
    "1_0",
    "1_800_000_060",
)


@pytest.mark.parametrize(("value", "seconds"), FORMS)
def test_every_format_of_a_retry_or_reset_time_is_parsed(value: str, seconds: float) -> None:
    assert seconds_until(value, NOW) == pytest.approx(seconds, abs=1e-4)


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
def test_a_date_without_a_time_zone_is_read_as_utc_regardless_of_the_local_time_zone(
    zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        for value in ("Fri Jan 15 08:01:00 2027", "Fri, 15 Jan 2027 08:01:00 -0000"):
            assert seconds_until(value, NOW) == 60.0
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("value", NONSENSE)
def test_an_invalid_retry_or_reset_time_is_ignored(value: str) -> None:
    assert seconds_until(value, NOW) is None


@given(value=st.one_of(st.text(max_size=30), st.floats().map(str), st.integers().map(str)))
def test_retry_and_reset_times_are_clamped_to_the_next_month(value: str) -> None:
    read = seconds_until(value, NOW)
    assert read is None or 0 <= read <= MAX_AHEAD


@pytest.mark.parametrize("skew", [-1e8, -3600, 0, 3600, 1e8])
@pytest.mark.parametrize("value", ["Fri, 15 Jan 2027 08:01:00 GMT", "1800000060", "2027-01-15T08:01:00Z"])
def test_a_retry_date_is_compared_with_the_clock_of_the_server_that_sent_it(value: str, skew: float) -> None:
    told = {"Date": "Fri, 15 Jan 2027 08:00:00 GMT", "Retry-After": value}
    assert classify(429, told, b"", OPENAI_CHAT, now=NOW + skew).retry_after == 60.0


@pytest.mark.parametrize("reset", ["1800000060", "1800000060000", "60", "60s", "1m", "2027-01-15T08:01:00Z"])
def test_the_reset_time_of_a_rate_limit_is_parsed_in_every_form(reset: str) -> None:
    told = {
        "x-ratelimit-limit-requests": "100",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": reset,
    }
    assert seconds_until_quota(told, NOW) == pytest.approx(0.6)
    assert classify(429, told, b"", OPENAI_CHAT, now=NOW).retry_after == pytest.approx(0.6)


def test_a_used_up_daily_quota_is_available_again_only_after_its_full_reset_time() -> None:
    told = {"x-ratelimit-limit": "50", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "5h2m0s"}
    assert seconds_until_quota(told, NOW) == 18_120.0


def test_the_longest_wait_among_several_limits_applies() -> None:
    told = {
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-requests-reset": "2027-01-15T08:00:02Z",
        "anthropic-ratelimit-tokens-remaining": "0",
        "anthropic-ratelimit-tokens-reset": "2027-01-15T08:00:05Z",
        "anthropic-ratelimit-input-tokens-remaining": "7",
        "anthropic-ratelimit-input-tokens-reset": "2027-01-15T08:00:50Z",
    }
    assert classify(429, told, b"", ANTHROPIC, now=NOW).retry_after == 5.0


def test_an_explicit_retry_delay_takes_precedence_over_rate_limit_headers() -> None:
    told = {"retry-after": "3", "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "5h"}
    assert classify(429, told, b"", OPENAI_CHAT, now=NOW).retry_after == 3.0
    assert classify(503, {"x-ratelimit-reset-requests": "9"}, b"", OPENAI_CHAT, now=NOW).retry_after is None
