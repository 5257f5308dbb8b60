"""Define the rows of a report and format them as a table.

The score of a figure is its ratio to a baseline that was measured in the same run, interleaved with it. Without a
baseline (bytes, objects, distributions), the score is the value itself. All measurements use this module.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

Loop: TypeAlias = Literal["asyncio", "trio"]


class NotMeasured(Exception):
    """A measurement lacks a requirement; the message names the requirement and the fix."""


def require(module: str) -> Any:  # Any: the type of an optional module is unknown
    """Import a module of the extra `llm-actors[bench]`.

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
        value: The median, in the figure's unit; None if it could not be measured.
        note: The reason if there is no value, otherwise a remark for the reader.
    """

    name: str
    value: float | None = None
    note: str = ""


class Library(Protocol):
    """Another library that does the same work. A method raises `NotMeasured` if it cannot be measured."""

    name: str
    """Name and version."""
    note: str
    """Remark on the figures of the library."""

    def turns(self, url: str, count: int, *, stream: bool, at_once: bool = False) -> float:
        """Return the CPU milliseconds of a fresh conversation's turn, as a mean: model, 5 tools at once, model.

        The conversations run one after another, or concurrently if `at_once` is set.
        """

    def event_us(self, url: str, words: int) -> float:
        """Return the CPU microseconds per event of an answer that streams one word per event."""

    def live_bytes(self, warm: str, url: str, count: int) -> float:
        """Return the resident bytes of a conversation that waits for its second answer.

        The server at `url` answers when `count` + 1 requests wait; the server at `warm` answers each request.
        """

    def idle_memory(self, histories: Path) -> tuple[float, float, float]:
        """Return resident bytes and tracked objects per idle conversation, and the CPU milliseconds of a collection.

        The collection is a full one over all conversations. Each line of the file is the JSON of the Chat Completions
        messages of one conversation.
        """

    def render_ms(self, history: Path, *, more: bool) -> float:
        """Return the CPU milliseconds to map the library's own messages to Chat Completions JSON.

        The file contains `messages`, and 8 messages under `more`. If `more` is set, these are appended before each
        rendering.
        """

    def import_ms(self) -> float:
        """Return the CPU milliseconds of a process that imports the modules a turn needs."""

    def import_mb(self) -> float:
        """Return the resident megabytes of a process that imports the modules a turn needs."""

    def size(self) -> tuple[int, float]:
        """Return the number of installed distributions, and their megabytes."""


@dataclass(frozen=True, slots=True)
class Extent:
    """The extent of a run: sizes, event loops and optional participants.

    Args:
        quick: Use fewer repeats and smaller sizes for the same rows.
        backends: Event loops, where the loop matters.
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
        goal: Name of the goal, such as `A1`. question: Short description of the measurement. case: Dialect, event
        loop or module. unit: Of `value` and `baseline`. limit: The goal as a maximum: a multiple of the baseline, or
        a value if there is no baseline. None if there is
            no goal.
        value: The median; None if it was not measured.
        baseline: The median of the hand-written minimum in the same run.
        note: Remark for the reader.
        calls, baseline_calls: Python function calls in the timed code; None if they were not counted.
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
        """The number compared with the goal: the ratio to the baseline, or the value if there is no baseline."""
        if self.value is None or self.baseline is None:
            return self.value
        return self.value / self.baseline

    @property
    def is_met(self) -> bool | None:
        """Whether the goal is met; None if there is no goal or no value."""
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
        """Measure and return the rows; if that is impossible here, return one row with the reason."""
        try:
            return self.run(extent)
        except NotMeasured as error:
            return [self.skipped_row(str(error))]

    def skipped_row(self, note: str) -> Figure:
        """Return the row of a goal that was not measured."""
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
    """Return the rows as text, one line each, columns aligned."""
    return align([_COLUMNS, *map(_cells, rows)])


def align(lines: Sequence[Sequence[str]]) -> str:
    """Return lines of cells as text with aligned columns; the last column is not padded."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]) - 1)]
    return "\n".join(
        "  ".join((*map(str.ljust, line, widths), line[-1])).rstrip()  # the last column has no width
        for line in lines
    )


def _cells(row: Figure) -> tuple[str, ...]:
    ratio = "" if row.baseline is None or row.score is None else f"{short(row.score)} x"
    limit = "" if row.limit is None else f"{short(row.limit)} {'x' if row.baseline is not None else row.unit}"
    is_met = {True: "yes", False: "NO", None: "-"}[row.is_met]
    return (
        row.goal,
        row.question,
        row.case,
        "-" if row.value is None else f"{short(row.value)} {row.unit}",
        "" if row.baseline is None else f"{short(row.baseline)} {row.unit}",
        ratio,
        "" if row.spread is None else f"{row.spread:.0%}",
        limit,
        is_met,
        _of_peer(row),
        " / ".join(short(calls) for calls in (row.calls, row.baseline_calls) if calls is not None),
        row.note,
    )


def _of_peer(row: Figure) -> str:
    best = row.best_peer
    if best is None or best.value is None:
        return "none could be measured" if row.peers else ""
    ratio = "" if not row.value else f" ({short(best.value / row.value)} x ours)"
    return f"{best.name} {short(best.value)} {row.unit}{ratio}"


def short(value: float) -> str:
    """Format a figure with three significant digits."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"
