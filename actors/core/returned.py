"""What a tool returned, as its result holds it: words, and media beside them.

In:  any Python value.
Out: JSON, ingested once, and the media that the value was or listed.

A `Media`, alone or in a list or tuple, is taken out and shown to the model as what it is. The words around it
are joined line by line; deeper inside a value it is data like any other. One that no provider could read, or that is
too large, leaves a text where it stood that says its type and why.
"""

import re

from actors.core.content import Media
from actors.core.ingest import ingest
from actors.core.jsonio import Json, sanitised

# of one result, base64 as written: what the strictest provider takes of one image
MAX_MEDIA_BYTES = 5 * 1024 * 1024
MAX_MEDIA = 100  # in one result

_MIME = re.compile(r"[A-Za-z0-9][\w.+-]*/[\w.+*-]+", re.ASCII).fullmatch
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}").fullmatch


def parted(value: object) -> tuple[Json, tuple[Media, ...]]:
    """Return what a tool returned as a result's words and its media. Raises nothing."""
    items = value if type(value) is list or type(value) is tuple else (value,)
    if Media not in map(type, items):
        return ingest(value).json, ()
    words: list[object] = []
    media: list[Media] = []
    room = MAX_MEDIA_BYTES
    for item in items:
        if type(item) is not Media:
            words.append(item)
        elif (why := _why_not(item, room, len(media))) is not None:
            words.append(why)
        else:
            media.append(Media(item.mime, item.data, sanitised(item.url)))
            room -= len(item.data) + len(item.url)
    if all(type(item) is str for item in words):
        return ingest("\n".join(map(str, words))).json, tuple(media)
    return ingest(words[0] if len(words) == 1 else words).json, tuple(media)


def _why_not(media: Media, room: int, count: int) -> str | None:
    """Return what is said in the place of media that cannot be kept; None where they can."""
    mime, data, url = media.mime, media.data, media.url
    if not (type(mime) is type(data) is type(url) is str and _MIME(mime)):
        return "[An attachment stood here whose type, data or address is not a text as it must be.]"
    if bool(data) == bool(url) or (data and (len(data) % 4 or not _BASE64(data))):
        return f"[An attachment of type {mime} stood here; it holds neither base64 text nor an address.]"
    size = len(data) + len(url)
    if size > room or count >= MAX_MEDIA:
        return f"[An attachment of type {mime} stood here; its {size} bytes were too much for one result.]"
    return None
