"""A run: every row, on which machine and under what load, as `python -m benchmarks --json` prints it."""

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
"""Whose versions are told."""


class UnreadableReport(Exception):
    """A file is not a report; the text says which, and why."""


class BenchReport(Struct, frozen=True, kw_only=True):
    """What one run measured.

    Args:
        format: Of this record.
        began: When, in UTC.
        quick: Whether it was a quick run: its sizes are smaller, so its figures are others.
        load: Of the machine.
        libraries: Versions, of those that are installed.
        failed: Goals whose measurement ended in an error; their rows say in which.
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
        """Return it as JSON; each row has its ratio and whether the goal is met besides."""
        told: dict[str, Any] = msgspec.to_builtins(self)  # Any: JSON
        told["figures"] = [
            msgspec.to_builtins(row) | {"judged": row.judged, "met": row.met} for row in self.figures
        ]
        return json.dumps(told, indent=1)

    def lines(self) -> Iterator[str]:
        """Give it as text: the machine, its load, and the table."""
        yield str(self.machine)
        yield _load(self.load)
        yield table(self.figures)


def read(path: str) -> BenchReport:
    """Return the report in a file.

    Raises:
        UnreadableReport: It has none.
    """
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=BenchReport)
    except OSError as error:
        raise UnreadableReport(f"Cannot read {path}: {(error.strerror or str(error)).lower()}") from error
    except msgspec.DecodeError as error:
        raise UnreadableReport(
            f"{path} is not a report: {error}; `python -m benchmarks --json` prints one"
        ) from error


def measured(
    measures: Sequence[Measure],
    extent: Extent,
    only: Collection[str] = (),
    progress: Callable[[str], None] = lambda _: None,
) -> BenchReport:
    """Measure and return the report.

    Args:
        only: Goals to measure, all if empty; the others are rows that say so.
        progress: Told of each goal before it is measured.

    A measurement that fails is a row that says how, and the others go on.
    """
    began, watch = datetime.now(UTC), LoadMeter()
    figures: list[Figure] = []
    failed: list[str] = []
    for measure in measures:
        if only and measure.goal not in only:
            figures.append(measure.skipped("not asked for"))
            continue
        progress(f"{measure.goal}  {measure.question}")
        try:
            figures += measure.figures(extent)
        except Exception as error:
            failed.append(measure.goal)
            figures.append(measure.skipped(f"failed: {type(error).__name__}: {error}"))
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


def _load(load: MachineLoad) -> str:
    average = "unknown" if load.average is None else f"{load.average:.1f}"
    others = "" if load.others is None else f"; others used {load.others:.1f} cores in the run"
    return f"load average before the run {average}{others}"
