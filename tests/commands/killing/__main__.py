"""The kill sweep: kill a process at every place of every write, and at random under load, and continue in another.

    python -m tests.commands.killing                      # everything: all crossings, scenarios, levels and backends
    python -m tests.commands.killing --at 56 78 --random 2 --sessions 10
    python -m tests.commands.killing --only load          # at random

A failure is reported with its crossing or its seed.
"""

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import count, cycle, product
from pathlib import Path
from time import monotonic
from typing import TypeAlias

from msgspec.json import decode, encode

from tests.commands.killing.scenarios import SCENARIOS
from tests.commands.killing.sweep import BACKENDS, DURABILITIES, Killed, at_crossings, under_load, warm_up

Told: TypeAlias = tuple[dict[str, dict[str, int]], list[str]]
KILLS, DONE = "kills", "went to their end"
LOAD = "load"
"""The names under which kills and completed runs are counted."""


def main() -> int:
    """Run the sweep in several processes; print the findings, and exit with 1 if a promise was broken."""
    parser = argparse.ArgumentParser("python -m tests.commands.killing", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    kinds = (*SCENARIOS, LOAD)
    parser.add_argument("--only", nargs="+", choices=kinds, default=kinds, help="kills of these kinds only")
    parser.add_argument("--at", type=int, nargs="+", help="these crossings only")
    parser.add_argument(
        "--mixed", action="store_true", help="alternate levels and backends instead of combining them"
    )
    parser.add_argument("--random", type=int, default=500, help="random kills under load")
    parser.add_argument("--sessions", type=int, default=50, help="concurrent sessions under load")
    parser.add_argument(
        "--events", type=int, default=1500, help="the most events that a client sees before such a kill"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--part", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part is not None:
        sys.stdout.buffer.write(encode(_run_part(options, options.part)))
        return 0
    began, found, failures = monotonic(), dict[str, Counter[str]](), list[str]()
    for heard, failed in [_run_part(options, 0)] if options.workers == 1 else _parts(options.workers):
        for name, counted in heard.items():
            found.setdefault(name, Counter()).update(counted)
        failures += failed
    sys.stdout.writelines(f"{name:<12}{_summary(count)}\n" for name, count in found.items())
    sys.stdout.write(
        f"{sum(count[KILLS] for count in found.values()):,} kills in {monotonic() - began:.0f} s, "
    )
    sys.stdout.write(f"{len(failures)} broke a promise\n" + "".join(failures))
    return int(bool(failures))


def _summary(count: Counter[str]) -> str:
    first = f"{count[KILLS]:>6,} kills; calls of the sessions that went on: "
    return first + ", ".join(f"{count[word]:,} {word}" for word in sorted(count) if word not in (KILLS, DONE))


def _parts(workers: int) -> Iterator[Told]:
    """Yield the findings of each of several processes."""
    line = [sys.executable, "-m", "tests.commands.killing", *sys.argv[1:], "--part"]
    parts = [subprocess.Popen([*line, str(part)], stdout=subprocess.PIPE) for part in range(workers)]
    for part in parts:
        told, _ = part.communicate()
        yield decode(told or b'[{}, ["a part of it ended early"]]', type=Told)


def _run_part(options: argparse.Namespace, part: int) -> Told:
    """Make every n-th kill, starting with this one; return the findings."""
    found, failures = dict[str, Counter[str]](), list[str]()
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        warm_up(Path(folder))
        for name, kills in _kills(options, part, Path(folder)):
            counted = found.setdefault(name, Counter())
            for killed in kills:
                counted.update(killed.found)
                counted[KILLS if killed.status else DONE] += 1
                failures += [killed.broken] if killed.broken else []
    return {name: dict(counted) for name, counted in found.items()}, failures


def _kills(options: argparse.Namespace, first: int, folder: Path) -> Iterator[tuple[str, Iterable[Killed]]]:
    """Yield the kills of each kind that belong to this part."""
    part = slice(first, None, options.workers)
    ways = [*product(DURABILITIES, BACKENDS)]
    cases = zip(SCENARIOS, cycle(ways)) if options.mixed else product(SCENARIOS, ways)
    for name, (durability, backend) in cases:
        if name in options.only:
            crossings = count(part.start + 1, part.step) if options.at is None else options.at[part]
            yield name, at_crossings(folder / "single", backend, durability, name, crossings)
    for seed in range(options.seed, options.seed + options.random)[part] if LOAD in options.only else ():
        yield LOAD, [under_load(folder / "load", options.sessions, options.events, seed)]


if __name__ == "__main__":
    sys.exit(main())
