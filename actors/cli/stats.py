"""`actors stats`: count tool calls, requests and asks in events that `actors run --json` printed.

For a file with Prometheus metrics, print every metric (`actors.cli.scrape`).
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from functools import reduce
from itertools import chain
from pathlib import Path

from msgspec.structs import asdict

from actors.cli import scrape
from actors.cli.exits import Exit
from actors.cli.parser import Parser
from actors.cli.screen import escape_controls, screen
from actors.core.data.jsonio import is_object
from actors.core.stats.event_counts import WorkCounts, recount_work
from actors.core.stats.stats import COUNTERS, ToolCounts
from actors.core.stream_events.event_json import Fields
from actors.errors import TranscriptError

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
        found = scrape.read_metrics(lines.raw_lines())
        print(scrape.as_json(found) if options.json else "\n".join(scrape.as_lines(found)))
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
