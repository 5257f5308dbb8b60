"""Read how long a provider asks its clients to wait. The clock is an argument.

In the order of precedence: `retry-after-ms`, `retry-after`, a `RetryInfo` delay in the body, a sentence such as
"Please try again in 1m2.5s", and for a rate limit the headers that report when an account has quota again. A time in a
header has one of these forms:

    1.5, 17ms, 6m0s, PT20S                  a duration
    1800000060, 1800000060000               a moment: seconds or milliseconds since 1970, and finer
    2027-01-15T08:01:00Z, Fri, 15 Jan ...   a date

A number up to a day is a duration; a larger number is a moment if it can be one, else it is ignored. Moments are
compared with the server's own clock if the response shows it (`Date`), because the clock of this machine may be wrong.
"""

import re
from collections.abc import Mapping
from math import isnan

MAX_WAIT = 86_400.0
"""Seconds. Longer and infinite waits count as a day; the caller's budget is far smaller."""
MOST_AHEAD = 32 * MAX_WAIT
"""Seconds. A moment further ahead is ignored: no provider counts in periods beyond a month."""

_NUMBER = r"\d{1,9}(?:\.\d{1,9})?"
_UNIT = r"milliseconds?|ms|microseconds?|us|µs|ns|days?|d|hours?|h|minutes?|min|m|seconds?|sec|s"
AMOUNTS = rf"((?:{_NUMBER}\s?(?:{_UNIT})(?![a-z])\s?)+)"
"""A pattern of consecutive amounts with their units."""
_AMOUNT = re.compile(rf"({_NUMBER})\s?({_UNIT})(?![a-z])", re.IGNORECASE)
_DURATION = re.compile(rf"(?:P?T)?(?:{_NUMBER}\s?(?:{_UNIT})\s?)+", re.IGNORECASE)
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
)  # by how a unit begins
_MOMENTS = ((1e9, 1e11, 1.0), (1e12, 1e14, 1e-3), (1e15, 1e17, 1e-6), (1e18, 1e20, 1e-9))
"""Ranges of numbers that are moments from 2001 on, with the length of their unit in seconds."""
_RFC_3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))"
)


def number(value: str) -> float | None:
    """Return a number; None if the text is not one. Underscores, which Python allows, are rejected."""
    try:
        read = float(value)
    except ValueError:
        return None
    return None if isnan(read) or "_" in value else read


def server_clock(headers: Mapping[str, str], now: float | None) -> float | None:
    """Return the server's clock in seconds since 1970, or `now` if the response does not show it."""
    told = _http_date(headers.get("date", ""))
    return now if told is None else told


def seconds_until(value: str, now: float | None) -> float | None:
    """Return the seconds until a time, 0 if it is past, None if it is not understood.

    `now` is in seconds since 1970; without it, moments are not understood.
    """
    read = number(value)
    if read is not None:
        return max(0.0, read) if read <= MAX_WAIT else _delay_until(_as_time(read), now)
    if _DURATION.fullmatch(value.strip()):
        return min(duration(value), MOST_AHEAD)
    return _delay_until(_date(value), now)


def duration(text: str) -> float:
    """Return the total seconds of amounts with units, such as `1m2.5s`."""
    return sum(float(amount) * _seconds_in(unit.lower()) for amount, unit in _AMOUNT.findall(text))


def _delay_until(moment: float | None, now: float | None) -> float | None:
    if moment is None or now is None or moment - now > MOST_AHEAD:
        return None
    return max(0.0, moment - now)


def _as_time(value: float) -> float | None:
    return next((value * unit for least, most, unit in _MOMENTS if least <= value < most), None)


def _date(value: str) -> float | None:
    if (date := _RFC_3339.fullmatch(value.strip())) is None:
        return _http_date(value)
    from calendar import timegm  # imported lazily, as few providers send a date

    sign, hours, minutes = date[7] or "+", int(date[8] or 0), int(date[9] or 0)
    offset = (hours * 3600 + minutes * 60) * (-1 if sign == "-" else 1)
    return float(timegm((*map(int, date.group(1, 2, 3, 4, 5, 6)), 0, 0, 0)) - offset)


def _http_date(value: str) -> float | None:
    if not value:
        return None
    from email.utils import parsedate_to_datetime  # imported lazily, as it loads the email package

    try:
        return parsedate_to_datetime(value).timestamp()
    except (ValueError, TypeError, OverflowError, OSError):
        return None


def _seconds_in(unit: str) -> float:
    return next(seconds for start, seconds in _SECONDS_IN if unit.startswith(start))


_SENTENCE = re.compile(rf"(?:try again|retry) (?:in|after) {AMOUNTS}", re.IGNORECASE)
_RETRY_INFO = re.compile(r'"retryDelay"\s*:\s*"(\d{1,9}(?:\.\d{1,9})?)s"')
AT_ONCE = 3600.0
"""Seconds. A quota that resets later than this returns all at once, like a daily quota, and not gradually."""
_PERIODS = ("minute", "hour", "day")
_KINDS = ("requests", "tokens", "input-tokens", "output-tokens")
_X_KINDS = (
    "",
    *(f"-{kind}" for kind in _KINDS[:2]),
    *(f"-{kind}-{p}" for kind in _KINDS[:2] for p in _PERIODS),
)
_LEFT = (
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
"""Headers for the limit of a period, the remaining amount, and the time of the reset."""


def retry_after(headers: Mapping[str, str], body: str, now: float | None) -> float | None:
    """Return the seconds to wait, 0 to `MAX_WAIT`; None if the provider does not say.

    Header names are in lower case; `now` is in seconds since the epoch, and without it, dates are not understood.
    Times in the past are 0. Unreadable values are ignored.
    """
    clock = server_clock(headers, now)
    for name in ("retry-after-ms", "x-ms-retry-after-ms"):
        if (milliseconds := number(headers.get(name, ""))) is not None:
            return _clamp(milliseconds / 1000)
    if (told := _header_seconds(headers.get("retry-after", ""), clock)) is not None:
        return _clamp(told)
    said = _body_seconds(body)
    return None if said is None else _clamp(said)


def until_reset(headers: Mapping[str, str], now: float | None) -> float | None:
    """Return the seconds until a rejected account has quota again; None if the headers do not say.

    A limit without a remaining amount counts as exhausted.
    """
    delays = [delay for delay in _retry_delays(headers, now, otherwise="0") if delay is not None]
    return _clamp(max(delays)) if delays else None


def used_up(headers: Mapping[str, str], now: float) -> float:
    """Return the seconds until an account has a request or a token left; 0 if it has some or does not say."""
    return _clamp(max((wait or 0.0 for wait in _retry_delays(headers, now, otherwise="")), default=0.0))


def _retry_delays(headers: Mapping[str, str], now: float | None, *, otherwise: str) -> list[float | None]:
    """Return the waits for the exhausted limits. `otherwise` is the remaining amount of a limit that gives none."""
    met = [
        names
        for names in _LEFT
        if names[2] in headers and headers.get(names[1], otherwise).strip() in ("0", "0.0")
    ]
    if not met:
        return []
    clock = server_clock(headers, now)
    return [
        _first_left(headers.get(limit, ""), seconds_until(headers[reset], clock)) for limit, _, reset in met
    ]


def _first_left(limit: str, full: float | None) -> float | None:
    """Return the seconds until the first unit is available. Quota returns evenly, unless the reset takes hours."""
    if full is None or full > AT_ONCE:
        return full
    return full / max(1.0, number(limit) or 1.0)


def _header_seconds(value: str, clock: float | None) -> float | None:
    """Return the seconds in `Retry-After`. A number that is not a moment counts seconds, however many."""
    told = seconds_until(value, clock)
    return number(value) if told is None else told


def _body_seconds(body: str) -> float | None:
    if info := _RETRY_INFO.search(body):
        return float(info[1])
    return None if (sentence := _SENTENCE.search(body)) is None else duration(sentence[1])


def _clamp(seconds: float) -> float:
    return min(max(seconds, 0.0), MAX_WAIT)
