"""How long a provider asks us to wait, in all the places where it says so. Pure: the clock is an argument.

In the order in which they are believed: `retry-after-ms`, `retry-after`, a `RetryInfo` delay in the body, a sentence
such as "Please try again in 1m2.5s", and for a rate limit the headers that say when an account has something left.
`actors.adapters.times` reads the times.
"""

import re
from collections.abc import Mapping

from actors.adapters.times import AMOUNTS, MAX_WAIT, ahead, duration, number, server_clock

_SENTENCE = re.compile(rf"(?:try again|retry) (?:in|after) {AMOUNTS}", re.IGNORECASE)
_RETRY_INFO = re.compile(r'"retryDelay"\s*:\s*"(\d{1,9}(?:\.\d{1,9})?)s"')
AT_ONCE = 3600.0
"""Seconds. What is whole again later than that comes back as a whole: a day's quota, and not little by little."""
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
"""Headers that say what is given in a period, what is left of it, and when it is whole again."""


def retry_after(headers: Mapping[str, str], body: str, now: float | None) -> float | None:
    """Return the seconds to wait, 0 to `MAX_WAIT`, or None if the provider does not say.

    Headers are given in lower case, `now` in seconds since the epoch; without it, dates are not understood. What lies
    in the past is 0. What cannot be read is as if it were not there.
    """
    clock = server_clock(headers, now)
    for name in ("retry-after-ms", "x-ms-retry-after-ms"):
        if (milliseconds := number(headers.get(name, ""))) is not None:
            return _bounded(milliseconds / 1000)
    if (told := _told(headers.get("retry-after", ""), clock)) is not None:
        return _bounded(told)
    said = _said(body)
    return None if said is None else _bounded(said)


def until_reset(headers: Mapping[str, str], now: float | None) -> float | None:
    """Return the seconds until a refused account has something left, or None if nothing is said of that.

    A limit of which it is not said how much is left may be the one that was met.
    """
    waits = [wait for wait in _waits(headers, now, otherwise="0") if wait is not None]
    return _bounded(max(waits)) if waits else None


def used_up(headers: Mapping[str, str], now: float) -> float:
    """Return the seconds until an account has a request or a token left; 0 if it has, or nothing is said."""
    return _bounded(max((wait or 0.0 for wait in _waits(headers, now, otherwise="")), default=0.0))


def _waits(headers: Mapping[str, str], now: float | None, *, otherwise: str) -> list[float | None]:
    """Return the waits for the limits of which nothing is left; `otherwise` is left of one that does not say."""
    met = [
        names
        for names in _LEFT
        if names[2] in headers and headers.get(names[1], otherwise).strip() in ("0", "0.0")
    ]
    if not met:
        return []
    clock = server_clock(headers, now)
    return [_first_left(headers.get(limit, ""), ahead(headers[reset], clock)) for limit, _, reset in met]


def _first_left(limit: str, full: float | None) -> float | None:
    """Return the seconds until the first is there again: it comes back evenly, unless that takes hours."""
    if full is None or full > AT_ONCE:
        return full
    return full / max(1.0, number(limit) or 1.0)


def _told(value: str, clock: float | None) -> float | None:
    """Return what `Retry-After` says. A number that is no moment is one of seconds, however many."""
    told = ahead(value, clock)
    return number(value) if told is None else told


def _said(body: str) -> float | None:
    if info := _RETRY_INFO.search(body):
        return float(info[1])
    return None if (sentence := _SENTENCE.search(body)) is None else duration(sentence[1])


def _bounded(seconds: float) -> float:
    return min(max(seconds, 0.0), MAX_WAIT)
