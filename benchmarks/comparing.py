"""Two runs of one machine: what became of each row.

Runs of two machines are not compared: their ratios differ too, with caches, clock and kernel, and a difference would be
taken for ours.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from benchmarks.figures import Figure, aligned, short
from benchmarks.report import BenchReport

LEAST = 0.05
"""A difference below this share of a figure is none, however alike the passes were."""

Verdict: TypeAlias = Literal["better", "worse", "same", "new", "gone"]


class Incomparable(Exception):
    """Two reports that must not be compared; the text says why."""


@dataclass(frozen=True, slots=True)
class RowChange:
    """One row, before and after; None where a run has not measured it."""

    before: Figure | None
    after: Figure | None

    @property
    def factor(self) -> float | None:
        """How many times as much what is judged is now."""
        if self.before is None or self.after is None or not self.before.judged or self.after.judged is None:
            return None
        return self.after.judged / self.before.judged

    @property
    def verdict(self) -> Verdict:
        """What became of it. A difference within the spread of the passes is none."""
        if self.before is None or self.after is None:
            return "new" if self.before is None else "gone"
        if self.factor is None:
            return "same"
        noise = max(LEAST, 2 * max(self.before.spread or 0.0, self.after.spread or 0.0))
        if abs(self.factor - 1) <= noise:
            return "same"
        return "worse" if self.factor > 1 else "better"


def compared(before: BenchReport, after: BenchReport) -> list[RowChange]:
    """Return each row of two runs, those of the later run first.

    Raises:
        Incomparable: They are of two machines, or one is quick and the other is not.
    """
    if not before.machine.is_same_as(after.machine):
        raise Incomparable(
            f"The runs are of two machines: {before.machine} ({before.machine.name}), and {after.machine} "
            f"({after.machine.name}); measure both on one"
        )
    if before.quick != after.quick:
        raise Incomparable(
            "One run is quick and the other is full, so their sizes differ; measure both alike"
        )
    first, then = (_measured(report) for report in (before, after))
    return [RowChange(first.get(key), then.get(key)) for key in dict.fromkeys((*then, *first))]


def _measured(report: BenchReport) -> dict[tuple[str, ...], Figure]:
    return {
        (row.goal, row.question, row.case, row.unit): row for row in report.figures if row.value is not None
    }


def lines(changes: list[RowChange]) -> Iterator[str]:
    """Give the changes as one table."""
    rows = [("goal", "question", "case", "before", "after", "change", "")]
    for change in changes:
        row = change.after or change.before
        assert row is not None  # one of the two has it
        factor = "" if change.factor is None else f"{change.factor - 1:+.0%}"
        before, after = (_judged(each) for each in (change.before, change.after))
        rows.append((row.goal, row.question, row.case, before, after, factor, change.verdict))
    yield aligned(rows)


def _judged(row: Figure | None) -> str:
    if row is None or row.judged is None:
        return "-"
    return f"{short(row.judged)} {'x' if row.baseline is not None else row.unit}"
