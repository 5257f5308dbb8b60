"""The wall clock, read here and nowhere else.

It is for people, who are told when something was, and for times that others name: when a token ends, when to try
again. It may be wrong, jump or go backwards, so nothing is decided by it that a clock which only goes forward can
decide.
"""

import time


def wall() -> float:
    """Return the seconds since 1970, as far as this machine knows."""
    return time.time()
