"""Validate and pack the messages that a host passes as the initial history of a session."""

from collections.abc import Iterable
from functools import partial

from msgspec import MsgspecError

from actors.core.history.history import History, from_packed
from actors.core.log.events import Opened
from actors.core.session.state import opening
from actors.core.values.content import Message
from actors.core.values.packed import Packed, pack_host_message
from actors.errors import TranscriptError
from actors.kernel.turnstile import compute


def opened_event(name: str, target: str, history: History) -> Opened:
    """Return the `Opened` event of a new session, after checking the types of all fields in the history.

    Raises:
        TranscriptError: A message contains a value of a wrong type.
    """
    try:
        return opening(name, target, history)
    except MsgspecError as error:
        raise TranscriptError(f"messages= contains a value of the wrong type: {error}") from None


LONG = 256
"""Maximum number of messages that the event loop packs, in a few milliseconds. A thread packs longer histories."""


async def initial_history(messages: Iterable[Message]) -> History:
    """Return the initial history of a session, after checking the messages.

    A thread packs long histories. Matching calls with results reads all messages several times, so this work cannot be
    split into slices for the event loop.

    Raises:
        TranscriptError: A message is invalid.
    """
    if isinstance(messages, History):
        return messages
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
