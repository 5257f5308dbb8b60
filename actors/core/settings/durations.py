"""Parse durations such as `90 days` and `12 hours`, in configuration files and on the command line."""

import re

_UNITS = {"minute": 60, "hour": 3600, "day": 86_400, "week": 7 * 86_400}
_FORM = re.compile(r"(\d{1,6}) ?([a-z]+)")


def parse_duration(text: str) -> int:
    """Convert a duration, such as `90 days`, `12 hours` or `2w`, to seconds.

    Raises:
        ValueError: The text is not a whole number above 0 with the unit minutes, hours, days or weeks.
    """
    found = _FORM.fullmatch(text.strip())
    units = [] if found is None else [each for each in _UNITS if found[2] in (each, f"{each}s", each[0])]
    if found is None or not units or not int(found[1]):
        raise ValueError("takes a whole number of minutes, hours, days or weeks, such as '90 days'")
    return int(found[1]) * _UNITS[units[0]]
