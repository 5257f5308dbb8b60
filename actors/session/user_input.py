"""Convert the message of an ask, as the caller passes it, to the packed message that history and log share."""

from collections.abc import Sequence
from typing import TypeAlias

from actors.core.values.content import Media, Message, Text
from actors.core.values.packed import Packed, pack, pack_host_message
from actors.errors import MediaError, SessionError

UserInput: TypeAlias = str | Message | Sequence[str | Text | Media]
"""The message of an ask: a string, a `Message`, or strings, images and documents in order."""


def _part(number: int, part: object) -> Text | Media:
    """Return a part of a message as a block."""
    if isinstance(part, str):
        return Text(part)
    if isinstance(part, Text | Media):
        return part
    raise SessionError(
        f"An ask takes strings, Text and Media; part {number} is of type {type(part).__name__}"
    )


def pack_user_input(message: UserInput) -> Packed:
    """Return the message of an ask, packed.

    Raises:
        SessionError: The message is empty, has another role than `user`, or a part of it has an unsupported type.
        MediaError: An attachment is damaged.
    """
    if isinstance(message, str):
        return pack(Message("user", (Text(message),)))
    if isinstance(message, list | tuple):
        if not message:
            raise SessionError("The message of an ask is an empty list; pass at least one part")
        return _pack_message(Message("user", [_part(number, part) for number, part in enumerate(message)]))
    return _pack_message(message)


def _pack_message(message: object) -> Packed:
    try:
        packed = pack_host_message(message)
    except ValueError as error:
        raise SessionError(f"An ask takes a string or a Message: {error}") from None
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
