"""Split the return value of a tool into the text and the media of its result.

The scheduler calls this module when a tool returns.

In:  any Python value.
Out: the value as JSON, and the media that it contains.

A `Media` object, alone or in a list or tuple, becomes an attachment of the result, and the strings in the same list
become lines of its text. A `Media` object deeper inside a value is ordinary data. Media that no provider could read, or
that are too large, are replaced by a note.

Splitting takes time in proportion to the value, up to the limits. A value that `is_large` is split in a thread, so that
it does not block the event loop.
"""

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

from actors.core.data.ingest import DEFAULT_LIMITS, ingest
from actors.core.data.jsonio import Json, sanitise
from actors.core.data.truncate import SizeLimits
from actors.core.values.content import Media

# Maximum size of all media in one result, in base64 characters. The strictest provider has this limit for one image.
MAX_MEDIA_BYTES = 5 * 1024 * 1024
MAX_MEDIA = 100  # maximum number of media in one result

LARGE_TEXT = 64 * 1024
LARGE_PARTS = 2000
"""The number of characters, and of values in containers, above which splitting takes milliseconds."""

_SERIES = frozenset({list, tuple, set, frozenset})
_MIME = re.compile(r"[A-Za-z0-9][\w.+-]*/[\w.+*-]+", re.ASCII).fullmatch
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}").fullmatch


def is_large(value: object) -> bool:
    """Return True if splitting this value would take milliseconds. The check stops as soon as this is certain."""
    if type(value) is str:
        return len(value) > LARGE_TEXT
    text, parts, pending = LARGE_TEXT, LARGE_PARTS, [value]
    while pending and text >= 0 and parts >= 0:
        item = pending.pop()
        kind = type(item)
        if kind is str or kind is bytes:
            text -= len(item)  # type: ignore[arg-type]  # the item has the type `kind`
        elif kind is dict:
            parts -= len(item)  # type: ignore[arg-type]  # as above
            pending.extend(islice(item.values(), LARGE_PARTS))  # type: ignore[attr-defined]  # as above
        elif kind in _SERIES:
            parts -= len(item)  # type: ignore[arg-type]  # as above
            pending.extend(islice(item, LARGE_PARTS))  # type: ignore[call-overload]  # as above
    return text < 0 or parts < 0


def split_output(
    value: Any,  # Any: a tool may return any value
    limits: SizeLimits = DEFAULT_LIMITS,
    *,
    plain_only: bool = False,
) -> tuple[Json, tuple[Media, ...]]:
    """Convert a tool's return value to JSON, and return the JSON and the media of the value.

    With `plain_only`, a value that is not plain data raises `ForeignValue`, as in `ingest`.
    """
    several: Sequence[object] = value
    items = several if type(value) is list or type(value) is tuple else (several,)
    if Media not in map(type, islice(items, limits.max_items)):
        return ingest(several, limits, plain_only=plain_only).json, ()
    others: list[object] = []
    media: list[Media] = []
    room = MAX_MEDIA_BYTES
    for item in islice(items, limits.max_items):
        if type(item) is not Media:
            others.append(item)
        elif (why := _replacement_note(item, room, len(media))) is not None:
            others.append(why)
        else:
            media.append(Media(item.media_type, item.data, sanitise(item.url)))
            room -= len(item.data) + len(item.url)
    if len(items) > limits.max_items:
        others.append(f"[{len(items) - limits.max_items} more items cut]")
    is_text = all(type(item) is str for item in others)
    content = "\n".join(map(str, others)) if is_text else others[0] if len(others) == 1 else others
    return ingest(content, limits, plain_only=plain_only).json, tuple(media)


def _replacement_note(media: Media, bytes_left: int, media_count: int) -> str | None:
    """Return the note that replaces an attachment; None if the result can contain the attachment.

    `bytes_left` is the number of bytes that are left for the result's media. `media_count` is the number of media that
    the result already contains.
    """
    media_type, data, url = media.media_type, media.data, media.url
    if not (type(media_type) is type(data) is type(url) is str and _MIME(media_type)):
        return "[An attachment was omitted here; its type, data or address is not a string.]"
    if bool(data) == bool(url) or (data and (len(data) % 4 or not _BASE64(data))):
        return f"[An attachment of type {media_type} was omitted here; it needs either base64 data or an address.]"
    size = len(data) + len(url)
    if size > bytes_left or media_count >= MAX_MEDIA:
        return f"[An attachment of type {media_type} was omitted here; its {size} bytes exceed the limit of a result.]"
    if (damage := media.damage) is not None:
        return f"[An attachment of type {media_type} was omitted here; it cannot be read: {damage}.]"
    return None
