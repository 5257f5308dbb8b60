"""Measure rendering: from the history to the judged and encoded bytes of the next request (A1 to A4).

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
from benchmarks.figures import Extent, Figure, Library, Measure, require
from benchmarks.others import Others
from benchmarks.timing import cpu_ms, interleave, python_calls
from benchmarks.workload import DIALECTS, FAMILIES, Live, Step

TURNS = 8
"""Turns per sample of A1; the sample is their mean."""
MESSAGES = 2000
"""Messages of a cold render."""


def append_ms(live: Live, turns: int = TURNS) -> float:
    """Return the mean CPU milliseconds of appending a turn and building the next request."""
    steps = [live.author.turn() for _ in range(turns)]
    return cpu_ms(partial(_each, live, steps)) / turns


def _each(live: Live, turns: list[list[Step]]) -> None:
    for turn in turns:
        live.append(turn)
        live.next()


def wire(body: Iterable[bytes]) -> list[Any]:  # Any: JSON as any client would hold it
    """Return the wire messages of a request body."""
    messages: list[Any] = json.loads(b"".join(body))["messages"]  # Any: as above
    return messages


def _by_hand(new: list[Any], turns: int = TURNS) -> Callable[[], float]:  # Any: see `wire`
    """Return the baseline of A1: encode the wire dicts of a turn after an unchanged prefix."""
    prefix = (b"x" * 1_000_000,)

    def requests() -> None:
        for _ in range(turns):
            fragment = json.dumps(new, ensure_ascii=False, separators=(",", ":")).encode()
            _count_segments((*prefix, fragment))

    return lambda: cpu_ms(requests) / turns


def _count_segments(segments: tuple[bytes, ...]) -> int:
    return len(segments)


class _Beside:
    """Other libraries and the history file that they read."""

    def __init__(self, others: Others, history: Path) -> None:
        self._others, self._history = others, history
        self.peers = others.peers

    def take(self, measure: Callable[[Library, Path], float]) -> None:
        """Measure each library once."""
        self._others.take(lambda library: measure(library, self._history))


@contextmanager
def _beside(
    name: str, options: Extent, messages: list[Any], more: list[Any]
) -> Iterator[_Beside]:  # Any: JSON
    """Write a history file for other libraries. All of them support `openai_chat`, so only that dialect is measured."""
    with TemporaryDirectory() as folder:
        history = Path(folder) / "history.json"
        history.write_text(json.dumps({"messages": messages, "more": more}))
        yield _Beside(Others(options.libraries if name == "openai_chat" else ()), history)


def _render_ms(library: Library, history: Path) -> float:
    return library.render_ms(history, more=False)


def _append_ms(library: Library, history: Path) -> float:
    return library.render_ms(history, more=True)


def _a1(options: Extent) -> list[Figure]:
    rows = []
    for name in DIALECTS:
        live = Live(name, name, 2000)
        before = len(wire(live.next()))
        live.append(live.author.turn())
        last = wire(live.next())[before:]  # 8 messages, or 4 if the dialect puts results into one message
        repeats = 7 if options.quick else 25
        works = lambda live=live: append_ms(live), _by_hand(last)  # the default binds the loop's variable
        with _beside(name, options, wire(live.next()), last) as others:
            passes = interleave(repeats, *works, beside=partial(others.take, _append_ms))
        note = f"baseline: {len(last)} wire messages after a stored prefix"
        row = Figure("A1", _QUESTIONS["A1"], name, "ms", 3.0, note=note, peers=others.peers())
        rows.append(passes.fill(row))
    return rows


def _a2(options: Extent) -> list[Figure]:
    rows = []
    for name in FAMILIES if options.quick else PROFILES:
        large = Live(name, name, 10_000)
        large.next()

        def small(name: str = name) -> float:
            live = Live(name, name, 20)
            live.next()
            return append_ms(live)

        repeats = 7 if options.quick else 25
        passes = interleave(repeats, lambda live=large: append_ms(live), small)  # type: ignore[misc]  # as above
        note = "baseline: A1 at 20 messages"
        rows.append(passes.fill(Figure("A2", _QUESTIONS["A2"], name, "ms", 1.3, note=note)))
    return rows


def _a3(options: Extent) -> list[Figure]:
    orjson = require("orjson")
    rows = []
    for name, origin in zip(DIALECTS, reversed(DIALECTS), strict=True):
        live = Live(origin, name, MESSAGES)
        dicts = wire(live.cold())
        repeats = 7 if options.quick else 15
        works = (
            lambda live=live: cpu_ms(live.cold),
            lambda dicts=dicts: cpu_ms(lambda: orjson.dumps(dicts)),
        )
        with _beside(name, options, dicts, []) as others:
            passes = interleave(repeats, *works, beside=partial(others.take, _render_ms))
        size = sum(map(len, live.cold())) / 1e6
        note, peers = f"{size:.2f} MB from {origin}", others.peers()
        rows.append(passes.fill(Figure("A3", _QUESTIONS["A3"], name, "ms", 5.0, note=note, peers=peers)))
    return [*rows, _against_the_fastest(rows[0])]


def _against_the_fastest(row: Figure) -> Figure:
    """Return the row that compares a cold render with the fastest other library."""
    against = replace(row, question=_FASTEST, limit=0.6, baseline=None, spread=None, peers=(), value=None)
    best = row.best_peer
    if best is None:
        return replace(against, note="run python -m benchmarks.peers to measure other libraries")
    return replace(
        against, value=row.value, baseline=best.value, note=f"baseline: {best.name}, which checks nothing"
    )


def _a4(options: Extent) -> list[Figure]:
    rows = []
    for name, origin in zip(DIALECTS, reversed(DIALECTS), strict=True):
        live, dicts = Live(origin, name, MESSAGES), wire(Live(origin, origin, MESSAGES).cold())
        repeats = 5 if options.quick else 15
        convert = partial(_convert, dicts, origin, name)
        passes = interleave(
            repeats,
            lambda convert=convert: cpu_ms(convert),  # type: ignore[misc]  # as above
            lambda live=live: cpu_ms(live.cold),  # type: ignore[misc]  # as above
        )
        row = Figure("A4", _QUESTIONS["A4"], name, "ms", 2.0, note=f"from {origin}")
        row = replace(row, calls=python_calls(convert), baseline_calls=python_calls(live.cold))
        rows.append(passes.fill(row))
    return rows


def _convert(messages: list[Any], origin: str, target: str) -> bytes:  # Any: see `wire`
    return encode(render(*from_wire(messages, origin), dialect(target)), model="model-1")


_FASTEST = "the same against the fastest other library"
_QUESTIONS = {
    "A1": "next request after 8 more messages on 2,000",
    "A2": "A1 at 10,000 messages against 20",
    "A3": "cold render of 2,000 messages",
    "A4": "from_wire to encode, 2,000 messages, against A3",
}
MEASURES = (
    Measure("A1", _QUESTIONS["A1"], _a1),
    Measure("A2", _QUESTIONS["A2"], _a2),
    Measure("A3", _QUESTIONS["A3"], _a3),
    Measure("A4", _QUESTIONS["A4"], _a4),
)
