"""Cache marks: spliced into a request's text when its body is put together.

A lane's segments are immutable, and no mark is in them. The segment in which a mark stands is cut there, and every
other goes out as it is.

Two places of a lane are marked. An entry is written where a request ends, so the end of the lane's previous request is
where it is found, however much came since; the end of this one is where the next request will look.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from actors.adapters.request import Settings
from actors.core.dialect import Dialect
from actors.core.jsonio import quote
from actors.core.transcript import TranscriptFacts

Splice: TypeAlias = Callable[[bytes, int, bytes], tuple[bytes, ...]]
"""Takes a segment, the place in it where a block or a message ends, and a mark; returns what to send in its place."""


def mark(settings: Settings, dialect: Dialect) -> bytes:
    """Return what marks a block, as its last key, or the point that stands behind it; empty where nothing is marked."""
    caching = dialect.caching
    if settings.cache == "off" or caching.marks == "none":
        return b""
    if caching.marks == "point":
        return _POINTS[settings.cache]
    return _CONTROLS[settings.cache]


_CONTROLS = {
    "default": b',"cache_control":{"type":"ephemeral"}',
    "long": b',"cache_control":{"type":"ephemeral","ttl":"1h"}',
}
_POINTS = {
    "default": b',{"cachePoint":{"type":"default"}}',
    "long": b',{"cachePoint":{"type":"default","ttl":"1h"}}',
}


def marked(
    segments: Sequence[bytes], settings: Settings, dialect: Dialect, facts: TranscriptFacts, closing: bytes
) -> Sequence[bytes]:
    """Return a lane's segments with marks at the end of what was sent before, and at their own.

    Args:
        segments: The lane's text, its last message closed by `closing`.
        settings: As the dialect takes them.
        dialect: The profile.
        facts: How much of the text was sent before.
        closing: What closes the last message, which is no part of the lane.
    """
    wanted = mark(settings, dialect)
    if not wanted:
        return segments
    size = sum(map(len, segments))
    end = size - len(closing)
    places = [facts.before] if 0 < facts.before < end else []
    if end > 0 and not dialect.caching.moving:
        places.append(end)
    splice = _SPLICES[dialect.caching.marks]
    for place in places:  # counted from the end, so that what is spliced in ahead moves nothing
        segments = _spliced(segments, size - place, wanted, splice)
    return segments


def _spliced(segments: Sequence[bytes], rest: int, wanted: bytes, splice: Splice) -> Sequence[bytes]:
    """Return segments with a mark ahead of the last `rest` bytes, which is behind the last of a block or message.

    It is looked for from the end: a long lane is marked in what the last requests added.
    """
    for number in range(len(segments) - 1, -1, -1):
        segment = segments[number]
        if rest < len(segment):
            first, place = number, len(segment) - rest
            while first and splice is _on_part and not _has_content(segment, place):
                first -= 1  # a long result is a segment of its own, and the message around it three
                segment, place = segments[first] + segment, place + len(segments[first])
            return (*segments[:first], *splice(segment, place, wanted), *segments[number + 1 :])
        rest -= len(segment)
    return segments


def _has_content(segment: bytes, end: int) -> bool:
    """Say whether the content of the message that ends there begins in this segment, or is a list that ends in it."""
    return segment[max(end - 3, 0) : end].endswith(b"}]}") or segment.rfind(_CONTENT, 0, end) >= 0


def _behind(segment: bytes, end: int, wanted: bytes) -> tuple[bytes, ...]:
    return segment[:end], wanted, segment[end:]


def _on_block(segment: bytes, end: int, wanted: bytes) -> tuple[bytes, ...]:
    return segment[: end - 1], wanted, segment[end - 1 :]


def _on_part(segment: bytes, end: int, wanted: bytes) -> tuple[bytes, ...]:
    """Mark the last part of a message. Content that is one string becomes a list of one part, which says the same.

    Its content is its last key. Quotes within a string are escaped, so the key is found from behind.
    """
    if segment[end - 2 : end] == b"]}":
        return segment[: end - 3], wanted, segment[end - 3 :]
    start = segment.rindex(_CONTENT, 0, end) + len(_CONTENT)
    said = segment[start : end - 1]
    return segment[:start], b'[{"type":"text","text":', said, wanted, b"}]", segment[end - 1 :]


_CONTENT = b'"content":'
_SPLICES: dict[str, Splice] = {"block": _on_block, "point": _behind, "part": _on_part}


def routed(settings: Settings, dialect: Dialect, facts: TranscriptFacts) -> bytes:
    """Return the keys that lead a request to the machine that has its lane; empty where there are none."""
    if settings.cache == "off" or not dialect.caching.keyed:
        return b""
    named = b',"prompt_cache_key":' + quote(facts.lane) if facts.lane else b""
    keeps = settings.cache == "long" and dialect.caching.long == "retention"
    return named + (b',"prompt_cache_retention":"24h"' if keeps else b"")
