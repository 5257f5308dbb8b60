"""Convert messages that callers pass to the form that the history and the log store.

These are the message of an ask, and the initial history of a session.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TypeAlias

from msgspec import MsgspecError

from actors.core.history.history import History, from_packed
from actors.core.log.events import Opened
from actors.core.session.state import opening_event
from actors.core.values.content import Media, Message, Text
from actors.core.values.packed import Packed, pack, pack_host_message
from actors.errors import MediaError, SessionError, TranscriptError
from actors.kernel.turnstile import compute

UserInput: TypeAlias = str | Message | Sequence[str | Text | Media]
"""The message of an ask: a string, a `Message`, or a sequence of strings, images and documents."""


def _to_block(index: int, message_part: object) -> Text | Media:
    """Convert a part of a message to a block. `index` is the position of the part in the message.

    Raises:
        SessionError: The part is neither a string nor a `Text` or `Media` block.
    """
    if isinstance(message_part, str):
        return Text(message_part)
    if isinstance(message_part, Text | Media):
        return message_part
    raise SessionError(
        f"Part {index} of the message must be a string, Text or Media, not {type(message_part).__name__}"
    )


def pack_user_input(message: UserInput) -> Packed:
    """Check and pack the message of an ask.

    Raises:
        SessionError: The message is empty, has a role other than `user`, or contains a part of an unsupported type.
        MediaError: An attachment is damaged.
    """
    if isinstance(message, str):
        return pack(Message("user", (Text(message),)))
    if isinstance(message, list | tuple):
        if not message:
            raise SessionError("The message of an ask is an empty list; pass at least one part")
        return _pack_message(
            Message("user", [_to_block(number, part) for number, part in enumerate(message)])
        )
    return _pack_message(message)


def _pack_message(message: object) -> Packed:
    """Check and pack a message that consists of blocks. Raises the errors of `pack_user_input`."""
    try:
        packed = pack_host_message(message)
    except ValueError as error:
        raise SessionError(f"The message of an ask must be a string or a valid Message: {error}") from None
    assert isinstance(message, Message)
    if message.role != "user":
        raise SessionError(f"The message of an ask must have role 'user', not {message.role!r}")
    for number, block in enumerate(message.blocks):
        part = _to_block(number, block)
        if isinstance(part, Media) and (damage := part.damage) is not None:
            raise MediaError(
                f"Part {number} of the ask, of type {part.media_type!r}, cannot be used: {damage}"
            )
    return packed


def opened_event(name: str, target: str, history: History) -> Opened:
    """Return the `Opened` event of a new session, after checking the types of all fields in the history.

    Raises:
        TranscriptError: A message contains a value of a wrong type.
    """
    try:
        return opening_event(name, target, history)
    except MsgspecError as error:
        raise TranscriptError(f"messages= contains a value of the wrong type: {error}") from None


LONG = 256
"""Maximum number of messages that the event loop packs, in a few milliseconds. A thread packs longer histories."""


async def initial_history(messages: Iterable[Message]) -> History:
    """Return the initial history of a session, after checking the messages.

    A thread packs long histories. Matching calls with results reads all messages several times, so this work cannot be
    split into slices for the event loop.

    Raises:
        TranscriptError: A message is invalid, or `messages` is not iterable.
    """
    if isinstance(messages, History):
        return messages
    given: object = messages  # callers may pass any value
    if not isinstance(given, Iterable):
        raise TranscriptError(f"messages= takes a list of Message objects, not {type(given).__name__}")
    items = tuple(messages)
    return await compute(partial(_pack_history, items), is_long=len(items) > LONG)


def _pack_history(messages: tuple[Message, ...]) -> History:
    """Pack each message, and return a history of the messages.

    Raises:
        TranscriptError: A message is invalid.
    """
    packed = list[Packed]()
    for number, message in enumerate(messages):
        try:
            packed.append(pack_host_message(message))
        except ValueError as error:
            raise TranscriptError(
                f"messages[{number}] is invalid: {error}; to convert a provider's messages, "
                "use from_wire(messages, dialect)"
            ) from None
    return from_packed(messages, packed)
