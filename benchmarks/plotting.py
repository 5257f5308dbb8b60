"""Draw a report as an SVG picture: each figure as a multiple of its goal, together with the figures of other libraries.

The picture needs no plotting library. Its bars, texts and dots take 100 lines, whereas matplotlib and its dependencies
would add 70 MB to every installation of the tests.
"""

from collections.abc import Iterator, Sequence
from html import escape
from math import ceil, floor, log10
from pathlib import Path

from benchmarks.figures import Figure, format_number
from benchmarks.report import BenchReport

NAME = "bench.svg"
_LEFT, _RIGHT, _WIDTH = 560, 1060, 1240
"""Pixels from the left edge: the chart's left and right edge, and the right edge of the picture."""
_TOP, _ROW, _BAR = 50, 18, 12
"""Pixels: the height of the space above the chart, of a row, and of a bar."""
_MET, _MISSED = "#2a7f62", "#b5483a"
_COLORS = ("#4a5a8a", "#e0a030", "#7a4a9a", "#202020", "#3aa0c0", "#d060a0", "#808080", "#705030")
"""Colours of the other libraries, in the order in which they appear."""


def plot(report: BenchReport, folder: str | Path) -> Path:
    """Write the picture into a folder, which is created if it does not exist, and return the path of the file.

    Raises:
        OSError: The folder cannot be written to.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    path = Path(folder) / NAME
    path.write_text(render_svg(report), encoding="utf-8")
    return path


def render_svg(report: BenchReport) -> str:
    """Return the picture as SVG. Rows without a goal or without a figure are omitted."""
    rows = [row for row in report.figures if _multiple_of_goal(row) is not None]
    dots, names = _peer_dots(rows), _peer_names(rows)
    scale = _Scale([1.0, *(_multiple_of_goal(row) or 1.0 for row in rows), *(share for *_, share in dots)])
    bottom = _TOP + _ROW * max(len(rows), 1)
    height = bottom + 60 + _ROW * ceil(len(names) / 4)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
            'font-family="sans-serif" font-size="11">',
            f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
            _text_element(_LEFT, 24, f"{report.machine}; {report.began}"),
            *_axis_elements(scale, bottom),
            *(line for at, row in enumerate(rows) for line in _row_elements(row, scale, _row_middle(at))),
            *(_dot_element(scale.x(share), _row_middle(at), names.index(name)) for at, name, share in dots),
            *_legend_elements(names, bottom + 56),
            "</svg>\n",
        ]
    )


class _Scale:
    """A logarithmic axis of complete decades that covers all values."""

    def __init__(self, values: Sequence[float]) -> None:
        self.first, self.last = floor(log10(min(values) * 0.99)), ceil(log10(max(values) * 1.01))

    def x(self, value: float) -> float:
        """Return the position of a value, in pixels from the left edge."""
        return _LEFT + (_RIGHT - _LEFT) * (log10(value) - self.first) / (self.last - self.first)


def _multiple_of_goal(row: Figure) -> float | None:
    """Return a figure as a multiple of its goal; None if there is no goal or the goal is zero."""
    return row.score / row.limit if row.score and row.limit else None


def _peer_dots(rows: Sequence[Figure]) -> list[tuple[int, str, float]]:
    """Return the figures of other libraries: the index of the row, the library's name, and the multiple of the goal."""
    return [
        (at, peer.name, share * peer.value / row.value)
        for at, row in enumerate(rows)
        for peer in row.peers
        if peer.value and row.value and (share := _multiple_of_goal(row)) is not None
    ]


def _peer_names(rows: Sequence[Figure]) -> list[str]:
    return list(dict.fromkeys(name for _, name, _ in _peer_dots(rows)))


def _row_middle(at: int) -> float:
    return _TOP + _ROW * (at + 0.5)


def _axis_elements(scale: _Scale, bottom: float) -> Iterator[str]:
    for power in range(scale.first, scale.last + 1):
        x = scale.x(10.0**power)
        yield f'<path d="M{x:.1f} {_TOP}V{bottom}" stroke="#dddddd"/>'
        yield _text_element(x, bottom + 16, f"{10.0**power:g}", "middle")
    yield f'<path d="M{scale.x(1.0):.1f} {_TOP - 6}V{bottom}" stroke="black"/>'
    caption = "multiples of the goal: left of the line is met"
    yield _text_element((_LEFT + _RIGHT) / 2, bottom + 32, caption, "middle")


def _row_elements(row: Figure, scale: _Scale, middle: float) -> Iterator[str]:
    width, color = scale.x(_multiple_of_goal(row) or 1.0) - _LEFT, _MET if row.is_met else _MISSED
    unit = "x" if row.baseline is not None else row.unit
    caption = f"{format_number(row.score or 0.0)} {unit}, goal {format_number(row.limit or 0.0)}"
    yield _text_element(_LEFT - 8, middle + 4, f"{row.goal}  {row.question}, {row.case}", "end")
    yield f'<rect x="{_LEFT}" y="{middle - _BAR / 2}" width="{width:.1f}" height="{_BAR}" fill="{color}"/>'
    yield _text_element(_RIGHT + 8, middle + 4, caption)


def _dot_element(x: float, y: float, number: int) -> str:
    color = _COLORS[number % len(_COLORS)]
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{color}" stroke="white"/>'


def _legend_elements(names: Sequence[str], top: float) -> Iterator[str]:
    for number, name in enumerate(names):
        x, y = _LEFT + (_RIGHT - _LEFT) / 4 * (number % 4), top + _ROW * (number // 4)
        yield _dot_element(x, y, number)
        yield _text_element(x + 10, y + 4, name)


def _text_element(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
