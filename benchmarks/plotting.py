"""A report as a picture: how far each figure is from its goal, and the other libraries beside it. SVG and PNG."""

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, needed, short
from benchmarks.report import BenchReport

NAMES = ("bench.svg", "bench.png")
_ROW = 0.24
"""Inches of a row."""
_MET, _MISSED = "#2a7f62", "#b5483a"
_COLORS = ("#4a5a8a", "#e0a030", "#7a4a9a", "#202020", "#3aa0c0", "#d060a0", "#808080", "#705030")
_MARKERS = "osD^v<>P"
"""Of the other libraries, in their order."""


def plotted(report: BenchReport, folder: str | Path) -> list[Path]:
    """Write the pictures into a folder, which is made, and return their paths.

    Raises:
        NotMeasured: matplotlib is not installed.
        OSError: The folder cannot be written to.
    """
    matplotlib = needed("matplotlib")
    matplotlib.use("Agg")
    canvas = needed("matplotlib.figure")
    rows = [row for row in report.figures if _share(row) is not None]
    with matplotlib.rc_context({"svg.hashsalt": "actors", "svg.fonttype": "none", "font.size": 8}):
        picture = canvas.Figure(figsize=(13, 1.6 + _ROW * max(len(rows), 1)), layout="constrained")
        _drawn(picture.subplots(), rows, report)
        Path(folder).mkdir(parents=True, exist_ok=True)
        paths = [Path(folder) / name for name in NAMES]
        for path in paths:
            picture.savefig(path, dpi=120, metadata={"Date": None} if path.suffix == ".svg" else None)
    return paths


def _share(row: Figure) -> float | None:
    """Return a figure as a multiple of its goal; None if it has no goal, or one of nothing at all."""
    return row.judged / row.limit if row.judged and row.limit else None


def _drawn(axes: Any, rows: Sequence[Figure], report: BenchReport) -> None:  # Any: matplotlib's
    shares = [_share(row) or 0.0 for row in rows]
    colors = [_MET if row.met else _MISSED for row in rows]
    axes.barh(range(len(rows)), shares, color=colors, height=0.7)
    axes.set_yticks(range(len(rows)), [f"{row.goal}  {row.question}, {row.case}" for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("multiples of the goal: left of the line is met")
    axes.axvline(1.0, color="black", linewidth=0.8)
    for at, row in enumerate(rows):
        unit = "x" if row.baseline is not None else row.unit
        told = f"{short(row.judged or 0.0)} {unit}, goal {short(row.limit or 0.0)}"
        axes.text(1.01, at, told, transform=axes.get_yaxis_transform(), va="center")
    _beside(axes, rows, shares)
    axes.set_title(f"{report.machine}; {report.began}", fontsize=8)


def _beside(axes: Any, rows: Sequence[Figure], shares: Sequence[float]) -> None:  # Any: as above
    """Draw the other libraries, a mark for each, as far from the goal as they are, and say which mark is whose."""
    marks: dict[str, list[tuple[float, int]]] = {}
    for at, (row, share) in enumerate(zip(rows, shares, strict=True)):
        for peer in row.peers:
            if peer.value is not None and row.value:
                marks.setdefault(peer.name, []).append((share * peer.value / row.value, at))
    looks = zip(cycle(_COLORS), cycle(_MARKERS))
    for (name, places), (color, marker) in zip(marks.items(), looks, strict=False):
        style = {"color": color, "marker": marker, "markeredgecolor": "white", "markeredgewidth": 0.4}
        axes.plot(*zip(*places, strict=True), linestyle="", markersize=5, label=name, **style)
    if marks:
        axes.figure.legend(loc="outside lower center", ncols=4, frameon=False)
