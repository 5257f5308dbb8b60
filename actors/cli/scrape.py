"""Read Prometheus metrics for `actors stats`.

In:  the text that `PrometheusCollector` exposes.
Out: the metrics whose names start with `actors_`. A histogram becomes a count, a mean, and estimates of the 50th and
95th percentile from its buckets.
"""

import json
import re
from collections.abc import Iterable, Iterator
from math import inf

from msgspec import Struct

from actors.cli.screen import escape_controls, screen
from actors.core.stats.stats import Durations

PREFIX = "actors_"
_SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)(?: \S+)?$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}

Labels = tuple[tuple[str, str], ...]


class _Histogram(Struct):
    """A Prometheus histogram: cumulative counts by upper bound, and the sum of all values in seconds."""

    buckets: dict[float, float] = {}
    seconds: float = 0.0

    @property
    def figures(self) -> dict[str, float]:
        """The count, the mean and two percentiles, by name."""
        before, counts = 0.0, dict[float, int]()
        for bound, up_to in self.buckets.items():
            counts[bound], before = round(up_to - before), up_to
        took = Durations(counts, self.seconds, inf)
        mean = self.seconds / took.count if took.count else 0.0
        centiles = {f"p{percent}": took.centile(percent) if took.count else 0.0 for percent in (50, 95)}
        return {"count": took.count, "mean": round(mean, 6), **centiles}


class Scrape(Struct):
    """The parsed metrics, by name (without the prefix `actors_`) and by labels."""

    values: dict[str, dict[Labels, float]] = {}
    histograms: dict[str, dict[Labels, _Histogram]] = {}
    _types: dict[str, str] = {}

    def add_line(self, line: str) -> None:
        """Parse a line of Prometheus text. Metrics without the prefix `actors_` are skipped."""
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(maxsplit=3)
            self._types[name] = kind.strip()
        elif line.startswith(PREFIX) and (found := _SAMPLE.match(line.rstrip())):
            labels = {name: _unescape(text) for name, text in _LABEL.findall(found[2] or "")}
            self._add_sample(found[1], labels, float(found[3]))

    def _add_sample(self, name: str, labels: dict[str, str], value: float) -> None:
        base, _, part = name.rpartition("_")
        if self._types.get(base) != "histogram":
            if not name.endswith("_created"):
                self.values.setdefault(name.removeprefix(PREFIX), {})[tuple(labels.items())] = value
            return
        bound = labels.pop("le", "")
        of_labels = self.histograms.setdefault(base.removeprefix(PREFIX), {})
        histogram = of_labels.setdefault(tuple(labels.items()), _Histogram())
        if part == "bucket":
            histogram.buckets[inf if bound == "+Inf" else float(bound)] = value
        elif part == "sum":
            histogram.seconds = value

    @property
    def rows(self) -> Iterator[tuple[str, Labels, dict[str, float]]]:
        """Yield each metric as a tuple of its name, its labels, and its value or its histogram's figures."""
        for name, values in self.values.items():
            yield from ((name, labels, {"value": value}) for labels, value in values.items())
        for name, histograms in self.histograms.items():
            yield from ((name, labels, each.figures) for labels, each in histograms.items())


def _unescape(text: str) -> str:
    return re.sub(r"\\.", lambda found: _ESCAPES.get(found[0], found[0]), text)


def read_metrics(lines: Iterable[str]) -> Scrape:
    """Parse lines of Prometheus text and return the `actors_` metrics."""
    scrape = Scrape()
    for line in lines:
        scrape.add_line(line)
    return scrape


def as_json(scrape: Scrape) -> str:
    """Return the metrics as one JSON object, by name."""
    found: dict[str, list[dict[str, object]]] = {}
    for name, labels, figures in scrape.rows:
        plain = {key: "inf" if value == inf else value for key, value in figures.items()}
        found.setdefault(name, []).append({"labels": dict(labels), **plain})
    return json.dumps(found)


def as_lines(scrape: Scrape) -> Iterator[str]:
    """Yield the metrics as lines with aligned columns."""
    rows = [
        (escape_controls(name), escape_controls(_labels_text(labels)), _figures_text(figures))
        for name, labels, figures in scrape.rows
    ]
    widths = [max((len(row[at]) for row in rows), default=0) for at in (0, 1)]
    style = screen().style
    for name, labels, words in rows:
        yield f"{style(name.ljust(widths[0]), 'bold')}  {labels.ljust(widths[1])}  {words}"


def _labels_text(labels: Labels) -> str:
    return " ".join(f"{name}={text}" for name, text in labels)


def _figures_text(figures: dict[str, float]) -> str:
    if "value" in figures:
        return f"{figures['value']:,.10g}"
    times = "  ".join(f"{name} {figures[name]:.4g} s" for name in ("mean", "p50", "p95"))
    return f"{figures['count']:,}  {times}"
