"""Find the attachments of a request that its provider refused.

In:  the request body, and the provider's words.
Out: names of attachments (`actors.core.render.media_name`), in the order of the body.

Providers point at an attachment by its place (`messages.3.content.1.image.source`, `input[2].content[0].image_url`,
`contents[0].parts[1].inline_data`) or by its address, and often not at all. Places count what was sent, which only the
body knows: so the body is read. Requests are refused for their attachments rarely, so this need not be fast.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from actors.core.data.jsonio import JsonRefused, JsonValue, parse
from actors.core.values.identity import content_name

_MOST = 1 << 28
_DEPTH = 96
_LISTS = ("messages", "input", "contents")
"""The keys of a body below which messages stand, by family."""
_CALLS = frozenset(("input", "arguments", "args", "toolUse", "functionCall"))
"""Keys below which a model's own arguments stand, which hold no attachments."""
_PLACE = re.compile(r"\b(?:messages|input|contents)((?:[.\[]+\w+\]?)+)")
_DATA_URL = re.compile(r"data:[^,]{0,200};base64,")


class MediaPart(NamedTuple):
    """An attachment of a request: the indices that lead to it, its name, and its address where it has one."""

    place: tuple[int, ...]
    name: str
    url: str = ""


def media_parts(body: bytes) -> tuple[MediaPart, ...]:
    """Return the attachments of a request body of any family, in order; none if it is no JSON."""
    try:
        request = parse(body, max_bytes=_MOST, max_depth=_DEPTH)
    except JsonRefused:
        return ()
    if not isinstance(request, dict):
        return ()
    return tuple(found for key in _LISTS for found in _below(request.get(key), ()))


def named_media(words: str, parts: Iterable[MediaPart]) -> tuple[str, ...]:
    """Return the names of the attachments that a provider's words point at, by their place or their address."""
    places = [
        tuple(map(int, re.findall(r"(?<=[.\[])\d+(?=[.\]:]|$)", found))) for found in _PLACE.findall(words)
    ]
    pointed = [
        item.name
        for item in parts
        if (item.url and item.url in words) or any(_is_at(item.place, place) for place in places if place)
    ]
    return tuple(dict.fromkeys(pointed))


def _is_at(part: tuple[int, ...], place: tuple[int, ...]) -> bool:
    """Return True if one of two places leads to the other: words may name a message, or a page of a document."""
    least = min(len(part), len(place))
    return part[:least] == place[:least]


def _below(value: JsonValue, place: tuple[int, ...]) -> Iterator[MediaPart]:
    if isinstance(value, list):
        for at, item in enumerate(value):
            yield from _below(item, (*place, at))
    elif isinstance(value, dict):
        if content := _content(value):
            bare = _DATA_URL.sub("", content, count=1)
            yield MediaPart(place, content_name(bare), content if bare == content and "://" in bare else "")
            return
        for key, item in value.items():
            if key not in _CALLS:
                yield from _below(item, place)


def _content(block: dict[str, JsonValue]) -> str:
    """Return the data or the address of a block that is an attachment, as its family has it; else an empty string."""
    source = block.get("source") or block.get("image_url") or block.get("inlineData")
    if block.get("type") in ("input_image", "input_file"):
        source = block.get("image_url") or block.get("file_data") or block.get("file_url")
    if isinstance(source, str):
        return source
    if not isinstance(source, dict):
        return ""
    found = source.get("data") or source.get("url") or source.get("bytes")
    return found if isinstance(found, str) else ""
