"""`actors stats`: how tool calls fared with each backend, counted from events as `actors run --json` prints them."""

import argparse
import json
import sys
from collections.abc import Iterator
from functools import reduce
from pathlib import Path

from msgspec.structs import asdict

from actors.cli.exits import Exit
from actors.cli.screen import safe, screen
from actors.core.event_json import Fields
from actors.core.retold import recount_events
from actors.core.stats import COUNTERS, ToolCounts
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


def main(options: argparse.Namespace) -> Exit:
    """Print the counters of each backend, and of all together.

    Raises:
        TranscriptError: The file has none, or a line of it is no event.
    """
    lines = _EventLines(options.file)
    try:
        counts = recount_events(lines.events())
    except (AttributeError, KeyError, TypeError) as error:
        raise lines.wrong("has not the fields of an event") from error
    if not lines.any:
        raise TranscriptError(f"{options.file} has no events; `actors run --json` prints them, one a line")
    if options.json:
        print(json.dumps({name: _figures(each) for name, each in counts.items()}))
    else:
        print("\n".join(_table(counts)))
    return Exit.OK


class _EventLines:
    """The lines of a file, and which of them is read."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._number = 0
        self.any = False

    def events(self) -> Iterator[Fields]:
        """Yield the event of each line; empty ones are passed over."""
        for line in self._read():
            self._number += 1
            if line.strip():
                yield self._event(line)

    def wrong(self, why: str) -> TranscriptError:
        """Return the error for the line that is read."""
        return TranscriptError(f"{self._file}, line {self._number}: it {why}; see docs/reference/events.md")

    def _event(self, line: str) -> Fields:
        try:
            event = json.loads(line)
        except ValueError as error:
            raise self.wrong("is no JSON") from error
        if not isinstance(event, dict) or "type" not in event:
            raise self.wrong("is no event")
        self.any = True
        return event

    def _read(self) -> Iterator[str]:
        if self._file == "-":
            yield from sys.stdin
            return
        try:
            with Path(self._file).open(encoding="utf-8-sig") as file:
                yield from file
        except UnicodeDecodeError as error:
            raise self.wrong("is no UTF-8") from error


def _figures(counts: ToolCounts) -> dict[str, float]:
    return asdict(counts) | {name: round(getattr(counts, name), 4) for name in RATES}


def _table(counts: dict[str, ToolCounts]) -> Iterator[str]:
    rows = dict(counts)
    if len(counts) != 1:
        rows["all"] = reduce(ToolCounts.plus, counts.values(), ToolCounts())
    width = max(map(len, map(safe, rows)), default=0)
    yield screen().styled(" ".join(["".ljust(width), *(name.rjust(11) for name in _COLUMNS)]), "bold")
    for name, each in rows.items():
        numbers = [f"{getattr(each, counter):,}" for counter in COUNTERS]
        shares = [f"{getattr(each, rate):.1%}" for rate in RATES]
        yield " ".join([safe(name).ljust(width), *(cell.rjust(11) for cell in numbers + shares)])
