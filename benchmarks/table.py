"""One row for each figure, and the table they make.

A figure is judged as a ratio within one run: our number over a floor that was measured beside it, interleaved,
in the same process. Where a goal is a plain number (bytes, objects, distributions), it is that.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Backend: TypeAlias = Literal["asyncio", "trio"]


@dataclass(frozen=True, slots=True)
class Options:
    """What to measure, and how long.

    Args:
        quick: Fewer repeats and smaller sizes; the rows are the same.
        backends: Event loops, where the loop matters.
        skip_install: Do not install the package into a fresh environment.
    """

    quick: bool = False
    backends: tuple[Backend, ...] = ("asyncio", "trio")
    skip_install: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One figure.

    Args:
        goal: Its name among the goals, as `A1`.
        question: What is measured, in a few words.
        case: Dialect, event loop or module.
        unit: Of `value` and `floor`.
        limit: The goal: at most this multiple of the floor, or at most this value where there is no floor.
        value: The median, None if it was not measured.
        floor: The hand-written minimum in the same run.
        note: What a reader must know beside it.
        calls, floor_calls: Calls of Python functions in what was timed, where they were counted.
    """

    goal: str
    question: str
    case: str
    unit: str
    limit: float
    value: float | None = None
    floor: float | None = None
    note: str = ""
    calls: float | None = None
    floor_calls: float | None = None

    @property
    def figure(self) -> float | None:
        """What is held against the goal: the ratio to the floor, or the value itself."""
        if self.value is None or self.floor is None:
            return self.value
        return self.value / self.floor

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None if nothing was measured."""
        return None if self.figure is None else self.figure <= self.limit


@dataclass(frozen=True, slots=True)
class Measure:
    """One goal's measurement.

    Args:
        goal: Name of the goal.
        question: What is measured.
        run: Measures it.
    """

    goal: str
    question: str
    run: Callable[[Options], list[Row]]

    def skipped(self, note: str) -> Row:
        """Return the row of a goal that was not measured."""
        return Row(self.goal, self.question, "-", "", 0.0, note=note)


_HEAD = ("goal", "question", "case", "ours", "floor", "ratio", "limit", "met", "calls", "note")


def table(rows: Sequence[Row]) -> str:
    """Return the rows as text, one line each, columns aligned."""
    lines = [_HEAD, *map(_cells, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEAD) - 1)]
    return "\n".join(
        "  ".join(
            (*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[-1])
        ).rstrip()
        for line in lines
    )


def _cells(row: Row) -> tuple[str, ...]:
    ratio = "" if row.floor is None or row.figure is None else f"{_short(row.figure)} x"
    limit = "" if not row.limit else f"{_short(row.limit)} {'x' if row.floor is not None else row.unit}"
    met = {True: "yes", False: "NO", None: "-"}[row.met]
    return (
        row.goal,
        row.question,
        row.case,
        "-" if row.value is None else f"{_short(row.value)} {row.unit}",
        "" if row.floor is None else f"{_short(row.floor)} {row.unit}",
        ratio,
        limit,
        met,
        " / ".join(_short(calls) for calls in (row.calls, row.floor_calls) if calls is not None),
        row.note,
    )


def _short(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"
