"""Printing for the commands in tests/."""

import sys


def say(*lines: str) -> None:
    """Print lines and flush, so that a long run can be watched."""
    for line in lines:
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
