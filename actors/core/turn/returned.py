"""What a tool returned, as its result holds it: words, and media beside them.

In:  any Python value.
Out: JSON, ingested once, and the media that the value was or listed.

A `Media`, alone or in a list or tuple, is taken out and shown to the model as what it is. The words around it
are joined line by line; deeper inside a value it is data like any other. One that no provider could read, or that is
too large, leaves a text where it stood that says its type and why.

To read a value costs time up to the limits, however large it is; for one that `is_large` that is long enough to be done
apart from the event loop.
"""

import re
from itertools import islice

from actors.core.data.ingest import DEFAULT_LIMITS, ingest
from actors.core.data.jsonio import Json, sanitise
from actors.core.data.truncate import SizeLimits
from actors.core.values.content import Media

# of one result, base64 as written: what the strictest provider takes of one image
MAX_MEDIA_BYTES = 5 * 1024 * 1024
MAX_MEDIA = 100  # in one result

LARGE_TEXT = 64 * 1024
LARGE_PARTS = 2000
"""Characters, and values in containers, from which reading takes milliseconds."""

_SERIES = frozenset({list, tuple, set, frozenset})
_MIME = re.compile(r"[A-Za-z0-9][\w.+-]*/[\w.+*-]+", re.ASCII).fullmatch
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}").fullmatch


def is_large(value: object) -> bool:
    """Say whether a value holds so much that reading it takes long. Looks at no more than that much of it."""
    if type(value) is str:
        return len(value) > LARGE_TEXT
    text, parts, pending = LARGE_TEXT, LARGE_PARTS, [value]
    while pending and text >= 0 and parts >= 0:
        item = pending.pop()
        kind = type(item)
        if kind is str or kind is bytes:
            text -= len(item)  # type: ignore[arg-type]  # it is one of the two
        elif kind is dict:
            parts -= len(item)  # type: ignore[arg-type]  # as above
            pending.extend(islice(item.values(), LARGE_PARTS))  # type: ignore[attr-defined]  # as above
        elif kind in _SERIES:
            parts -= len(item)  # type: ignore[arg-type]  # as above
            pending.extend(islice(item, LARGE_PARTS))  # type: ignore[call-overload]  # as above
    return text < 0 or parts < 0


def parted(
    value: object, limits: SizeLimits = DEFAULT_LIMITS, *, plain_only: bool = False
) -> tuple[Json, tuple[Media, ...]]:
    """Return what a tool returned as a result's words and its media.

    Raises nothing, but what `ingest` does with `plain_only`.
    """
    items = value if type(value) is list or type(value) is tuple else (value,)
    if Media not in map(type, islice(items, limits.max_items)):
        return ingest(value, limits, plain_only=plain_only).json, ()
    words: list[object] = []
    media: list[Media] = []
    room = MAX_MEDIA_BYTES
    for item in islice(items, limits.max_items):
        if type(item) is not Media:
            words.append(item)
        elif (why := _why_not(item, room, len(media))) is not None:
            words.append(why)
        else:
            media.append(Media(item.media_type, item.data, sanitise(item.url)))
            room -= len(item.data) + len(item.url)
    if len(items) > limits.max_items:
        words.append(f"[{len(items) - limits.max_items} more items cut]")
    is_text = all(type(item) is str for item in words)
    said = "\n".join(map(str, words)) if is_text else words[0] if len(words) == 1 else words
    return ingest(said, limits, plain_only=plain_only).json, tuple(media)


def _why_not(media: Media, room: int, count: int) -> str | None:
    """Return what is said in the place of media that cannot be kept; None where they can."""
    media_type, data, url = media.media_type, media.data, media.url
    if not (type(media_type) is type(data) is type(url) is str and _MIME(media_type)):
        return "[An attachment stood here whose type, data or address is not a text as it must be.]"
    if bool(data) == bool(url) or (data and (len(data) % 4 or not _BASE64(data))):
        return (
            f"[An attachment of type {media_type} stood here; it holds neither base64 text nor an address.]"
        )
    size = len(data) + len(url)
    if size > room or count >= MAX_MEDIA:
        return (
            f"[An attachment of type {media_type} stood here; its {size} bytes were too much for one result.]"
        )
    if (damage := media.damage) is not None:
        return f"[An attachment of type {media_type} stood here that cannot be read: {damage}.]"
    return None
