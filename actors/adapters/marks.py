"""Cache marks: spliced into a request's text when its body is put together.

A lane's segments are immutable, and no mark is in them: the piece in which a mark stands is cut there. Two places of
a lane are marked. An entry is written where a request ends, so the end of the lane's previous request is where it is
found, however much came since; the end of this one is where the next request will look.
"""

from collections.abc import Mapping
from functools import lru_cache

from actors.adapters.request import Settings
from actors.adapters.request_head import Wire, written
from actors.core.data.jsonio import quote
from actors.core.data.segments import Segments
from actors.core.dialects.dialect import Cache, Dialect
from actors.core.transcript.transcript import TranscriptFacts

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
    if settings.cache != "long" or dialect.caching.long != "retention":
        return named
    return named + (_OPTIONS if dialect.model.cache == "options" else _RETENTION)


_RETENTION = b',"prompt_cache_retention":"24h"'
_OPTIONS = b',"prompt_cache_options":{"ttl":"12h"}'


def marked(
    segments: Segments, settings: Settings, dialect: Dialect, facts: TranscriptFacts, closing: bytes
) -> tuple[bytes, Segments]:
    """Return a mark for the whole request, and a lane's segments with marks where it ended before and ends now.

    `closing` closes the last message and is not part of the lane.
    """
    if settings.cache == "off" or dialect.caching.marks == "none" or not segments.size:
        return b"", segments
    wanted = _spliced_in(dialect.caching.marks, settings.cache)
    end = segments.size - len(closing)
    places = [end] if end > 0 and not dialect.caching.moving else []
    if 0 < facts.before < end:
        places.append(facts.before)
    for place in places:  # from behind, so that what is spliced in moves no place that follows
        segments = _spliced(segments, place, wanted, dialect.caching.marks)
    return wanted if dialect.caching.moving else b"", segments


def _spliced(segments: Segments, place: int, wanted: bytes, kind: str) -> Segments:
    """Return segments with a mark for what ends at `place`, behind the last of a block or message.

    It is looked for from the end: a long lane is marked in what the last requests added.
    """
    if place <= segments.paged:
        segments = segments.flatten()
    last, at = len(segments.recent), segments.size
    while at >= place:
        last -= 1
        at -= len(segments.recent[last])
    first, piece, end = last, segments.recent[last], place - at
    while first and kind == "part" and not _has_content(piece, end):
        first -= 1  # a long result is a piece of its own, and the message around it three
        piece, end = segments.recent[first] + piece, end + len(segments.recent[first])
    return segments.splice(first, last, _marked(piece, end, wanted, kind))


def _has_content(piece: bytes, end: int) -> bool:
    """Say whether the content of the message that ends there begins in this piece, or is a list that ends in it."""
    return piece[max(end - 3, 0) : end].endswith(b"}]}") or piece.rfind(_CONTENT, 0, end) >= 0


def _marked(piece: bytes, end: int, wanted: bytes, kind: str) -> tuple[bytes, ...]:
    """Return what to send for a piece in which a block or a message ends at `end`, and is to be marked.

    A mark stands behind it, in it, or in the last part of a message. Content that is one string becomes a list of one
    part, which says the same. It is the last key; quotes within a string are escaped, so it is found from behind.
    """
    if kind != "part" or piece[end - 2 : end] == b"]}":
        place = end - {"point": 0, "block": 1, "part": 3}[kind]
        return piece[:place], wanted, piece[place:]
    start = piece.rindex(_CONTENT, 0, end) + len(_CONTENT)
    said = piece[start : end - 1]
    return piece[:start], b'[{"type":"text","text":', said, wanted, b"}]", piece[end - 1 :]
