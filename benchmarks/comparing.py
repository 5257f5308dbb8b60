"""Compare two runs on one machine, row by row.

Runs on different machines are rejected. Their ratios also depend on caches, clock and kernel, so a difference would not
be caused by the code alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from benchmarks.figures import Figure, align_columns, format_number
from benchmarks.report import BenchReport

MIN_DIFFERENCE = 0.05
"""Relative difference up to which two figures count as the same, even if their passes vary less."""

Verdict: TypeAlias = Literal["better", "worse", "same", "new", "gone"]


class IncomparableReports(Exception):
    """An error that explains why two reports cannot be compared."""


@dataclass(frozen=True, slots=True)
class RowChange:
    """One row of the table before and after a change. A value is None if that run did not measure the row."""

    before: Figure | None
    after: Figure | None

    @property
    def factor(self) -> float | None:
        """The later score divided by the earlier score; None if either is missing."""
        if self.before is None or self.after is None or not self.before.score or self.after.score is None:
            return None
        return self.after.score / self.before.score

    @property
    def verdict(self) -> Verdict:
        """The direction of the change; `same` if the difference is within twice the spread of the passes."""
        if self.before is None or self.after is None:
            return "new" if self.before is None else "gone"
        if self.factor is None:
            return "same"
        noise = max(MIN_DIFFERENCE, 2 * max(self.before.spread or 0.0, self.after.spread or 0.0))
        if abs(self.factor - 1) <= noise:
            return "same"
        return "worse" if self.factor > 1 else "better"


def compare(before: BenchReport, after: BenchReport) -> list[RowChange]:
    """Return the changes of all rows, in the order of the later run.

    Raises:
        IncomparableReports: The machines differ, or only one of the runs is quick.
    """
    if not before.machine.is_same_as(after.machine):
        raise IncomparableReports(
            f"The runs are from two machines: {before.machine} ({before.machine.name}), and {after.machine} "
            f"({after.machine.name}); measure both on one machine"
        )
    if before.quick != after.quick:
        raise IncomparableReports(
            "One run is quick and the other is full, so their sizes differ; run both with or without --full"
        )
    first, then = (_measured_rows(report) for report in (before, after))
    return [RowChange(first.get(key), then.get(key)) for key in dict.fromkeys((*then, *first))]


def _measured_rows(report: BenchReport) -> dict[tuple[str, ...], Figure]:
    return {
        (row.goal, row.question, row.case, row.unit): row for row in report.figures if row.value is not None
    }


def change_lines(changes: list[RowChange]) -> Iterator[str]:
    """Yield the changes as one table."""
    rows = [("goal", "question", "case", "before", "after", "change", "")]
    for change in changes:
        row = change.after or change.before
        assert row is not None  # a change has at least one row
        factor = "" if change.factor is None else f"{change.factor - 1:+.0%}"
        before, after = (_score_text(each) for each in (change.before, change.after))
        rows.append((row.goal, row.question, row.case, before, after, factor, change.verdict))
    yield align_columns(rows)


def _score_text(row: Figure | None) -> str:
    if row is None or row.score is None:
        return "-"
    return f"{format_number(row.score)} {'x' if row.baseline is not None else row.unit}"
