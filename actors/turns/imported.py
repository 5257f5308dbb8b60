"""The history that a session begins with, as a host gives it: read here for the first time, and refused here."""

from collections.abc import Iterable

from msgspec import MsgspecError

from actors.core.content import Message
from actors.core.events import Opened
from actors.core.history import History
from actors.core.packed import Packed, packed_for_host
from actors.core.state import opening
from actors.errors import TranscriptError


def opened_on(name: str, target: str, history: History) -> Opened:
    """Return the first event of a session. What a host has put into a history is read here for the first time."""
    try:
        return opening(name, target, history)
    except MsgspecError as error:
        raise TranscriptError(f"messages: a block or a field of one has the wrong type: {error}") from None


def beginning(messages: Iterable[Message]) -> History:
    """Return a history to begin with. An invalid message would otherwise fail only in the actor that keeps it."""
    if isinstance(messages, History):
        return messages
    came, packed = tuple(messages), list[Packed]()
    for number, message in enumerate(came):
        try:
            packed.append(packed_for_host(message))
        except ValueError as error:
            raise TranscriptError(
                f"messages[{number}]: {error}; a provider's own are read by from_wire(messages, dialect)"
            ) from None
    return History.came(came, packed)
