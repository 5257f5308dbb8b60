"""A report as a picture: how far each figure is from its goal, and the other libraries beside it. SVG and PNG."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from actors.testing.bench.figures import Figure, needed, short
from actors.testing.bench.report import BenchReport

NAMES = ("bench.svg", "bench.png")
_ROW = 0.24
"""Inches of a row."""
_MET, _MISSED, _OTHERS = "#2a7f62", "#b5483a", "#4a5a8a"


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
        picture = canvas.Figure(figsize=(11, 1.4 + _ROW * max(len(rows), 1)), layout="constrained")
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
    axes.set_xscale("log")
    axes.invert_yaxis()
    axes.axvline(1.0, color="black", linewidth=0.8)
    for at, (row, share) in enumerate(zip(rows, shares, strict=True)):
        unit = "x" if row.baseline is not None else row.unit
        axes.annotate(f" {short(row.judged or 0.0)} {unit}", (share, at), va="center")
        for peer in row.peers:
            if peer.value is not None and row.value:
                where = (share * peer.value / row.value, at)
                axes.plot(*where, marker="o", markersize=3, color=_OTHERS)
                axes.annotate(f" {peer.name}", where, va="center", fontsize=5, color=_OTHERS)
    axes.set_title(
        f"Multiples of the goal: left of the line is met\n{report.machine}; {report.began}", fontsize=8
    )
