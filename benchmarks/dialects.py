"""Compare the codec of each dialect with plain `json` over the same data (P2E, P2D).

P2E  encode a transcript of 2,000 messages; baseline: `json.dumps` of the finished array of messages
P2D  decode a streamed answer of 200 deltas, one event at a time; baseline: `json.loads` of each event
"""

import json
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain

from actors.adapters.codec import decode
from actors.core.dialects.profiles import PROFILES, dialect
from actors.strict.wires import Wire
from actors.testing import (
    Say,
    Turn,
    strict_server,
)
from benchmarks.figures import Extent, Figure, Measure
from benchmarks.timing import cpu_ms, interleave
from benchmarks.workload import FAMILIES, LiveConversation, dialect_binding

MESSAGES = 2000
DELTAS = 200
ANSWERS = 5
"""Number of answers that are decoded for one sample of P2D. The sample is their mean."""

_FRAGMENT = 8
_TEXT = "word by word, as a model says it \u2713 "


def encoding_works(name: str) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return two functions that encode one transcript: with the codec (without the judge), and with `json.dumps`."""
    live = LiveConversation(name, name, MESSAGES)
    finished = json.loads(live.render().transcript)  # the request body may also contain cache marks
    return (
        lambda: b"".join(chain.from_iterable(live.render_walk().write_fragments())),
        lambda: json.dumps(finished, ensure_ascii=False, separators=(",", ":")).encode(),
    )


def decoding_works(name: str) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return two functions that decode the same answer: with the decoder of the dialect, and with `json.loads`."""
    text = (_TEXT * DELTAS)[: DELTAS * _FRAGMENT]
    request = {"model": "model-1", "messages": [], "input": []}
    events = _dialect_wire(name).encode_events(Turn(Say(text), fragment=_FRAGMENT), request, 0)
    texts = _json_documents(name, events)

    def decode_events() -> None:
        decoder = decode(dialect(name), dialect_binding(name))
        for event in events:
            decoder.feed(event)
        assert decoder.close().text == text

    def loads() -> None:
        for text in texts:
            json.loads(text)

    return decode_events, loads


def _dialect_wire(name: str) -> Wire:
    return strict_server(name)._wire


def _json_documents(name: str, events: Sequence[bytes]) -> list[str]:
    """Return the JSON documents in a stream of server-sent events or Bedrock frames."""
    if name.startswith("bedrock"):  # the JSON of a frame is between its headers and a checksum of four bytes
        return [event[event.index(b"{", 12) : -4].decode() for event in events]
    lines = (line for event in events for line in event.splitlines() if line.startswith(b"data: {"))
    return [line.removeprefix(b"data: ").decode() for line in lines]


def _dialects(options: Extent) -> Sequence[str]:
    return FAMILIES if options.quick else tuple(PROFILES)


def _measure_p2e(options: Extent) -> list[Figure]:
    rows = []
    for name in _dialects(options):
        passes = interleave(
            5 if options.quick else 15, *(partial(cpu_ms, work) for work in encoding_works(name))
        )
        rows.append(passes.fill(Figure("P2E", _QUESTIONS["P2E"], name, "ms", 1.1)))
    return rows


def _measure_p2d(options: Extent) -> list[Figure]:
    rows = []
    for name in _dialects(options):
        passes = interleave(
            3 if options.quick else 25, *(partial(_mean_cpu_ms, work) for work in decoding_works(name))
        )
        limit, note = (8.0, "includes frames and checksums") if name == "bedrock" else (5.0, "")
        rows.append(passes.fill(Figure("P2D", _QUESTIONS["P2D"], name, "ms", limit, note=note)))
    return rows


def _mean_cpu_ms(work: Callable[[], object]) -> float:
    return cpu_ms(lambda: [work() for _ in range(ANSWERS)]) / ANSWERS


_QUESTIONS = {
    "P2E": "2,000 messages encoded, against json.dumps",
    "P2D": "200 deltas decoded, against json.loads",
}
MEASURES = (
    Measure("P2E", _QUESTIONS["P2E"], _measure_p2e),
    Measure("P2D", _QUESTIONS["P2D"], _measure_p2d),
)
