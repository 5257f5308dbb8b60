"""Draw a report as an SVG picture: each figure as a multiple of its goal, and the figures of other libraries.

The picture needs no plotting library. Its bars, texts and dots take 100 lines, whereas matplotlib and its
dependencies would add 70 MB to every installation of the tests.
"""

from collections.abc import Iterator, Sequence
from html import escape
from math import ceil, floor, log10
from pathlib import Path

from benchmarks.figures import Figure, short
from benchmarks.report import BenchReport

NAME = "bench.svg"
_LEFT, _RIGHT, _WIDTH = 560, 1060, 1240
"""Pixels from the left: the edges of the chart, and the width of the picture."""
_TOP, _ROW, _BAR = 50, 18, 12
"""Pixels: the space above the chart, and the heights of a row and of a bar."""
_MET, _MISSED = "#2a7f62", "#b5483a"
_COLORS = ("#4a5a8a", "#e0a030", "#7a4a9a", "#202020", "#3aa0c0", "#d060a0", "#808080", "#705030")
"""Colors of other libraries, in their order."""


def plot(report: BenchReport, folder: str | Path) -> Path:
    """Write the picture into a folder, which is created if it does not exist, and return the path of the file.

    Raises:
        OSError: The folder cannot be written to.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    path = Path(folder) / NAME
    path.write_text(svg(report), encoding="utf-8")
    return path


def svg(report: BenchReport) -> str:
    """Return the picture. Rows without a goal or a figure are left out."""
    rows = [row for row in report.figures if _share(row) is not None]
    dots, names = _dots(rows), _names(rows)
    scale = _Scale([1.0, *(_share(row) or 1.0 for row in rows), *(share for *_, share in dots)])
    bottom = _TOP + _ROW * max(len(rows), 1)
    height = bottom + 60 + _ROW * ceil(len(names) / 4)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
            'font-family="sans-serif" font-size="11">',
            f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
            _text(_LEFT, 24, f"{report.machine}; {report.began}"),
            *_axis(scale, bottom),
            *(line for at, row in enumerate(rows) for line in _row(row, scale, _middle(at))),
            *(_dot(scale.x(share), _middle(at), names.index(name)) for at, name, share in dots),
            *_legend(names, bottom + 56),
            "</svg>\n",
        ]
    )


class _Scale:
    """A logarithmic scale of whole decades that covers the values."""

    def __init__(self, values: Sequence[float]) -> None:
        self.first, self.last = floor(log10(min(values) * 0.99)), ceil(log10(max(values) * 1.01))

    def x(self, value: float) -> float:
        """Return the position of a value in pixels from the left."""
        return _LEFT + (_RIGHT - _LEFT) * (log10(value) - self.first) / (self.last - self.first)


def _share(row: Figure) -> float | None:
    """Return a figure as a multiple of its goal; None if it has no goal, or a goal of zero."""
    return row.score / row.limit if row.score and row.limit else None


def _dots(rows: Sequence[Figure]) -> list[tuple[int, str, float]]:
    """Return the row, the name and the multiple of the goal of each figure of another library."""
    return [
        (at, peer.name, share * peer.value / row.value)
        for at, row in enumerate(rows)
        for peer in row.peers
        if peer.value and row.value and (share := _share(row)) is not None
    ]


def _names(rows: Sequence[Figure]) -> list[str]:
    return list(dict.fromkeys(name for _, name, _ in _dots(rows)))


def _middle(at: int) -> float:
    return _TOP + _ROW * (at + 0.5)


def _axis(scale: _Scale, bottom: float) -> Iterator[str]:
    for power in range(scale.first, scale.last + 1):
        x = scale.x(10.0**power)
        yield f'<path d="M{x:.1f} {_TOP}V{bottom}" stroke="#dddddd"/>'
        yield _text(x, bottom + 16, f"{10.0**power:g}", "middle")
    yield f'<path d="M{scale.x(1.0):.1f} {_TOP - 6}V{bottom}" stroke="black"/>'
    caption = "multiples of the goal: left of the line is met"
    yield _text((_LEFT + _RIGHT) / 2, bottom + 32, caption, "middle")


def _row(row: Figure, scale: _Scale, middle: float) -> Iterator[str]:
    width, color = scale.x(_share(row) or 1.0) - _LEFT, _MET if row.is_met else _MISSED
    unit = "x" if row.baseline is not None else row.unit
    caption = f"{short(row.score or 0.0)} {unit}, goal {short(row.limit or 0.0)}"
    yield _text(_LEFT - 8, middle + 4, f"{row.goal}  {row.question}, {row.case}", "end")
    yield f'<rect x="{_LEFT}" y="{middle - _BAR / 2}" width="{width:.1f}" height="{_BAR}" fill="{color}"/>'
    yield _text(_RIGHT + 8, middle + 4, caption)


def _dot(x: float, y: float, number: int) -> str:
    color = _COLORS[number % len(_COLORS)]
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{color}" stroke="white"/>'


def _legend(names: Sequence[str], top: float) -> Iterator[str]:
    for number, name in enumerate(names):
        x, y = _LEFT + (_RIGHT - _LEFT) / 4 * (number % 4), top + _ROW * (number // 4)
        yield _dot(x, y, number)
        yield _text(x + 10, y + 4, name)


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
