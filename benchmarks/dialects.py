"""Compare the codec of each dialect with plain `json` over the same data (P2).

P2E  encode a transcript of 2,000 messages; baseline: `json.dumps` of the finished array of messages
P2D  decode a streamed answer of 200 deltas, one event at a time; baseline: `json.loads` of each event
"""

import json
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain

from actors.adapters.codec import decode
from actors.core.dialects.profiles import PROFILES, dialect
from actors.strict.wire import Wire
from actors.testing import (
    Say,
    Turn,
    strict_server,
)
from benchmarks.figures import Extent, Figure, Measure
from benchmarks.timing import cpu_ms, interleave
from benchmarks.workload import FAMILIES, Live, binding

MESSAGES = 2000
DELTAS = 200
ANSWERS = 5
"""Answers per sample of P2D; the sample is their mean."""

_PIECE = 8
_TEXT = "word by word, as a model says it \u2713 "


def encoding(name: str) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return two functions that encode a transcript: the codec without the judge, and `json.dumps`."""
    live = Live(name, name, MESSAGES)
    finished = json.loads(live.render().transcript)  # the request body may also contain cache marks
    return (
        lambda: b"".join(chain.from_iterable(live.walk().write_fragments())),
        lambda: json.dumps(finished, ensure_ascii=False, separators=(",", ":")).encode(),
    )


def decoding(name: str) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return two functions that decode an answer: the decoder of the dialect, and `json.loads`."""
    text = (_TEXT * DELTAS)[: DELTAS * _PIECE]
    request = {"model": "model-1", "messages": [], "input": []}
    events = _wire(name).encode_events(Turn(Say(text), fragment=_PIECE), request, 0)
    texts = _texts(name, events)

    def decode_events() -> None:
        decoder = decode(dialect(name), binding(name))
        for event in events:
            decoder.feed(event)
        assert decoder.close().text == text

    def loads() -> None:
        for text in texts:
            json.loads(text)

    return decode_events, loads


def _wire(name: str) -> Wire:
    return strict_server(name)._wire


def _texts(name: str, events: Sequence[bytes]) -> list[str]:
    """Return the JSON documents in a stream of server-sent events or Bedrock frames."""
    if name.startswith("bedrock"):  # the JSON of a frame is between its headers and a checksum of four bytes
        return [event[event.index(b"{", 12) : -4].decode() for event in events]
    lines = (line for event in events for line in event.splitlines() if line.startswith(b"data: {"))
    return [line.removeprefix(b"data: ").decode() for line in lines]


def _dialects(options: Extent) -> Sequence[str]:
    return FAMILIES if options.quick else tuple(PROFILES)


def _p2e(options: Extent) -> list[Figure]:
    rows = []
    for name in _dialects(options):
        passes = interleave(5 if options.quick else 15, *(partial(cpu_ms, work) for work in encoding(name)))
        rows.append(passes.fill(Figure("P2E", _QUESTIONS["P2E"], name, "ms", 1.0)))
    return rows


def _p2d(options: Extent) -> list[Figure]:
    rows = []
    for name in _dialects(options):
        passes = interleave(3 if options.quick else 25, *(partial(_mean, work) for work in decoding(name)))
        limit, note = (8.0, "includes frames and checksums") if name == "bedrock" else (5.0, "")
        rows.append(passes.fill(Figure("P2D", _QUESTIONS["P2D"], name, "ms", limit, note=note)))
    return rows


def _mean(work: Callable[[], object]) -> float:
    return cpu_ms(lambda: [work() for _ in range(ANSWERS)]) / ANSWERS


_QUESTIONS = {
    "P2E": "2,000 messages encoded, against json.dumps",
    "P2D": "200 deltas decoded, against json.loads",
}
MEASURES = (
    Measure("P2E", _QUESTIONS["P2E"], _p2e),
    Measure("P2D", _QUESTIONS["P2D"], _p2d),
)
