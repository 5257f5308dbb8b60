"""Whatever a conversation has gone through, what is rendered of it is accepted. At scale.

The suite judges a fixed number of generated conversations. For more, in a shell:

    python -m tests.test_generated_histories --count 2000000 --start 50000

It prints a line for each conversation that fails, with its seed, and ends with status 1 if there was one.
"""

import argparse
import sys
import time
from collections.abc import Iterator

import pytest

from actors.testing.histories import READERS, history
from tests.core.session_log import cold, refused

COUNT = 50_000
PARTS = 10


def wrong(seed: int) -> Iterator[str]:
    """What is wrong with each transcript of one conversation, if anything."""
    messages, ledger = history(seed)
    for name, binding in READERS.items():
        try:
            why = refused(cold(messages, ledger, binding))
        except Exception as error:  # whatever it is, the seed is worth more than the traceback
            why = f"raised {type(error).__name__}: {error}"
        if why is not None:
            yield f"history({seed}) for {name}: {why}"


@pytest.mark.requirement("PROMISE-1", "REQ-915-004", "REQ-915-005", "REQ-915-013", "REQ-915-038")
@pytest.mark.parametrize("part", range(PARTS))
def test_no_generated_history_is_refused_in_either_dialect(part: int) -> None:
    size = COUNT // PARTS
    for seed in range(part * size, (part + 1) * size):
        assert list(wrong(seed)) == []


def main() -> int:
    """Judge as many conversations as asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.test_generated_histories", description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT, help="conversations, each in both dialects")
    parser.add_argument("--start", type=int, default=0, help="first seed")
    options = parser.parse_args()
    began, failed = time.perf_counter(), 0
    for seed in range(options.start, options.start + options.count):
        for line in wrong(seed):
            sys.stdout.write(f"{line}\n")
            failed += 1
    seconds = time.perf_counter() - began
    sys.stdout.write(f"{options.count} histories, both dialects: {failed} failed, {seconds:.0f} s\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
