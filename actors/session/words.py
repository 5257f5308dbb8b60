"""What an ask says, as a caller gives it, and as it is kept."""

from collections.abc import Sequence
from typing import TypeAlias

from actors.core.values.content import Media, Message, Text
from actors.core.values.packed import Packed, pack, packed_for_host
from actors.errors import MediaError, SessionError

Words: TypeAlias = str | Message | Sequence[str | Text | Media]
"""What an ask says: a text, a message, or texts, images and documents in their order."""


def _part(number: int, part: object) -> Text | Media:
    """Return a part of what an ask says."""
    if isinstance(part, str):
        return Text(part)
    if isinstance(part, Text | Media):
        return part
    raise SessionError(f"An ask takes texts, Text and Media; part {number} is of type {type(part).__name__}")


def packed_words(words: Words) -> Packed:
    """Return what an ask says, as it is kept."""
    if isinstance(words, str):
        return pack(Message("user", (Text(words),)))
    if isinstance(words, list | tuple):
        if not words:
            raise SessionError("An ask says something; this is an empty list")
        return _taken(Message("user", [_part(number, part) for number, part in enumerate(words)]))
    return _taken(words)


def _taken(message: object) -> Packed:
    try:
        packed = packed_for_host(message)
    except ValueError as error:
        raise SessionError(f"An ask takes a text or a Message: {error}") from None
    assert isinstance(message, Message)
    if message.role != "user":
        raise SessionError(f"An ask takes a message of role 'user', not of role {message.role!r}")
    for number, block in enumerate(message.blocks):
        part = _part(number, block)
        if isinstance(part, Media) and (damage := part.damage) is not None:
            raise MediaError(
                f"Part {number} of the ask, of type {part.media_type!r}, cannot be used: {damage}"
            )
    return packed
