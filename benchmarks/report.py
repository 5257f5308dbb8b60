"""Run measurements and collect them in a report with the machine and its load.

`python -m benchmarks --json` prints the report.
"""

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from benchmarks.figures import Extent, Figure, Measure, table
from benchmarks.machine import LoadMeter, Machine, MachineLoad, this_machine

LIBRARIES = ("llm-actors", "anyio", "trio", "h11", "msgspec", "pydantic", "orjson")
"""Names of the distributions whose versions a report contains."""


class UnreadableReport(Exception):
    """An error for a file that is not a report. The message names the file and the reason."""


class BenchReport(Struct, frozen=True, kw_only=True):
    """The results of one run.

    Args:
        format: Version of the format.
        began: Start time in UTC, as ISO 8601.
        quick: Whether the run used the smaller sizes, which give other figures.
        load: Load of the machine before and during the run.
        libraries: Versions of installed distributions, by name.
        failed: Goals whose measurement raised an exception. The note of such a goal's row contains the exception.
    """

    format: Literal[1] = 1
    began: str
    quick: bool
    machine: Machine
    load: MachineLoad
    libraries: dict[str, str]
    figures: tuple[Figure, ...]
    failed: tuple[str, ...] = ()

    def json(self) -> str:
        """Return the report as JSON. Each row also has its score (`judged`) and whether its goal is met (`met`)."""
        document: dict[str, Any] = msgspec.to_builtins(self)  # Any: parsed JSON
        document["figures"] = [
            msgspec.to_builtins(row) | {"judged": row.score, "met": row.is_met} for row in self.figures
        ]
        return json.dumps(document, indent=1)

    def lines(self) -> Iterator[str]:
        """Yield the report as text: the machine, its load and the table."""
        yield str(self.machine)
        yield _load_text(self.load)
        yield table(self.figures)


def read_report(path: str) -> BenchReport:
    """Read a report from a file.

    Raises:
        UnreadableReport: The file cannot be read or is not a report.
    """
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=BenchReport)
    except OSError as error:
        raise UnreadableReport(f"Cannot read {path}: {(error.strerror or str(error)).lower()}") from error
    except msgspec.DecodeError as error:
        raise UnreadableReport(
            f"{path} is not a report: {error}; `python -m benchmarks --json` prints one"
        ) from error


def measure(
    measures: Sequence[Measure],
    extent: Extent,
    only: Collection[str] = (),
    progress: Callable[[str], None] = lambda _: None,
) -> BenchReport:
    """Run the measurements and return the report.

    Args:
        only: Goals to measure; all if empty. Other goals get a row without figures.
        progress: Called with a line of text before each measurement.

    If a measurement raises an exception, its row contains the error, and the run continues.
    """
    began, watch = datetime.now(UTC), LoadMeter()
    figures: list[Figure] = []
    failed: list[str] = []
    for measure in measures:
        if only and measure.goal not in only:
            figures.append(measure.skipped_row("not selected"))
            continue
        progress(f"{measure.goal}  {measure.question}")
        try:
            figures += measure.figures(extent)
        except Exception as error:
            failed.append(measure.goal)
            figures.append(measure.skipped_row(f"failed: {type(error).__name__}: {error}"))
    return BenchReport(
        began=began.isoformat(timespec="seconds"),
        quick=extent.quick,
        machine=this_machine(),
        load=watch.load(),
        libraries=dict(_versions()),
        figures=tuple(figures),
        failed=tuple(failed),
    )


def _versions() -> Iterator[tuple[str, str]]:
    for name in LIBRARIES:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            continue


def _load_text(load: MachineLoad) -> str:
    average = "unknown" if load.average is None else f"{load.average:.1f}"
    others = "" if load.others is None else f"; others used {load.others:.1f} cores in the run"
    return f"load average before the run {average}{others}"
