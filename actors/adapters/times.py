"""How far ahead a time in a header is, in whatever form it is given. Pure: the clock is an argument.

    1.5, 17ms, 6m0s, PT20S                  a duration
    1800000060, 1800000060000               a moment: seconds or milliseconds since 1970, and finer
    2027-01-15T08:01:00Z, Fri, 15 Jan ...   a date

A number is a duration up to a day, and a moment where it can be one; any other is nonsense. Moments are compared with
the server's own clock where it says what that shows (`Date`), since this machine's may be wrong.
"""

import re
from collections.abc import Mapping
from math import isnan

MAX_WAIT = 86_400.0
"""Seconds. What is longer, or infinite, is a day: the caller compares it with a budget far below."""
MOST_AHEAD = 32 * MAX_WAIT
"""Seconds ahead beyond which a moment is nonsense: no provider counts by more than a month."""

_NUMBER = r"\d{1,9}(?:\.\d{1,9})?"
_UNIT = r"milliseconds?|ms|microseconds?|us|µs|ns|days?|d|hours?|h|minutes?|min|m|seconds?|sec|s"
AMOUNTS = rf"((?:{_NUMBER}\s?(?:{_UNIT})(?![a-z])\s?)+)"
"""A pattern of amounts with their units, one behind the other."""
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
"""Ranges of numbers that are moments, and the seconds in one of each: from 2001 on."""
_RFC_3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))"
)


def number(value: str) -> float | None:
    """Return a number, or None if the text is none. Underscores, which Python allows, are no part of a number here."""
    try:
        read = float(value)
    except ValueError:
        return None
    return None if isnan(read) or "_" in value else read


def server_clock(headers: Mapping[str, str], now: float | None) -> float | None:
    """Return what the server's clock shows, in seconds since 1970, or `now` if it does not say."""
    told = _http_date(headers.get("date", ""))
    return now if told is None else told


def ahead(value: str, now: float | None) -> float | None:
    """Return the seconds until a time, None if it is not understood; what lies in the past is 0.

    `now` is in seconds since 1970; without it, moments are not understood.
    """
    read = number(value)
    if read is not None:
        return max(0.0, read) if read <= MAX_WAIT else _until(_moment(read), now)
    if _DURATION.fullmatch(value.strip()):
        return min(duration(value), MOST_AHEAD)
    return _until(_date(value), now)


def duration(text: str) -> float:
    """Return the seconds of amounts with their units, such as `1m2.5s`."""
    return sum(float(amount) * _seconds_in(unit.lower()) for amount, unit in _AMOUNT.findall(text))


def _until(moment: float | None, now: float | None) -> float | None:
    if moment is None or now is None or moment - now > MOST_AHEAD:
        return None
    return max(0.0, moment - now)


def _moment(value: float) -> float | None:
    return next((value * unit for least, most, unit in _MOMENTS if least <= value < most), None)


def _date(value: str) -> float | None:
    if (date := _RFC_3339.fullmatch(value.strip())) is None:
        return _http_date(value)
    from calendar import timegm  # few providers name a date

    sign, hours, minutes = date[7] or "+", int(date[8] or 0), int(date[9] or 0)
    offset = (hours * 3600 + minutes * 60) * (-1 if sign == "-" else 1)
    return float(timegm((*map(int, date.group(1, 2, 3, 4, 5, 6)), 0, 0, 0)) - offset)


def _http_date(value: str) -> float | None:
    if not value:
        return None
    from email.utils import parsedate_to_datetime  # and half a mail client; as above

    try:
        return parsedate_to_datetime(value).timestamp()
    except (ValueError, TypeError, OverflowError, OSError):
        return None


def _seconds_in(unit: str) -> float:
    return next(seconds for start, seconds in _SECONDS_IN if unit.startswith(start))
