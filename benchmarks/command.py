"""Run the command line of the benchmarks: measure and print a report, draw it, or compare two reports.

`python -m benchmarks` and `python -m benchmarks.peers` call `main`.
"""

import argparse
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from actors.cli.exits import Exit
from actors.cli.screen import escape_controls, print_notice
from actors.errors import ConfigError
from actors.journal.storage.named import create_storage
from benchmarks.comparing import IncomparableReports, change_lines, compare
from benchmarks.figures import Extent, Library, Loop, Measure
from benchmarks.goals import MEASURES
from benchmarks.plotting import plot
from benchmarks.report import BenchReport, UnreadableReport, measure, read_report


def parser(program: str) -> argparse.ArgumentParser:
    """Return the parser of the options that both commands share. `program` is the name of the command."""
    options = argparse.ArgumentParser(
        program, description="Measure the performance goals on this machine against baselines."
    )
    options.add_argument(
        "--full", action="store_true", help="full sizes, some minutes; without it, one minute"
    )
    options.add_argument(
        "--only",
        metavar="GOALS",
        help="comma-separated goals, such as A1,B1; the table lists the others as skipped",
    )
    options.add_argument(
        "--postgres",
        default="",
        metavar="URL",
        help="also measure J1 in this database; the sessions are deleted afterwards",
    )
    options.add_argument("--plot", metavar="FOLDER", help="also draw bench.svg in this folder")
    options.add_argument(
        "--compare",
        nargs=2,
        metavar=("BEFORE", "AFTER"),
        help="compare two files that --json printed on the same machine",
    )
    options.add_argument("--json", action="store_true", help="print the report as one JSON object")
    options.add_argument(
        "--backend",
        choices=["asyncio", "trio", "both"],
        default="both",
        help="event loops to measure (default: both)",
    )
    return options


def main(
    options: argparse.Namespace, measures: Sequence[Measure] = MEASURES, libraries: Sequence[Library] = ()
) -> Exit:
    """Measure and print a report, or compare two reports; return the exit code.

    The code is 1 if a measurement failed, whatever the figures are, and 3 if the database cannot be used.
    """
    try:
        return _run(options, measures, libraries)
    except ConfigError as error:
        print_notice(str(error))
        return Exit.CONFIG


def _run(options: argparse.Namespace, measures: Sequence[Measure], libraries: Sequence[Library]) -> Exit:
    if options.compare is not None:
        return _compare_files(*options.compare)
    known = [measure.goal for measure in measures]
    only = () if options.only is None else tuple(goal.strip().upper() for goal in options.only.split(","))
    if unknown := sorted(set(only) - set(known)):
        print_notice(f"no goal {', '.join(map(repr, unknown))}; the goals are {', '.join(known)}")
        return Exit.USAGE
    if options.postgres:
        _check_database(options.postgres)
    extent = Extent(not options.full, _event_loops(options.backend), options.postgres, tuple(libraries))
    report = measure(measures, extent, only, _print_progress)
    print(report.json() if options.json else escape_controls("\n".join(report.lines())))
    drawn = options.plot is None or _draw(report, options.plot)
    return _exit_code(report) if drawn else Exit.USAGE


def _check_database(address: str) -> None:
    """Raise `ConfigError` for an invalid database address, before the measurements start."""
    if "://" not in address:
        raise ConfigError("--postgres must be the address of a database, such as postgresql://user@host/name")
    create_storage(address)


def _event_loops(wanted: str) -> tuple[Loop, ...]:
    if wanted == "both":
        return ("asyncio", "trio") if find_spec("trio") is not None else ("asyncio",)
    return ("trio",) if wanted == "trio" else ("asyncio",)


def _print_progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _draw(report: BenchReport, folder: str) -> bool:
    """Draw the report as a picture. Return False if the folder cannot be written to."""
    try:
        _print_progress(f"{plot(report, folder)} written")
    except OSError as error:
        print_notice(f"Cannot write to {folder}: {(error.strerror or str(error)).lower()}")
        return False
    return True


def _exit_code(report: BenchReport) -> Exit:
    if report.failed:
        print_notice(f"{', '.join(report.failed)} could not be measured; the table contains the reasons")
    return Exit.FAILED if report.failed else Exit.OK


def _compare_files(before: str, after: str) -> Exit:
    try:
        changes = compare(read_report(before), read_report(after))
    except (IncomparableReports, UnreadableReport) as error:
        print_notice(str(error))
        return Exit.USAGE
    print(escape_controls("\n".join(change_lines(changes))))
    return Exit.OK
