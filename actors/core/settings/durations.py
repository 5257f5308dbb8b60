"""Durations as people write them: `90 days`, `12 hours`."""

import re

_UNITS = {"minute": 60, "hour": 3600, "day": 86_400, "week": 7 * 86_400}
_FORM = re.compile(r"(\d{1,6}) ?([a-z]+)")


def duration(text: str) -> int:
    """Return the seconds of a duration: a whole number and minutes, hours, days or weeks, or their first letter.

    Raises:
        ValueError: It is none, or nothing.
    """
    found = _FORM.fullmatch(text.strip())
    units = [] if found is None else [each for each in _UNITS if found[2] in (each, f"{each}s", each[0])]
    if found is None or not units or not int(found[1]):
        raise ValueError("takes a number of minutes, hours, days or weeks, as '90 days'")
    return int(found[1]) * _UNITS[units[0]]
