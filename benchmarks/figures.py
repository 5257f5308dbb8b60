"""Define the rows of a report and format them as a table. All measurements use this module.

The score of a figure is its ratio to a baseline that was measured in the same run, interleaved with it. Without a
baseline (bytes, objects, distributions), the score is the value itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

Loop: TypeAlias = Literal["asyncio", "trio"]


class NotMeasured(Exception):
    """An error of a measurement that cannot run here. The message names the missing requirement and the fix."""


def require_module(module: str) -> Any:  # Any: the type of an optional module is unknown
    """Import and return a module of the extra `llm-actors[bench]`.

    Raises:
        NotMeasured: The module is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        missing = module.partition(".")[0]
        raise NotMeasured(f"needs {missing}: pip install 'llm-actors[bench]'") from error


@dataclass(frozen=True, slots=True)
class Peer:
    """The figure of another library for the same work in the same run.

    Args:
        name: Name and version of the library.
        value: The median, in the unit of the row; None if it could not be measured.
        note: The reason if there is no value, otherwise a remark on the figure.
    """

    name: str
    value: float | None = None
    note: str = ""


class Library(Protocol):
    """Another library that can do the same work. Each method raises `NotMeasured` if the library cannot be measured."""

    name: str
    """Name and version of the library."""
    note: str
    """A remark on the figures of the library."""

    def turns(self, url: str, count: int, *, stream: bool, at_once: bool = False) -> float:
        """Return the mean CPU milliseconds of the turn of a new conversation: model, 5 concurrent tools, model.

        The conversations run one after another, or concurrently if `at_once` is set.
        """

    def event_us(self, url: str, words: int) -> float:
        """Return the CPU microseconds per event of an answer that streams one word per event."""

    def live_bytes(self, warm: str, url: str, count: int) -> float:
        """Return the resident bytes per conversation that waits for its second answer.

        The server at `url` answers only when `count` + 1 requests wait; the server at `warm` answers each request.
        """

    def idle_memory(self, histories: Path) -> tuple[float, float, float]:
        """Return bytes and tracked objects per idle conversation, and the CPU milliseconds of a full collection.

        Each line of the file is a JSON list: the Chat Completions messages of one conversation. The bytes are resident
        bytes.
        """

    def render_ms(self, history: Path, *, more: bool) -> float:
        """Return the CPU milliseconds to convert the library's own messages to Chat Completions JSON.

        The file contains `messages`, and 8 messages under `more`. If `more` is set, these are appended before each
        conversion.
        """

    def import_ms(self) -> float:
        """Return the CPU milliseconds of a process that imports the modules that a turn needs."""

    def import_mb(self) -> float:
        """Return the resident megabytes of a process that imports the modules that a turn needs."""

    def size(self) -> tuple[int, float]:
        """Return the number of installed distributions, and their size in megabytes."""


@dataclass(frozen=True, slots=True)
class Extent:
    """The extent of a run: its sizes, event loops and optional participants.

    Args:
        quick: Whether to use fewer repeats and smaller sizes for the same rows.
        backends: The event loops, for measurements where the loop matters.
        postgres: Address of a database that may be written to; empty if there is none.
        libraries: Other libraries to measure in the same passes.
    """

    quick: bool = False
    backends: tuple[Loop, ...] = ("asyncio", "trio")
    postgres: str = ""
    libraries: tuple[Library, ...] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """One row of the table.

    Args:
        goal: Name of the goal, such as `A1`.
        question: Short description of the measurement.
        case: The dialect, event loop or module.
        unit: Unit of `value` and `baseline`.
        limit: The goal as a maximum: a multiple of the baseline, or a value if there is no baseline. None if there is
            no goal.
        value: The median; None if it was not measured.
        baseline: The median of the hand-written minimum in the same run; None if there is none.
        note: A remark for the reader.
        calls, baseline_calls: Number of Python function calls in the timed code; None if they were not counted.
        spread: Variation between passes: half the distance between the quartiles of `score`, over its median. None if
            there were too few passes.
        peers: Figures of other libraries for the same work.
    """

    goal: str
    question: str
    case: str
    unit: str
    limit: float | None
    value: float | None = None
    baseline: float | None = None
    note: str = ""
    calls: float | None = None
    baseline_calls: float | None = None
    spread: float | None = None
    peers: tuple[Peer, ...] = ()

    @property
    def score(self) -> float | None:
        """The number to compare with the goal: the ratio to the baseline, or the value if there is no baseline."""
        if self.value is None or self.baseline is None:
            return self.value
        return self.value / self.baseline

    @property
    def is_met(self) -> bool | None:
        """True if the goal is met; None if there is no goal or no value."""
        return None if self.score is None or self.limit is None else self.score <= self.limit

    @property
    def best_peer(self) -> Peer | None:
        """The peer with the smallest value; None if no peer was measured."""
        measured = [peer for peer in self.peers if peer.value is not None]
        return min(measured, key=lambda peer: peer.value or 0.0, default=None)


@dataclass(frozen=True, slots=True)
class Measure:
    """The measurement of one goal.

    Args:
        goal: Name of the goal.
        question: Short description of the measurement.
        run: Function that measures and returns the rows.
    """

    goal: str
    question: str
    run: Callable[[Extent], list[Figure]]

    def figures(self, extent: Extent) -> list[Figure]:
        """Measure and return the rows. If something is missing for the measurement, return one row with the reason."""
        try:
            return self.run(extent)
        except NotMeasured as error:
            return [self.skipped_row(str(error))]

    def skipped_row(self, note: str) -> Figure:
        """Return a row without a figure, whose note contains the reason."""
        return Figure(self.goal, self.question, "-", "", None, note=note)


_COLUMNS = (
    "goal",
    "question",
    "case",
    "ours",
    "baseline",
    "ratio",
    "spread",
    "goal",
    "met",
    "peer",
    "calls",
    "note",
)


def table(rows: Sequence[Figure]) -> str:
    """Return the rows as text, one line each, with aligned columns."""
    return align_columns([_COLUMNS, *map(_row_cells, rows)])


def align_columns(lines: Sequence[Sequence[str]]) -> str:
    """Return lines of cells as text with aligned columns. The last column is not padded."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]) - 1)]
    return "\n".join(
        "  ".join((*map(str.ljust, line, widths), line[-1])).rstrip()  # `widths` excludes the last column
        for line in lines
    )


def _row_cells(row: Figure) -> tuple[str, ...]:
    ratio = "" if row.baseline is None or row.score is None else f"{format_number(row.score)} x"
    limit = (
        ""
        if row.limit is None
        else f"{format_number(row.limit)} {'x' if row.baseline is not None else row.unit}"
    )
    is_met = {True: "yes", False: "NO", None: "-"}[row.is_met]
    return (
        row.goal,
        row.question,
        row.case,
        "-" if row.value is None else f"{format_number(row.value)} {row.unit}",
        "" if row.baseline is None else f"{format_number(row.baseline)} {row.unit}",
        ratio,
        "" if row.spread is None else f"{row.spread:.0%}",
        limit,
        is_met,
        _best_peer_text(row),
        " / ".join(format_number(calls) for calls in (row.calls, row.baseline_calls) if calls is not None),
        row.note,
    )


def _best_peer_text(row: Figure) -> str:
    best = row.best_peer
    if best is None or best.value is None:
        return "none could be measured" if row.peers else ""
    ratio = "" if not row.value else f" ({format_number(best.value / row.value)} x ours)"
    return f"{best.name} {format_number(best.value)} {row.unit}{ratio}"


def format_number(value: float) -> str:
    """Return a number as text with three significant digits, or as a whole number from 1,000 on."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"
