"""`actors stats`: count tool calls, requests and asks in events that `actors run --json` printed.

The counters equal those that `actors.core.stats.stats.recount` computes from the log. But events contain less than the
log. A batch that was interrupted by the end of the process has no result events, so its invalid calls are missing from
these counts. The work of a subagent is counted if the parent's stream contains its events.

For a file with the Prometheus metrics that `PrometheusCollector` exposes, print every metric whose name starts with
`actors_`. A histogram becomes a count, a mean, and estimates of the 50th and 95th percentile from its buckets.
"""

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain
from math import inf
from pathlib import Path

from msgspec import Struct
from msgspec import field as msgspec_field
from msgspec.structs import asdict

from actors.cli.exits import Exit
from actors.cli.parser import Parser
from actors.cli.screen import escape_controls, screen
from actors.core.data.jsonio import is_object
from actors.core.stats.measures import status_label
from actors.core.stats.stats import COUNTERS, OUR_BUG, Durations, ToolCounts, ToolRecount
from actors.core.stream_events.event_json import Fields
from actors.core.values.content import Message, ToolCall
from actors.core.values.stream import Usage
from actors.errors import TranscriptError

NO_TOKENS = asdict(Usage())
RATES = ("invalid_rate", "repaired_rate")
_COLUMNS = (
    "calls",
    "invalid",
    "repaired",
    "refused 400",
    "round limit",
    "repeated",
    "answers",
    "invalid %",
    "repaired %",
)
EXAMPLES = (
    ("actors stats events.jsonl", "summarise events that `actors run --json` printed"),
    ("curl -s localhost:9464/metrics | actors stats -", "show the metrics of a running process"),
)
PREFIX = "actors_"
_SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)(?: \S+)?$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}
Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class WorkCounts:
    """Totals of asks and requests, counted from events.

    Args:
        asks: Number of ended asks by status. An ask that awaits its caller has not ended.
        requests: Number of ended requests by binding and status.
        tokens: Tokens of the answers by binding.
        failures: Number of calls that raised or timed out.
    """

    asks: Counter[str] = field(default_factory=Counter[str])
    requests: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    tokens: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    failures: int = 0

    def count_event(self, event: Fields, binding: str) -> None:
        """Count an event of a turn. `binding` is the turn's binding as a string, such as `house:model`."""
        match event:
            case {
                "type": "complete" | "error",
                "result": {"status": "complete" | "cancelled" | "failed" | "interrupted" as status},
            }:
                self.asks[status] += 1
            case {"type": "request_failed"}:
                cause: Fields = event.get("cause") or {}
                self.count_request(binding, cause.get("status"))
            case {"type": "message", "error": str(error)} if error:
                # The request itself is counted at its `request_failed` event.
                self.add_usage(binding, event.get("usage"))
            case {"type": "message", "message": {"calls": _}}:
                self.count_request(binding, 200, event.get("usage"))
            case {"type": "tool_results", "results": list()}:
                self.failures += sum(each["outcome"] == "failed" for each in event["results"])
            case _:
                pass

    def count_request(self, binding: str, status: int | None, usage: dict[str, int] | None = None) -> None:
        """Count an ended request with this binding and HTTP status, and the tokens of its answer."""
        self.requests.setdefault(binding, Counter())[status_label(status)] += 1
        self.add_usage(binding, usage)

    def add_usage(self, binding: str, usage: dict[str, int] | None) -> None:
        """Add the tokens of an answer with this binding."""
        known = {name: count for name, count in (usage or {}).items() if name in NO_TOKENS}
        self.tokens.setdefault(binding, Counter(NO_TOKENS)).update(known)


def _no_subagents() -> "dict[str, _EventRecount]":
    return {}


class _EventRecount(ToolRecount):
    """The tool counters of one session and of its subagents, which count events while they are read."""

    work: WorkCounts = msgspec_field(default_factory=WorkCounts)
    binding: str = ""
    children: "dict[str, _EventRecount]" = msgspec_field(default_factory=_no_subagents)

    def count_event(self, event: Fields) -> None:
        self.work.count_event(event, self.binding)
        match event:
            case {"type": "turn_started", "binding": str(binding)}:
                self.begin_turn(_backend_name(binding))
                self.binding = binding
            case {"type": "request_sent"}:
                self.count_request(tools_off=bool(event.get("tools_off")))
            case {"type": "message", "message": {"calls": list()}}:
                self.is_unanswered = False
                self.backend_counts.count_calls(
                    Message("assistant", tuple(map(_read_call, event["message"]["calls"])))
                )
            case {"type": "tool_results", "results": list()}:
                refused = sum(each["outcome"] == "refused" for each in event["results"])
                self.backend_counts.tool_calls_invalid_args += refused
                self.backend_counts.tool_calls_repeated += event.get("repeated", 0)
            case {"type": "lane_rewritten", "reason": "refusal" | "thinking"}:
                self.count_refusal()
            case {"type": "call_repaired"}:
                self.backend_counts.tool_calls_repaired += 1
            case {"type": "turn_ended"}:
                self.backend_counts.answers_repaired += bool(event.get("repaired"))
                cause: Fields = event.get("cause") or {}
                if cause.get("kind") == OUR_BUG:
                    self.count_refusal()
            case {"type": "subagent", "session": str(name), "event": dict()}:
                child = self.children.setdefault(name, _EventRecount(work=self.work, counts=self.counts))
                child.count_event(event["event"])
            case _:
                pass


def recount_events(events: Iterable[Fields]) -> dict[str, ToolCounts]:
    """Count tool calls from events. Return the counters by backend. Unknown events are skipped.

    Raises:
        KeyError, TypeError: An item is not an event.
    """
    return recount_work(events)[0]


def recount_work(events: Iterable[Fields]) -> tuple[dict[str, ToolCounts], WorkCounts]:
    """Count tool calls, asks and requests from events. Return the tool counters by backend, and the totals.

    Raises:
        KeyError, TypeError: An item is not an event.
    """
    counting = _EventRecount()
    for event in events:
        counting.count_event(event)
    known = {name: counts for name, counts in counting.counts.items() if counts != ToolCounts()}
    return known, counting.work


def _backend_name(binding: str) -> str:
    """Return the name of the backend in a binding's string: `_backend_name("house:model") == "house"`."""
    return binding.partition(":")[0].partition(" via ")[0]


def _read_call(fields: Fields) -> ToolCall:
    return ToolCall(fields["id"], fields["name"], fields["arguments"], fields.get("raw"))


def add_arguments(parser: Parser) -> None:
    parser.add_argument("file", help="events of `run --json`, or Prometheus metrics; `-` is standard input")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> Exit:
    """Print the counters of each backend and their sum. If the file has Prometheus metrics, print every metric.

    Raises:
        TranscriptError: The file has no events, or a line is not an event.
    """
    lines = _EventLines(options.file)
    if lines.is_scrape:
        found = read_metrics(lines.raw_lines())
        print(as_json(found) if options.json else "\n".join(as_lines(found)))
        return Exit.OK
    try:
        counts, work = recount_work(lines.events())
    except (AttributeError, KeyError, TypeError) as error:
        raise lines.line_error("the event lacks a field") from error
    if not lines.has_events:
        raise TranscriptError(f"{options.file} has no events; `actors run --json` prints them, one per line")
    if options.json:
        print(json.dumps({name: _counter_values(each) for name, each in counts.items()}))
    else:
        print("\n".join([*_counter_lines(counts), *_work_lines(work)]))
    return Exit.OK


class _EventLines:
    """Reads the lines of an event file one by one, and counts them for error messages."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._lines: Iterator[str] = self._read_lines()
        self._number = 0
        self.has_events = False

    @property
    def is_scrape(self) -> bool:
        """True if the file contains Prometheus metrics instead of events. Read this property before the lines."""
        first = next(self._lines, "")
        self._lines = chain([first], self._lines)
        return first.startswith(("# HELP ", "# TYPE "))

    def raw_lines(self) -> Iterator[str]:
        """Return the lines as they are in the file."""
        return self._lines

    def events(self) -> Iterator[Fields]:
        """Yield the parsed event of each line. Empty lines are skipped."""
        for line in self._lines:
            self._number += 1
            if line.strip():
                yield self._parse_event(line)

    def line_error(self, reason: str) -> TranscriptError:
        """Return an error that names the file and the current line."""
        return TranscriptError(f"{self._file}, line {self._number}: {reason}; see docs/reference/events.md")

    def _parse_event(self, line: str) -> Fields:
        try:
            event = json.loads(line)
        except ValueError as error:
            raise self.line_error("the line is not JSON") from error
        if not is_object(event) or "type" not in event:
            raise self.line_error("the line is not an event")
        self.has_events = True
        return event

    def _read_lines(self) -> Iterator[str]:
        if self._file == "-":
            yield from sys.stdin
            return
        try:
            with Path(self._file).open(encoding="utf-8-sig") as file:
                yield from file
        except UnicodeDecodeError as error:
            raise self.line_error("the file is not UTF-8") from error


def _counter_values(counts: ToolCounts) -> dict[str, float]:
    return asdict(counts) | {name: round(getattr(counts, name), 4) for name in RATES}


def _counter_lines(counts: dict[str, ToolCounts]) -> Iterator[str]:
    rows = dict(counts)
    if len(counts) != 1:
        rows["all"] = reduce(ToolCounts.plus, counts.values(), ToolCounts())
    width = max(map(len, map(escape_controls, rows)), default=0)
    yield screen().style(" ".join(["".ljust(width), *(name.rjust(11) for name in _COLUMNS)]), "bold")
    for name, each in rows.items():
        numbers = [f"{getattr(each, counter):,}" for counter in COUNTERS]
        shares = [f"{getattr(each, rate):.1%}" for rate in RATES]
        yield " ".join([escape_controls(name).ljust(width), *(cell.rjust(11) for cell in numbers + shares)])


def _work_lines(work: WorkCounts) -> Iterator[str]:
    """Yield lines about asks, requests and tokens. Yield nothing if no ask has ended."""
    if not work.asks:
        return
    yield f"asks: {_join_counts(work.asks)}; failed calls: {work.failures:,}"
    for binding, statuses in work.requests.items():
        yield f"requests to {escape_controls(binding)}: {_join_counts(statuses)}"
    for binding, tokens in work.tokens.items():
        share = tokens["cache_read_tokens"] / max(tokens["input_tokens"], 1)
        kinds = {name.removesuffix("_tokens"): count for name, count in tokens.items()}
        yield f"tokens of {escape_controls(binding)}: {_join_counts(kinds)}; cache share {share:.1%}"


def _join_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


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
    """The metrics in a Prometheus file, by name (without the prefix `actors_`) and by labels."""

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
        """Yield (name, labels, figures) for each metric. The figures are its value, or the figures of its histogram."""
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
