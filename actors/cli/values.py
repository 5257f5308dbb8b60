"""What options take as values: each read strictly, and refused in one line.

Only the standard library is imported here, so that `--help` answers at once.
"""

import argparse
from contextlib import suppress


def port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text} is not a port; give a number from 0 to 65535")
    return int(text)


def chance(text: str) -> float:
    with suppress(ValueError):
        if 0 <= (chance := float(text)) <= 1:
            return chance
    raise argparse.ArgumentTypeError(f"{text} is not a chance; give a number from 0 to 1")


def count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 10**9:
        raise argparse.ArgumentTypeError(f"{text} is not a count; give a whole number from 1")
    return int(text)


def seconds(text: str) -> float:
    with suppress(ValueError):
        if 0 < (seconds := float(text)) < 1e9:
            return seconds
    raise argparse.ArgumentTypeError(f"{text} is not a time; give seconds above 0")


def money(text: str) -> float:
    with suppress(ValueError):
        if 0 < (money := float(text)) < 1e9:
            return money
    raise argparse.ArgumentTypeError(f"{text} is not a sum; give a number above 0")
