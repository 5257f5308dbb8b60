"""Insert cache marks into a request. A mark tells the provider to cache the prompt up to that position.

`actors.adapters.adapter` calls `routing_keys` and `add_marks`. The encoders call `block_mark` for tools and system
prompts. The encoded messages of a session are immutable segments without marks, so a segment is split where a mark is
inserted. Two positions are marked: the end of the previous request, and the end of this request. A provider writes a
cache entry at each mark. So the first mark finds the entry of the previous request, and the second mark creates the
entry for the next request.
"""

from collections.abc import Mapping
from functools import lru_cache

from actors.adapters.request import Settings
from actors.adapters.request_head import Wire, write_json
from actors.core.data.jsonio import quote
from actors.core.data.persistent import Segments
from actors.core.dialects.dialect import Cache, Dialect
from actors.core.transcript.transcript import TranscriptFacts

_CONTENT = b'"content":'


def block_mark(settings: Settings, dialect: Dialect) -> Mapping[str, Wire]:
    """Return the keys that mark a block for caching, or the cache point to add after it. The result is empty if the
    dialect has no cache marks.
    """
    kind = dialect.caching.marks
    return {} if settings.cache == "off" or kind == "none" else _mark_field(kind, settings.cache)


def _mark_field(kind: str, cache: Cache) -> Mapping[str, Wire]:
    key, says = ("cachePoint", "default") if kind == "point" else ("cache_control", "ephemeral")
    return {key: {"type": says, "ttl": "1h" if cache == "long" else None}}


@lru_cache
def _mark_bytes(kind: str, cache: Cache) -> bytes:
    """Return the bytes of a cache mark, to be inserted after the content of the marked block."""
    text = write_json(_mark_field(kind, cache))
    return b"," + (text if kind == "point" else text[1:-1])


def routing_keys(settings: Settings, dialect: Dialect, facts: TranscriptFacts) -> bytes:
    """Return the body fields that route a request to the machine that has cached its prompt, or b""."""
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
    """Return a cache mark for the complete request (or b""), and the segments with marks at the end of the previous
    request and at the end of this request.

    `closing` is the last bytes of `segments`, which close the last message. Marks are inserted before them.
    """
    if settings.cache == "off" or dialect.caching.marks == "none" or not segments.size:
        return b"", segments
    wanted = _mark_bytes(dialect.caching.marks, settings.cache)
    end = segments.size - len(closing)
    places = [end] if end > 0 and not dialect.caching.moving else []
    if 0 < facts.before < end:
        places.append(facts.before)
    for place in places:  # the last position first, so that a splice does not move the other position
        segments = _splice_mark(segments, place, wanted, dialect.caching.marks)
    return wanted if dialect.caching.moving else b"", segments


def _splice_mark(segments: Segments, position: int, mark: bytes, kind: str) -> Segments:
    """Return the segments with `mark` after the last block or message that ends at or before `position`.

    The search starts at the end, because the marks of a long conversation are in the segments of its latest requests.
    """
    if position <= segments.paged:
        segments = segments.flatten()
    last, at = len(segments.recent), segments.size
    while at >= position:
        last -= 1
        at -= len(segments.recent[last])
    first, piece, end = last, segments.recent[last], position - at
    while first and kind == "part" and not _has_content(piece, end):
        first -= 1  # a message with a long result consists of three segments
        piece, end = segments.recent[first] + piece, end + len(segments.recent[first])
    return segments.splice(first, last, _split_at_mark(piece, end, mark, kind))


def _has_content(piece: bytes, end: int) -> bool:
    """Return True if `piece` contains the content, or the end of the block list, of the message that ends at `end`."""
    return piece[max(end - 3, 0) : end].endswith(b"}]}") or piece.rfind(_CONTENT, 0, end) >= 0


def _split_at_mark(piece: bytes, end: int, mark: bytes, kind: str) -> tuple[bytes, ...]:
    """Split a segment and insert the mark for the block or message that ends at `end`.

    Depending on the dialect, the mark is inserted after the block, inside it, or inside the last part of a message.
    Content that is a single string becomes a list of one part, with the same meaning. `content` is the last key of a
    message, and quotation marks inside a string are escaped, so a backward search finds the key.
    """
    if kind != "part" or piece[end - 2 : end] == b"]}":
        place = end - {"point": 0, "block": 1, "part": 3}[kind]
        return piece[:place], mark, piece[place:]
    start = piece.rindex(_CONTENT, 0, end) + len(_CONTENT)
    said = piece[start : end - 1]
    return piece[:start], b'[{"type":"text","text":', said, mark, b"}]", piece[end - 1 :]
