"""What options take as values: each read strictly, and refused in one line.

Only the standard library is imported here, so that `--help` answers at once.
"""

import argparse
import json
from contextlib import suppress

STATES = ("idle", "running", "awaiting", "closed")
"""Of sessions that are kept."""


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


def entry(text: str) -> tuple[str, object]:
    """Return a key and its value: KEY=VALUE for a string, KEY:=VALUE for a number, true or false."""
    key, is_given, value = text.partition("=")
    if not is_given or not key.removesuffix(":"):
        raise argparse.ArgumentTypeError(
            f"{text} is no entry; give KEY=TEXT, or KEY:=7 for a number, true or false"
        )
    if not key.endswith(":"):
        return key, value
    with suppress(ValueError):
        return key[:-1], json.loads(value)
    raise argparse.ArgumentTypeError(f"{value} is no number, true or false; KEY=TEXT gives a string")
