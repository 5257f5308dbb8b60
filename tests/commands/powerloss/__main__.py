"""Simulate many power losses: `python -m tests.commands.powerloss --states 20000`."""

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from actors.journal.storage import Durability
from tests.commands.powerloss.judge import run_workload_and_judge

EACH = 1000
"""The states per run."""


def main() -> int:
    """Print the outcomes per level; return 1 if `power` lost or broke anything, or `process` lost nothing."""
    parser = argparse.ArgumentParser("python -m tests.commands.powerloss", description=__doc__)
    parser.add_argument(
        "--states", type=int, default=20_000, help="states at durability power; a tenth of them at process"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    found: dict[Durability, Counter[str]] = {"power": Counter(), "process": Counter()}
    with ProcessPoolExecutor(options.workers, get_context("spawn")) as pool:
        wanted: dict[Durability, int] = {"power": options.states, "process": options.states // 10}
        runs = [
            (
                durability,
                pool.submit(
                    run_workload_and_judge,
                    durability,
                    options.seed + start // EACH,
                    min(EACH, states - start),
                ),
            )
            for durability, states in wanted.items()
            for start in range(0, states, EACH)
        ]
        for durability, run in runs:
            found[durability].update(run.result())
    for durability, count in found.items():
        said = ", ".join(f"{count[word]:,} {word}" for word in ("whole", "lost", "corrupt"))
        sys.stdout.write(f"{durability}: {count.total():,} states, {said}\n")
    is_right = found["power"]["whole"] == options.states and found["process"]["lost"] > 0
    return 0 if is_right and not found["process"]["corrupt"] else 1


if __name__ == "__main__":
    sys.exit(main())
