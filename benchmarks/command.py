"""The command line of the benchmarks: print a report, draw it, or compare two.

`python -m benchmarks` and `python -m benchmarks.peers` call `main`.
"""

import argparse
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from actors.cli.exits import Exit
from actors.cli.screen import complain, safe
from actors.errors import ConfigError
from actors.journal.storage.named import storage_at
from benchmarks.comparing import Incomparable, compared, lines
from benchmarks.figures import Extent, Library, Loop, Measure
from benchmarks.goals import MEASURES
from benchmarks.plotting import plotted
from benchmarks.report import BenchReport, UnreadableReport, measured, read


def parser(program: str) -> argparse.ArgumentParser:
    """Return the parser of the options."""
    options = argparse.ArgumentParser(
        program, description="Measure this machine: goals in figures, beside baselines."
    )
    options.add_argument(
        "--full", action="store_true", help="full sizes, some minutes; without it, one minute"
    )
    options.add_argument(
        "--only", metavar="GOALS", help="comma-separated goals, as A1,B1; the table names the others"
    )
    options.add_argument(
        "--postgres",
        default="",
        metavar="URL",
        help="also write to this database, for J1; it is left as it was",
    )
    options.add_argument("--plot", metavar="FOLDER", help="also draw bench.svg in this folder")
    options.add_argument(
        "--compare", nargs=2, metavar=("BEFORE", "AFTER"), help="compare two files of --json, of one machine"
    )
    options.add_argument("--json", action="store_true", help="print the report as one JSON object")
    options.add_argument(
        "--backend",
        choices=["asyncio", "trio", "both"],
        default="both",
        help="the event loops; both by default",
    )
    return options


def main(
    options: argparse.Namespace, measures: Sequence[Measure] = MEASURES, libraries: Sequence[Library] = ()
) -> Exit:
    """Measure and print the report, or compare two; return the exit code.

    The code is 1 if a measurement failed, whatever the figures are, and 3 if the database cannot be used.
    """
    try:
        return _run(options, measures, libraries)
    except ConfigError as error:
        complain(str(error))
        return Exit.CONFIG


def _run(options: argparse.Namespace, measures: Sequence[Measure], libraries: Sequence[Library]) -> Exit:
    if options.compare is not None:
        return _compared(*options.compare)
    known = [measure.goal for measure in measures]
    only = () if options.only is None else tuple(goal.strip().upper() for goal in options.only.split(","))
    if unknown := sorted(set(only) - set(known)):
        complain(f"no goal {', '.join(map(repr, unknown))}; there are {', '.join(known)}")
        return Exit.USAGE
    if options.postgres:
        _check_database(options.postgres)
    extent = Extent(not options.full, _loops(options.backend), options.postgres, tuple(libraries))
    report = measured(measures, extent, only, _progress)
    print(report.json() if options.json else safe("\n".join(report.lines())))
    drawn = options.plot is None or _drawn(report, options.plot)
    return _code(report) if drawn else Exit.USAGE


def _check_database(address: str) -> None:
    """Refuse what no database can be reached by, before anything is measured."""
    if "://" not in address:
        raise ConfigError("--postgres takes the address of a database, as postgresql://user@host/name")
    storage_at(address)


def _loops(wanted: str) -> tuple[Loop, ...]:
    if wanted == "both":
        return ("asyncio", "trio") if find_spec("trio") is not None else ("asyncio",)
    return ("trio",) if wanted == "trio" else ("asyncio",)


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _drawn(report: BenchReport, folder: str) -> bool:
    """Draw the report; say whether the folder could be written to."""
    try:
        _progress(f"{plotted(report, folder)} is written")
    except OSError as error:
        complain(f"Cannot write to {folder}: {(error.strerror or str(error)).lower()}")
        return False
    return True


def _code(report: BenchReport) -> Exit:
    if report.failed:
        complain(f"{', '.join(report.failed)} could not be measured; the table says why")
    return Exit.FAILED if report.failed else Exit.OK


def _compared(before: str, after: str) -> Exit:
    try:
        changes = compared(read(before), read(after))
    except (Incomparable, UnreadableReport) as error:
        complain(str(error))
        return Exit.USAGE
    print(safe("\n".join(lines(changes))))
    return Exit.OK
