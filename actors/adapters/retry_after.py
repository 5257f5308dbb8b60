"""Find out how long a provider asks its clients to wait. The current time is an argument.

A response can contain the wait in several places. In the order of precedence, these are: `retry-after-ms`,
`retry-after`, a `RetryInfo` delay in the body, a sentence such as "Please try again in 1m2.5s", and, for a rate limit,
the headers that report when the account will have quota again. A time in a header has one of these forms:

    1.5, 17ms, 6m0s, PT20S                  a duration
    1800000060, 1800000060000               a moment, in seconds, milliseconds or smaller units since 1970
    2027-01-15T08:01:00Z, Fri, 15 Jan ...   a date

A number up to a day is a duration in seconds. A larger number is a moment if its magnitude is plausible, and is
otherwise ignored. Moments are compared with the server's own clock if the response contains it (`Date`), because this
machine's clock may be wrong.
"""

import re
from collections.abc import Mapping
from math import isnan

MAX_WAIT = 86_400.0
"""Maximum wait in seconds. Longer and infinite waits count as one day, because callers wait far less than that."""
MAX_AHEAD = 32 * MAX_WAIT
"""Maximum time until a moment, in seconds. Later moments are ignored, because no provider's period exceeds a month."""

_NUMBER = r"\d{1,9}(?:\.\d{1,9})?"
_UNIT = r"milliseconds?|ms|microseconds?|us|µs|ns|days?|d|hours?|h|minutes?|min|m|seconds?|sec|s"
AMOUNTS = rf"((?:{_NUMBER}\s?(?:{_UNIT})(?![a-z])\s?)+)"
"""A pattern for consecutive amounts with units, such as `1m 2.5s`."""
_AMOUNT = re.compile(rf"({_NUMBER})\s?({_UNIT})(?![a-z])", re.IGNORECASE)
_DURATION = re.compile(rf"(?:P?T)?(?:{_NUMBER}\s?(?:{_UNIT})\s?)+", re.IGNORECASE)
# Units by their first letters; the first match counts.
_SECONDS_IN = (
    ("ms", 0.001),
    ("milli", 0.001),
    ("us", 1e-6),
    ("µs", 1e-6),
    ("micro", 1e-6),
    ("ns", 1e-9),
    ("d", 86_400.0),
    ("h", 3600.0),
    ("m", 60.0),
    ("s", 1.0),
)
_MOMENTS = ((1e9, 1e11, 1.0), (1e12, 1e14, 1e-3), (1e15, 1e17, 1e-6), (1e18, 1e20, 1e-9))
"""Ranges of numbers that stand for moments since 2001, each with the length of its unit in seconds."""
_RFC_3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))"
)


def parse_number(value: str) -> float | None:
    """Return the number in a string, or None if it is not a number. Underscores, which Python allows, are rejected."""
    try:
        read = float(value)
    except ValueError:
        return None
    return None if isnan(read) or "_" in value else read


def server_clock(headers: Mapping[str, str], now: float | None) -> float | None:
    """Return the time on the server's clock, in seconds since 1970, or `now` if the response does not contain it."""
    told = _parse_http_date(headers.get("date", ""))
    return now if told is None else told


def seconds_until(value: str, now: float | None) -> float | None:
    """Return the seconds until the time in `value`, or 0 if that time is past. Return None if `value` cannot be parsed.

    `now` is in seconds since 1970. Without `now`, only durations can be used.
    """
    read = parse_number(value)
    if read is not None:
        return max(0.0, read) if read <= MAX_WAIT else _delay_until(_moment_of_number(read), now)
    if _DURATION.fullmatch(value.strip()):
        return min(parse_duration(value), MAX_AHEAD)
    return _delay_until(_parse_date(value), now)


def parse_duration(text: str) -> float:
    """Return the total number of seconds in a text that contains amounts with units, such as `1m2.5s`."""
    return sum(float(amount) * _unit_seconds(unit.lower()) for amount, unit in _AMOUNT.findall(text))


def _delay_until(moment: float | None, now: float | None) -> float | None:
    if moment is None or now is None or moment - now > MAX_AHEAD:
        return None
    return max(0.0, moment - now)


def _moment_of_number(value: float) -> float | None:
    return next((value * unit for least, most, unit in _MOMENTS if least <= value < most), None)


def _parse_date(value: str) -> float | None:
    if (date := _RFC_3339.fullmatch(value.strip())) is None:
        return _parse_http_date(value)
    from calendar import timegm  # imported lazily, because few providers send a date

    sign, hours, minutes = date[7] or "+", int(date[8] or 0), int(date[9] or 0)
    offset = (hours * 3600 + minutes * 60) * (-1 if sign == "-" else 1)
    return float(timegm((*map(int, date.group(1, 2, 3, 4, 5, 6)), 0, 0, 0)) - offset)


def _parse_http_date(value: str) -> float | None:
    if not value:
        return None
    from calendar import timegm
    from email.utils import parsedate_to_datetime  # imported lazily, because it loads the email package

    try:
        date = parsedate_to_datetime(value)
        # a date without a zone, such as `Sun Nov  6 08:49:37 1994` (RFC 9110), is in UTC
        return date.timestamp() if date.tzinfo else float(timegm(date.timetuple()))
    except (ValueError, TypeError, OverflowError, OSError):
        return None


def _unit_seconds(unit: str) -> float:
    return next(seconds for start, seconds in _SECONDS_IN if unit.startswith(start))


_SENTENCE = re.compile(rf"(?:try again|retry) (?:in|after) {AMOUNTS}", re.IGNORECASE)
_RETRY_INFO = re.compile(r'"retryDelay"\s*:\s*"(\d{1,9}(?:\.\d{1,9})?)s"')
MAX_GRADUAL_REFILL = 3600.0
"""Maximum time until the reset of a quota that is refilled gradually, in seconds. A quota that resets later is assumed
to be refilled all at once, like a daily quota.
"""
_PERIODS = ("minute", "hour", "day")
_KINDS = ("requests", "tokens", "input-tokens", "output-tokens")
_X_KINDS = (
    "",
    *(f"-{kind}" for kind in _KINDS[:2]),
    *(f"-{kind}-{p}" for kind in _KINDS[:2] for p in _PERIODS),
)
_QUOTA_HEADERS = (
    *tuple(
        (f"x-ratelimit-limit{kind}", f"x-ratelimit-remaining{kind}", f"x-ratelimit-reset{kind}")
        for kind in _X_KINDS
    ),
    ("ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"),
    *(
        (
            f"anthropic-ratelimit-{kind}-limit",
            f"anthropic-ratelimit-{kind}-remaining",
            f"anthropic-ratelimit-{kind}-reset",
        )
        for kind in _KINDS
    ),
)
"""Names of the headers for the limit of a period, the remaining amount, and the time of the reset."""


def retry_after(headers: Mapping[str, str], body: str, now: float | None) -> float | None:
    """Return the seconds to wait, from 0 to `MAX_WAIT`, or None if the provider does not say.

    Header names are in lower case. `now` is in seconds since 1970. Without it, dates are ignored. Times in the past
    count as 0. Values that cannot be parsed are ignored.
    """
    clock = server_clock(headers, now)
    for name in ("retry-after-ms", "x-ms-retry-after-ms"):
        if (milliseconds := parse_number(headers.get(name, ""))) is not None:
            return _clamp_wait(milliseconds / 1000)
    if (told := _header_seconds(headers.get("retry-after", ""), clock)) is not None:
        return _clamp_wait(told)
    said = _body_seconds(body)
    return None if said is None else _clamp_wait(said)


def seconds_until_reset(headers: Mapping[str, str], now: float | None) -> float | None:
    """Return the seconds until a rejected account has quota again, or None if the headers do not contain the time.

    If the headers do not contain a limit's remaining amount, the limit counts as exhausted.
    """
    delays = [delay for delay in _retry_delays(headers, now, default_remaining="0") if delay is not None]
    return _clamp_wait(max(delays)) if delays else None


def seconds_until_quota(headers: Mapping[str, str], now: float) -> float:
    """Return the seconds until an account has quota again.

    Return 0 if it has quota now, or if the headers do not say.
    """
    return _clamp_wait(
        max((wait or 0.0 for wait in _retry_delays(headers, now, default_remaining="")), default=0.0)
    )


def _retry_delays(
    headers: Mapping[str, str], now: float | None, *, default_remaining: str
) -> list[float | None]:
    """Return the seconds to wait for each exhausted limit, or None for a limit whose reset time cannot be parsed.

    `default_remaining` stands for the remaining amount if its header is missing.
    """
    met = [
        names
        for names in _QUOTA_HEADERS
        if names[2] in headers and headers.get(names[1], default_remaining).strip() in ("0", "0.0")
    ]
    if not met:
        return []
    clock = server_clock(headers, now)
    return [
        _seconds_until_first_unit(headers.get(limit, ""), seconds_until(headers[reset], clock))
        for limit, _, reset in met
    ]


def _seconds_until_first_unit(limit: str, seconds_until_full: float | None) -> float | None:
    """Return the seconds until the first unit of a quota is available.

    A quota is assumed to refill evenly until it is full, unless that takes hours.
    """
    if seconds_until_full is None or seconds_until_full > MAX_GRADUAL_REFILL:
        return seconds_until_full
    return seconds_until_full / max(1.0, parse_number(limit) or 1.0)


def _header_seconds(value: str, clock: float | None) -> float | None:
    """Return the seconds to wait from a `Retry-After` header. Even a large number counts as seconds, unless it is a
    plausible moment.
    """
    told = seconds_until(value, clock)
    return parse_number(value) if told is None else told


def _body_seconds(body: str) -> float | None:
    if info := _RETRY_INFO.search(body):
        return float(info[1])
    return None if (sentence := _SENTENCE.search(body)) is None else parse_duration(sentence[1])


def _clamp_wait(seconds: float) -> float:
    return min(max(seconds, 0.0), MAX_WAIT)
