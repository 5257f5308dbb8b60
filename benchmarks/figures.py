"""One row for each figure, and the table they make.

A figure is judged as a ratio within one run: our number over a baseline that was measured beside it, interleaved,
in the same process. Where a goal is a plain number (bytes, objects, distributions), it is that.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

Loop: TypeAlias = Literal["asyncio", "trio"]


class NotMeasured(Exception):
    """What a measurement needs is not there; the text says what, and the way out."""


def needed(module: str) -> Any:  # Any: a module that is not there everywhere, so of no known type
    """Return a module that `pip install 'llm-actors[bench]'` brings.

    Raises:
        NotMeasured: It is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        missing = module.partition(".")[0]
        raise NotMeasured(f"needs {missing}: pip install 'llm-actors[bench]'") from error


@dataclass(frozen=True, slots=True)
class Peer:
    """What another library takes for the same, in the same run.

    Args:
        name: Of the library, with its version.
        value: The median, in the figure's unit; None if it could not be had.
        note: Why not, or what a reader must know beside it.
    """

    name: str
    value: float | None = None
    note: str = ""


class Library(Protocol):
    """Another library, at the same work. What cannot be had of it raises `NotMeasured`, which says why."""

    name: str
    """With its version."""
    note: str
    """What a reader must know beside its figures."""

    def turns(self, url: str, count: int, *, stream: bool, at_once: bool = False) -> float:
        """Return the CPU milliseconds of a fresh conversation's turn, as a mean: model, 5 tools at once, model.

        One conversation after the other, or all at once.
        """

    def event_us(self, url: str, words: int) -> float:
        """Return the CPU microseconds of an event of an answer that is streamed a word at a time."""

    def live_bytes(self, warm: str, url: str, count: int) -> float:
        """Return the resident bytes of a conversation that waits for its second answer.

        The server at `url` gives the first one when so many ask at once and one more; the one at `warm` always answers.
        """

    def held(self, histories: Path) -> tuple[float, float, float]:
        """Return what an idle conversation holds, and all of them cost.

        Resident bytes of one, its objects that the garbage collector tracks, CPU milliseconds of a full collection with
        all. The file has the Chat Completions messages of each as a line of JSON.
        """

    def render_ms(self, history: Path, *, more: bool) -> float:
        """Return the CPU milliseconds until the Chat Completions messages of a file are JSON again.

        From the library's own messages, by its own mapping. The file has `messages`, and 8 in `more`, which are
        appended first, each time, where that is asked for.
        """

    def import_ms(self) -> float:
        """Return the CPU milliseconds of a process that imports what a turn needs."""

    def import_mb(self) -> float:
        """Return the resident megabytes of such a process."""

    def size(self) -> tuple[int, float]:
        """Return how many distributions its installation is, and their megabytes."""


@dataclass(frozen=True, slots=True)
class Extent:
    """What to measure, and how long.

    Args:
        quick: Fewer repeats and smaller sizes; the rows are the same.
        backends: Event loops, where the loop matters.
        postgres: Address of a database that may be written to; empty if there is none.
        libraries: Those that are measured beside us.
    """

    quick: bool = False
    backends: tuple[Loop, ...] = ("asyncio", "trio")
    postgres: str = ""
    libraries: tuple[Library, ...] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure.

    Args:
        goal: Its name among the goals, as `A1`.
        question: What is measured, in a few words.
        case: Dialect, event loop or module.
        unit: Of `value` and `baseline`.
        limit: The goal: at most this multiple of the baseline, or at most this value where there is no baseline.
            None where there is no goal.
        value: The median, None if it was not measured.
        baseline: The hand-written minimum in the same run.
        note: What a reader must know beside it.
        calls, baseline_calls: Calls of Python functions in what was timed, where they were counted.
        spread: By how much passes differ: half the distance between the quartiles of `judged`, over its median. None if
            there were too few passes.
        peers: Other libraries at the same work.
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
    def judged(self) -> float | None:
        """What is held against the goal: the ratio to the baseline, or the value itself."""
        if self.value is None or self.baseline is None:
            return self.value
        return self.value / self.baseline

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None if nothing was measured, or there is none."""
        return None if self.judged is None or self.limit is None else self.judged <= self.limit

    @property
    def best_peer(self) -> Peer | None:
        """The peer that takes least; None if there is none."""
        measured = [peer for peer in self.peers if peer.value is not None]
        return min(measured, key=lambda peer: peer.value or 0.0, default=None)


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
    run: Callable[[Extent], list[Figure]]

    def figures(self, extent: Extent) -> list[Figure]:
        """Measure; what cannot be measured here is a row that says why."""
        try:
            return self.run(extent)
        except NotMeasured as error:
            return [self.skipped(str(error))]

    def skipped(self, note: str) -> Figure:
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
    return aligned([_COLUMNS, *map(_cells, rows)])


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Return lines of cells as text; the last column is as long as it is."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]) - 1)]
    return "\n".join(
        "  ".join((*map(str.ljust, line, widths), line[-1])).rstrip()  # the last one has no width
        for line in lines
    )


def _cells(row: Figure) -> tuple[str, ...]:
    ratio = "" if row.baseline is None or row.judged is None else f"{short(row.judged)} x"
    limit = "" if row.limit is None else f"{short(row.limit)} {'x' if row.baseline is not None else row.unit}"
    met = {True: "yes", False: "NO", None: "-"}[row.met]
    return (
        row.goal,
        row.question,
        row.case,
        "-" if row.value is None else f"{short(row.value)} {row.unit}",
        "" if row.baseline is None else f"{short(row.baseline)} {row.unit}",
        ratio,
        "" if row.spread is None else f"{row.spread:.0%}",
        limit,
        met,
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
    """Return a figure in three digits."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"
