"""`actors bench`: goals that have figures, measured on this machine beside baselines in the same run."""

import argparse
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from actors.cli.exits import Exit
from actors.cli.screen import complain, safe
from actors.errors import ConfigError
from actors.journal.storage.named import storage_at
from actors.testing.bench.comparing import Incomparable, compared, lines
from actors.testing.bench.figures import Extent, Library, Loop, Measure
from actors.testing.bench.goals import MEASURES
from actors.testing.bench.plotting import plotted
from actors.testing.bench.report import BenchReport, UnreadableReport, measured, read


def main(
    options: argparse.Namespace, measures: Sequence[Measure] = MEASURES, libraries: Sequence[Library] = ()
) -> Exit:
    """Measure and print the report, or compare two; 1 if a measurement failed, whatever the figures are.

    Raises:
        ConfigError: The database cannot be used.
    """
    if options.compare is not None:
        return _compared(*options.compare)
    known = [measure.goal for measure in measures]
    only = () if options.only is None else tuple(goal.strip().upper() for goal in options.only.split(","))
    if unknown := sorted(set(only) - set(known)):
        complain(f"no goal {', '.join(map(repr, unknown))}; there are {', '.join(known)}")
        return Exit.USAGE
    if options.postgres:
        _check_database(options.postgres)
    if options.plot is not None and find_spec("matplotlib") is None:
        complain("matplotlib is not installed; pip install 'llm-actors[bench]', or leave --plot out")
        return Exit.CONFIG
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
        for path in plotted(report, folder):
            _progress(f"{path} is written")
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
