"""Measure rendering: from the history to the checked and encoded bytes of the next request (A1 to A4).

A1   append a turn of 8 messages to a live lane; baseline: a stored prefix and `json.dumps` of that turn
A2   A1 at 10,000 messages against A1 at 20, for every dialect (one per wire family without `--full`)
A3   render the complete transcript for a new binding; baseline: `orjson.dumps` of the finished wire dicts
A4   `from_wire` to `encode`: wire messages of another provider to a request body; baseline: A3
"""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from actors.core.dialects.profiles import PROFILES
from actors.transcripts import dialect, encode, from_wire, render
from benchmarks.figures import Extent, Figure, Library, Measure, require_module
from benchmarks.others import OtherLibraries
from benchmarks.timing import cpu_ms, interleave, python_calls
from benchmarks.workload import DIALECTS, FAMILIES, LiveConversation, Step

TURNS = 8
"""Number of turns that are appended for one sample of A1. The sample is their mean."""
MESSAGES = 2000
"""Number of messages of a cold render, which starts from an empty lane."""


def append_ms(live: LiveConversation, turns: int = TURNS) -> float:
    """Return the mean CPU milliseconds to append a turn and build the next request."""
    steps = [live.author.turn() for _ in range(turns)]
    return cpu_ms(partial(_append_each, live, steps)) / turns


def _append_each(live: LiveConversation, turns: list[list[Step]]) -> None:
    for turn in turns:
        live.append(turn)
        live.next_request()


def wire_messages(body: Iterable[bytes]) -> list[Any]:  # Any: parsed JSON
    """Return the messages in a request body, as parsed JSON."""
    messages: list[Any] = json.loads(b"".join(body))["messages"]  # Any: parsed JSON
    return messages


def _baseline_ms(new: list[Any], turns: int = TURNS) -> Callable[[], float]:  # Any: parsed JSON
    """Return the baseline of A1: a function that encodes the wire dicts of a turn after an unchanged prefix."""
    prefix = (b"x" * 1_000_000,)

    def requests() -> None:
        for _ in range(turns):
            fragment = json.dumps(new, ensure_ascii=False, separators=(",", ":")).encode()
            _count_segments((*prefix, fragment))

    return lambda: cpu_ms(requests) / turns


def _count_segments(segments: tuple[bytes, ...]) -> int:
    return len(segments)


class _LibrariesWithHistory:
    """Other libraries, and the file with the history that they render."""

    def __init__(self, others: OtherLibraries, history: Path) -> None:
        self._others, self._history = others, history
        self.peers = others.peers

    def measure_each(self, measure: Callable[[Library, Path], float]) -> None:
        """Measure each library once with the history file."""
        self._others.measure_each(lambda library: measure(library, self._history))


@contextmanager
def _libraries_with_history(
    name: str, options: Extent, messages: list[Any], more: list[Any]
) -> Iterator[_LibrariesWithHistory]:  # Any: parsed JSON
    """Write a history file, and yield the libraries that support the dialect: all for `openai_chat`, else none."""
    with TemporaryDirectory() as folder:
        history = Path(folder) / "history.json"
        history.write_text(json.dumps({"messages": messages, "more": more}))
        yield _LibrariesWithHistory(
            OtherLibraries(options.libraries if name == "openai_chat" else ()), history
        )


def _render_ms(library: Library, history: Path) -> float:
    return library.render_ms(history, more=False)


def _append_ms(library: Library, history: Path) -> float:
    return library.render_ms(history, more=True)


def _measure_a1(options: Extent) -> list[Figure]:
    rows = []
    for name in DIALECTS:
        live = LiveConversation(name, name, 2000)
        before = len(wire_messages(live.next_request()))
        live.append(live.author.turn())
        last = wire_messages(live.next_request())[
            before:
        ]  # 8 messages, or 4 if the dialect puts results into one message
        repeats = 7 if options.quick else 25
        works = (
            lambda live=live: append_ms(live),
            _baseline_ms(last),
        )  # the default argument binds the current `live`
        with _libraries_with_history(name, options, wire_messages(live.next_request()), last) as others:
            passes = interleave(repeats, *works, beside=partial(others.measure_each, _append_ms))
        note = f"baseline: {len(last)} wire messages after a stored prefix"
        row = Figure("A1", _QUESTIONS["A1"], name, "ms", 3.0, note=note, peers=others.peers())
        rows.append(passes.fill(row))
    return rows


def _measure_a2(options: Extent) -> list[Figure]:
    rows = []
    for name in FAMILIES if options.quick else PROFILES:
        large = LiveConversation(name, name, 10_000)
        large.next_request()

        def small(name: str = name) -> float:
            live = LiveConversation(name, name, 20)
            live.next_request()
            return append_ms(live)

        repeats = 7 if options.quick else 25
        passes = interleave(repeats, lambda live=large: append_ms(live), small)  # type: ignore[misc]  # mypy infers no type for the default argument
        note = "baseline: A1 at 20 messages"
        rows.append(passes.fill(Figure("A2", _QUESTIONS["A2"], name, "ms", 1.3, note=note)))
    return rows


def _measure_a3(options: Extent) -> list[Figure]:
    orjson = require_module("orjson")
    rows = []
    for name, origin in zip(DIALECTS, reversed(DIALECTS), strict=True):
        live = LiveConversation(origin, name, MESSAGES)
        dicts = wire_messages(live.first_request())
        repeats = 7 if options.quick else 15
        works = (
            lambda live=live: cpu_ms(live.first_request),
            lambda dicts=dicts: cpu_ms(lambda: orjson.dumps(dicts)),
        )
        with _libraries_with_history(name, options, dicts, []) as others:
            passes = interleave(repeats, *works, beside=partial(others.measure_each, _render_ms))
        size = sum(map(len, live.first_request())) / 1e6
        note, peers = f"{size:.2f} MB from {origin}", others.peers()
        rows.append(passes.fill(Figure("A3", _QUESTIONS["A3"], name, "ms", None, note=note, peers=peers)))
    return [*rows, _fastest_peer_row(rows[0])]


def _fastest_peer_row(row: Figure) -> Figure:
    """Return the row that compares a cold render with the fastest other library."""
    against = replace(row, question=_FASTEST, limit=1.0, baseline=None, spread=None, peers=(), value=None)
    best = row.best_peer
    if best is None:
        return replace(against, note="run python -m benchmarks.peers to measure other libraries")
    return replace(
        against, value=row.value, baseline=best.value, note=f"baseline: {best.name}, which checks nothing"
    )


def _measure_a4(options: Extent) -> list[Figure]:
    rows = []
    for name, origin in zip(DIALECTS, reversed(DIALECTS), strict=True):
        live, dicts = (
            LiveConversation(origin, name, MESSAGES),
            wire_messages(LiveConversation(origin, origin, MESSAGES).first_request()),
        )
        repeats = 5 if options.quick else 15
        convert = partial(_convert, dicts, origin, name)
        passes = interleave(
            repeats,
            lambda convert=convert: cpu_ms(convert),  # type: ignore[misc]  # mypy infers no type for the default argument
            lambda live=live: cpu_ms(live.first_request),  # type: ignore[misc]  # mypy infers no type for the default argument
        )
        row = Figure("A4", _QUESTIONS["A4"], name, "ms", 3.0, note=f"from {origin}")
        row = replace(row, calls=python_calls(convert), baseline_calls=python_calls(live.first_request))
        rows.append(passes.fill(row))
    return rows


def _wire_of(origin: str) -> list[Any]:  # Any: parsed JSON
    return wire_messages(LiveConversation(origin, origin, MESSAGES).first_request())


def _convert(messages: list[Any], origin: str, target: str) -> bytes:  # Any: parsed JSON
    return encode(render(*from_wire(messages, origin), dialect(target)), model="model-1")


_FASTEST = "the same against the fastest other library"
_QUESTIONS = {
    "A1": "next request after 8 more messages on 2,000",
    "A2": "A1 at 10,000 messages against 20",
    "A3": "cold render of 2,000 messages",
    "A4": "from_wire to encode, 2,000 messages, against A3",
}
MEASURES = (
    Measure("A1", _QUESTIONS["A1"], _measure_a1),
    Measure("A2", _QUESTIONS["A2"], _measure_a2),
    Measure("A3", _QUESTIONS["A3"], _measure_a3),
    Measure("A4", _QUESTIONS["A4"], _measure_a4),
)
