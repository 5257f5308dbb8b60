"""What the commands of the tests print."""

import sys


def say(*lines: str) -> None:
    """Print lines at once, so that a long run can be watched."""
    for line in lines:
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
