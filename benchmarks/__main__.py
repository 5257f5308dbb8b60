"""Measure and print one table.

python -m benchmarks --quick            under a minute
python -m benchmarks                    a few minutes
python -m benchmarks --only A1,A3       some goals; the others are listed as not measured
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from actors.testing.bench import goals
from actors.testing.bench.figures import Extent, Figure, Loop, Measure, table
from benchmarks import caches, loop

MEASURES: tuple[Measure, ...] = (*goals.MEASURES, *caches.MEASURES, *loop.MEASURES)
GOALS = tuple(measure.goal for measure in MEASURES)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the measurements that the arguments ask for; return 0, whatever they show."""
    given = _parser().parse_args(arguments)
    backends: tuple[Loop, ...] = ("asyncio", "trio") if given.backend == "both" else (given.backend,)
    options = Extent(given.quick, backends)
    only = GOALS if given.only is None else tuple(given.only.split(","))
    if unknown := sorted(set(only) - set(GOALS)):
        print(f"No goal {', '.join(unknown)}; there are {', '.join(GOALS)}", file=sys.stderr)
        return 2
    rows = [row for measure in MEASURES for row in _measured(measure, only, options)]
    print(table(rows))
    if given.json:
        Path(given.json).write_text(json.dumps([_exported(row) for row in rows], indent=1) + "\n")
    return 0


def _measured(measure: Measure, only: Sequence[str], options: Extent) -> list[Figure]:
    if measure.goal not in only:
        return [measure.skipped("not measured")]
    print(f"{measure.goal}  {measure.question} ...", file=sys.stderr, flush=True)
    return measure.figures(options)


def _exported(row: Figure) -> dict[str, object]:
    return asdict(row) | {"figure": row.figure, "met": row.met}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure beside hand-written baselines."
    )
    parser.add_argument("--quick", action="store_true", help="fewer repeats, smaller sizes")
    parser.add_argument("--backend", choices=("asyncio", "trio", "both"), default="both")
    parser.add_argument("--only", metavar="GOALS", help="comma-separated goals, as A1,B1")
    parser.add_argument("--json", metavar="FILE", help="write the rows there too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
