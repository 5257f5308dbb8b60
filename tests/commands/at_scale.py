"""A command that judges many generated cases, in order of their seeds, in several processes.

It prints a line for each failure and its progress, and exits with 1 if there was a failure. A run that ends by its time
limit (`--minutes`) can be resumed at the seed in the last line. `share` limits the cases of a test.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from multiprocessing import get_context
from typing import TypeAlias, TypeVar

from hypothesis import settings

T = TypeVar("T")
Judge: TypeAlias = Callable[[int], list[str]]
"""A function from a seed to a line for each problem. It must be importable: workers look it up by name."""

REPORTS = 20
"""The number of batches between two reports."""


def share(count: int) -> int:
    """Return how many of these cases a test judges: a sixteenth, all, or few in a quick run (`-m "not long"`)."""
    return count // {"thorough": 1, "quick": 32}.get(settings.get_current_profile_name(), 16)


def spread(cases: Sequence[T], number: int) -> Sequence[T]:
    """Return a quarter of these cases, a different one for each number; all in `thorough`."""
    return cases if settings.get_current_profile_name() == "thorough" else cases[number % 4 :: 4]


def extent(usual: T, thorough: T) -> T:
    """Return the extent of a test: the full range that a promise names only in `thorough`."""
    return thorough if settings.get_current_profile_name() == "thorough" else usual


def judge_batch(judge: Judge, seeds: range) -> tuple[int, list[str]]:
    """Judge a batch of seeds; the job of a worker."""
    return len(seeds), [line for seed in seeds for line in judge(seed)]


def batches(first: int, count: int, size: int) -> Iterable[range]:
    """Return the requested seeds, in order, in batches."""
    end = first + count
    return (range(at, min(at + size, end)) for at in range(first, end, size))


def main(judge: Judge, what: str, name: str, count: int, batch: int) -> int:
    """Judge the number of cases from the command line.

    `what` names a case, `batch` is the number per job of a worker.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {name}", description=f"Judge generated {what}.")
    parser.add_argument("--count", type=int, default=count, help=f"how many {what}")
    parser.add_argument("--seed", type=int, default=0, help="the first one's")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--minutes", type=float, default=600, help="stop after this time")
    options = parser.parse_args()
    began, seconds, failed, done, told = time.perf_counter(), 0.0, 0, 0, 0
    with get_context("spawn").Pool(options.workers) as pool:
        work = batches(options.seed, options.count, batch)
        for number, lines in pool.imap(partial(judge_batch, judge), work):
            failed, done = failed + len(lines), done + number
            sys.stdout.writelines(f"{line}\n" for line in lines)
            seconds = time.perf_counter() - began
            if done - told >= REPORTS * batch:
                told = done
                sys.stdout.write(f"{done} {what}, {failed} failed, {seconds:.0f} s\n")
            sys.stdout.flush()
            if seconds > options.minutes * 60:
                break
    next_seed = options.seed + done
    sys.stdout.write(f"{done} {what}: {failed} failed, {seconds:.0f} s; go on with --seed {next_seed}\n")
    return 1 if failed else 0
