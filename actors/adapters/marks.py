"""Splice cache marks into the text of a request when its body is put together.

`actors.adapters.adapter` uses it. A lane's segments are immutable and contain no marks, so a segment is split where a
mark goes. Two places of a lane are marked. A provider writes a cache entry at a mark, where the request ends. So the
mark at the end of the lane's previous request finds that entry, and the mark at the end of this request creates the
entry for the next.
"""

from collections.abc import Mapping
from functools import lru_cache

from actors.adapters.request import Settings
from actors.adapters.request_head import Wire, write_json
from actors.core.data.jsonio import quote
from actors.core.data.segments import Segments
from actors.core.dialects.dialect import Cache, Dialect
from actors.core.transcript.transcript import TranscriptFacts

_CONTENT = b'"content":'


def mark(settings: Settings, dialect: Dialect) -> Mapping[str, Wire]:
    """Return the key that marks a block, or the cache point after it; empty if the dialect has no marks."""
    kind = dialect.caching.marks
    return {} if settings.cache == "off" or kind == "none" else _mark(kind, settings.cache)


def _mark(kind: str, cache: Cache) -> Mapping[str, Wire]:
    key, says = ("cachePoint", "default") if kind == "point" else ("cache_control", "ephemeral")
    return {key: {"type": says, "ttl": "1h" if cache == "long" else None}}


@lru_cache
def _spliced_in(kind: str, cache: Cache) -> bytes:
    """Return the bytes of a mark, as they follow the marked block."""
    text = write_json(_mark(kind, cache))
    return b"," + (text if kind == "point" else text[1:-1])


def routing_keys(settings: Settings, dialect: Dialect, facts: TranscriptFacts) -> bytes:
    """Return the keys that route a request to the machine with its cached lane; empty if there are none."""
    if settings.cache == "off" or not dialect.caching.cache_key:
        return b""
    named = b',"prompt_cache_key":' + quote(facts.lane) if facts.lane else b""
    if settings.cache != "long" or dialect.caching.long_lifetime != "retention":
        return named
    return named + (_OPTIONS if dialect.model.cache == "options" else _RETENTION)


_RETENTION = b',"prompt_cache_retention":"24h"'
_OPTIONS = b',"prompt_cache_options":{"ttl":"12h"}'


def add_marks(
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
    for place in places:  # from the end, so that a splice does not move the remaining places
        segments = _splice(segments, place, wanted, dialect.caching.marks)
    return wanted if dialect.caching.moving else b"", segments


def _splice(segments: Segments, place: int, wanted: bytes, kind: str) -> Segments:
    """Return segments with a mark after the last block or message that ends at `place`.

    The search starts at the end, since marks of a long lane are in the segments of its latest requests.
    """
    if place <= segments.paged:
        segments = segments.flatten()
    last, at = len(segments.recent), segments.size
    while at >= place:
        last -= 1
        at -= len(segments.recent[last])
    first, piece, end = last, segments.recent[last], place - at
    while first and kind == "part" and not _has_content(piece, end):
        first -= 1  # a long result is a segment of its own, and its message has three
        piece, end = segments.recent[first] + piece, end + len(segments.recent[first])
    return segments.splice(first, last, _mark_piece(piece, end, wanted, kind))


def _has_content(piece: bytes, end: int) -> bool:
    """Return True if the content of the message that ends at `end` begins in this piece, or is a list that ends in
    it."""
    return piece[max(end - 3, 0) : end].endswith(b"}]}") or piece.rfind(_CONTENT, 0, end) >= 0


def _mark_piece(piece: bytes, end: int, wanted: bytes, kind: str) -> tuple[bytes, ...]:
    """Return the pieces of a segment with a mark for the block or message that ends at `end`.

    Depending on the dialect, the mark stands after the block, in it, or in the last part of a message. Content that
    is a single string becomes a list of one part, with the same meaning. `content` is the last key, and quotes inside
    a string are escaped, so searching backwards finds the key.
    """
    if kind != "part" or piece[end - 2 : end] == b"]}":
        place = end - {"point": 0, "block": 1, "part": 3}[kind]
        return piece[:place], wanted, piece[place:]
    start = piece.rindex(_CONTENT, 0, end) + len(_CONTENT)
    said = piece[start : end - 1]
    return piece[:start], b'[{"type":"text","text":', said, wanted, b"}]", piece[end - 1 :]
