"""Run many seeds in several processes and print one table of the events.

    python -m tests.commands.test_simulation --count 200 --seed 0 --workers 2

For a seed that breaks an invariant, the command prints a line of Python that replays it; `--shrink` reduces the first
such plan. The exit status is then 1, and also if the time (`--minutes`) ended before all seeds had run: the last line
names the seed to continue with.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from multiprocessing import get_context
from typing import NamedTuple

from actors.testing import SimulationReport
from tests.simulation import simulate

SESSIONS, TURNS = 50, 10


class Played(NamedTuple):
    """The result of one seed, as a worker reports it."""

    seed: int
    line: str
    problems: tuple[str, ...]
    counts: dict[str, int]
    seconds: float


def run(seed: int, sessions: int = SESSIONS) -> SimulationReport:
    """Run a seed; odd seeds use the liveness mode."""
    return simulate(seed, sessions=sessions, turns=TURNS, mode="liveness" if seed % 2 else "safety")


def run_seed(seed: int, *, sessions: int) -> Played:
    """Run a seed in a worker process."""
    began = time.process_time()
    report = run(seed, sessions)
    return Played(seed, report.line, report.problems, dict(report.counts), time.process_time() - began)


def failure_lines(one: Played) -> Iterator[str]:
    """Yield the lines about a failed seed."""
    if one.problems:
        yield f"seed {one.seed} failed; from tests.simulation import simulate; print({one.line})\n"
        yield from (f"  {problem}\n" for problem in one.problems[:10])


def table(counts: Counter[str], seconds: float, seeds: int) -> Iterator[str]:
    """Return the rows of the report."""
    yield from (f"{name.replace('_', ' '):32}{counts[name]:>10,}\n" for name in sorted(counts))
    for how in ("with", "without"):
        began = counts[f"rounds_{how}_feedback"]
        rate = counts[f"invalid_{how}_feedback"] / began if began else 0.0
        yield f"{f'invalid answers per fault, {how} feedback':42}{rate:>10.2f}\n"
    yield f"{'seconds of one core per seed':42}{seconds / max(1, seeds):>10.2f}\n"


def last_line(done: int, options: argparse.Namespace, failed: int, seconds: float) -> str:
    """Return the result of all seeds, in one line."""
    left = f", {options.count - done} NOT PLAYED" if done < options.count else ""
    return f"{done} seeds of {options.sessions} sessions x {TURNS} turns: {failed} failed{left}, {seconds:.0f} s; "


def main() -> int:
    """Run the seeds that the command line selects."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.commands.test_simulation", description="Play seeds."
    )
    parser.add_argument("--count", type=int, default=200, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="the first")
    parser.add_argument("--sessions", type=int, default=SESSIONS, help="sessions of each")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--minutes", type=float, default=600, help="stop after this time")
    parser.add_argument("--shrink", action="store_true", help="shrink the first plan that fails")
    options = parser.parse_args()
    began, done, failed = time.perf_counter(), 0, list[int]()
    counts, busy, play = Counter[str](), 0.0, partial(run_seed, sessions=options.sessions)
    with get_context("spawn").Pool(options.workers) as pool:
        for one in pool.imap(play, range(options.seed, options.seed + options.count)):
            done, busy = done + 1, busy + one.seconds
            counts.update(one.counts)
            failed += [one.seed] if one.problems else []
            sys.stdout.writelines(failure_lines(one))
            sys.stdout.flush()
            if time.perf_counter() - began > options.minutes * 60:
                break
    sys.stdout.writelines(table(counts, busy, done))
    if failed and options.shrink:
        sys.stdout.write(f"{run(failed[0], options.sessions).shrunk()}\n")
    sys.stdout.write(last_line(done, options, len(failed), time.perf_counter() - began))
    sys.stdout.write(f"go on with --seed {options.seed + done}\n")
    return 1 if failed or done < options.count else 0
