"""Cache marks: spliced into a request's text when its body is put together.

A lane's segments are immutable, and no mark is in them: the segment in which a mark stands is cut there. Two places of
a lane are marked. An entry is written where a request ends, so the end of the lane's previous request is where it is
found, however much came since; the end of this one is where the next request will look.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from actors.adapters.preamble import Wire, written
from actors.adapters.request import Settings
from actors.core.caching import Cache
from actors.core.dialect import Dialect
from actors.core.jsonio import quote
from actors.core.transcript import TranscriptFacts

_CONTENT = b'"content":'


def mark(settings: Settings, dialect: Dialect) -> Mapping[str, Wire]:
    """Return what marks a block: its last key, or the point that stands behind it; empty where nothing is marked."""
    kind = dialect.caching.marks
    return {} if settings.cache == "off" or kind == "none" else _mark(kind, settings.cache)


def _mark(kind: str, cache: Cache) -> Mapping[str, Wire]:
    key, says = ("cachePoint", "default") if kind == "point" else ("cache_control", "ephemeral")
    return {key: {"type": says, "ttl": "1h" if cache == "long" else None}}


@lru_cache
def _spliced_in(kind: str, cache: Cache) -> bytes:
    """Return a mark as it stands behind what is marked."""
    text = written(_mark(kind, cache))
    return b"," + (text if kind == "point" else text[1:-1])


def routed(settings: Settings, dialect: Dialect, facts: TranscriptFacts) -> bytes:
    """Return the keys that lead a request to the machine that has its lane; empty where there are none."""
    if settings.cache == "off" or not dialect.caching.keyed:
        return b""
    named = b',"prompt_cache_key":' + quote(facts.lane) if facts.lane else b""
    keeps = settings.cache == "long" and dialect.caching.long == "retention"
    return named + (b',"prompt_cache_retention":"24h"' if keeps else b"")


def marked(
    segments: Sequence[bytes], settings: Settings, dialect: Dialect, facts: TranscriptFacts, closing: bytes
) -> tuple[bytes, Sequence[bytes]]:
    """Return a mark for the whole request, and a lane's segments with marks where it ended before and ends now.

    `closing` closes the last message and is not part of the lane. Its segments are too many to be measured each time.
    """
    if settings.cache == "off" or dialect.caching.marks == "none" or not segments:
        return b"", segments
    wanted = _spliced_in(dialect.caching.marks, settings.cache)
    end = facts.size or sum(map(len, segments)) - len(closing)
    places = [facts.before] if 0 < facts.before < end else []
    if end > 0 and not dialect.caching.moving:
        places.append(end)
    for place in places:  # counted from the end, so that what is spliced in ahead moves nothing
        segments = _spliced(segments, end + len(closing) - place, wanted, dialect.caching.marks)
    return wanted if dialect.caching.moving else b"", segments


def _spliced(segments: Sequence[bytes], rest: int, wanted: bytes, kind: str) -> Sequence[bytes]:
    """Return segments with a mark ahead of the last `rest` bytes, which is behind the last of a block or message.

    It is looked for from the end: a long lane is marked in what the last requests added.
    """
    for number in range(len(segments) - 1, -1, -1):
        segment = segments[number]
        if rest < len(segment):
            first, place = number, len(segment) - rest
            while first and kind == "part" and not _has_content(segment, place):
                first -= 1  # a long result is a segment of its own, and the message around it three
                segment, place = segments[first] + segment, place + len(segments[first])
            return (*segments[:first], *_marked(segment, place, wanted, kind), *segments[number + 1 :])
        rest -= len(segment)
    return segments


def _has_content(segment: bytes, end: int) -> bool:
    """Say whether the content of the message that ends there begins in this segment, or is a list that ends in it."""
    return segment[max(end - 3, 0) : end].endswith(b"}]}") or segment.rfind(_CONTENT, 0, end) >= 0


def _marked(segment: bytes, end: int, wanted: bytes, kind: str) -> tuple[bytes, ...]:
    """Return what to send for a segment in which a block or a message ends at `end`, and is to be marked.

    A mark stands behind it, in it, or in the last part of a message. Content that is one string becomes a list of one
    part, which says the same. It is the last key; quotes within a string are escaped, so it is found from behind.
    """
    if kind != "part" or segment[end - 2 : end] == b"]}":
        place = end - {"point": 0, "block": 1, "part": 3}[kind]
        return segment[:place], wanted, segment[place:]
    start = segment.rindex(_CONTENT, 0, end) + len(_CONTENT)
    said = segment[start : end - 1]
    return segment[:start], b'[{"type":"text","text":', said, wanted, b"}]", segment[end - 1 :]
