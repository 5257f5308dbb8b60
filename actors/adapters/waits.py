"""How long a provider asks us to wait, in all the forms it says so. Pure: the clock is an argument.

In the order in which they are believed: `retry-after-ms`, `retry-after` in seconds, `retry-after` as an HTTP
date, a `RetryInfo` delay in the body, a sentence such as "Please try again in 1m2.5s".
"""

import re
from collections.abc import Mapping
from math import isnan

MAX_WAIT = 86_400.0
"""Seconds. What is longer, or infinite, is a day: the caller compares it with a budget far below."""

_NUMBER = r"\d{1,9}(?:\.\d{1,9})?"
_UNIT = r"milliseconds?|ms|hours?|h|minutes?|min|m|seconds?|sec|s"
_SENTENCE = re.compile(
    rf"(?:try again|retry) (?:in|after) ((?:{_NUMBER}\s?(?:{_UNIT})(?![a-z])\s?)+)", re.IGNORECASE
)
_AMOUNT = re.compile(rf"({_NUMBER})\s?({_UNIT})(?![a-z])", re.IGNORECASE)
_RETRY_INFO = re.compile(r'"retryDelay"\s*:\s*"(\d{1,9}(?:\.\d{1,9})?)s"')
_SECONDS_IN = (
    ("ms", 0.001),
    ("milli", 0.001),
    ("h", 3600.0),
    ("m", 60.0),
    ("s", 1.0),
)  # by how a unit begins
_RFC_3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))"
)
_KINDS = ("requests", "tokens", "input-tokens", "output-tokens")
_REMAINING = (
    *(
        (f"x-ratelimit-limit-{kind}", f"x-ratelimit-remaining-{kind}", f"x-ratelimit-reset-{kind}")
        for kind in _KINDS[:2]
    ),
    *(
        (
            f"anthropic-ratelimit-{kind}-limit",
            f"anthropic-ratelimit-{kind}-remaining",
            f"anthropic-ratelimit-{kind}-reset",
        )
        for kind in _KINDS
    ),
)
"""Headers that say what is given in a minute, what is left of it, and when it is whole again."""


def retry_after(headers: Mapping[str, str], body: str, now: float | None) -> float | None:
    """Return the seconds to wait, 0 to `MAX_WAIT`, or None if the provider does not say.

    Headers are given in lower case, `now` in seconds since the epoch; without it, dates are not understood. What lies
    in the past is 0. What cannot be read is as if it were not there.
    """
    value = headers.get("retry-after", "")
    milliseconds = _number(headers.get("retry-after-ms", ""))
    told = None if milliseconds is None else milliseconds / 1000
    for seconds in (told, _number(value), _until(value, now), _said(body)):
        if seconds is not None:
            return min(max(seconds, 0.0), MAX_WAIT)
    return None


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return None if isnan(number) else number


def _until(value: str, now: float | None) -> float | None:
    if now is None:
        return None
    from email.utils import parsedate_to_datetime  # and half a mail client; few providers name a date

    try:
        return parsedate_to_datetime(value).timestamp() - now
    except (ValueError, TypeError, OverflowError, OSError):
        return None


def _said(body: str) -> float | None:
    if info := _RETRY_INFO.search(body):
        return float(info[1])
    if (sentence := _SENTENCE.search(body)) is None:
        return None
    return sum(float(amount) * _seconds_in(unit.lower()) for amount, unit in _AMOUNT.findall(sentence[1]))


def _seconds_in(unit: str) -> float:
    return next(seconds for start, seconds in _SECONDS_IN if unit.startswith(start))


def used_up(headers: Mapping[str, str], now: float) -> float:
    """Return the seconds until an account has a request or a token left; 0 if it has, or nothing is said.

    What is told of is when all is there again. It comes back evenly, so the first of it is there sooner.
    """
    longest = 0.0
    for limit, remaining, reset in _REMAINING:
        if headers.get(remaining, "").strip() == "0":
            full = _reset(headers.get(reset, ""), now)
            longest = max(longest, full / max(1.0, _number(headers.get(limit, "")) or 1.0))
    return min(longest, MAX_WAIT)


def _reset(value: str, now: float) -> float:
    """Return the seconds until a limit is whole again: `6m0s`, `17ms`, `1.5`, or a date of RFC 3339."""
    number = _number(value)
    if number is not None:
        return max(0.0, number)
    if amounts := _AMOUNT.findall(value) if re.fullmatch(rf"(?:{_NUMBER}[a-z]+)+", value) else ():
        return sum(float(amount) * _seconds_in(unit.lower()) for amount, unit in amounts)
    if (date := _RFC_3339.fullmatch(value)) is None:
        return 0.0
    from calendar import timegm  # as above

    sign, hours, minutes = date[7] or "+", int(date[8] or 0), int(date[9] or 0)
    ahead = (hours * 3600 + minutes * 60) * (-1 if sign == "-" else 1)
    return max(0.0, timegm((*map(int, date.group(1, 2, 3, 4, 5, 6)), 0, 0, 0)) - ahead - now)
