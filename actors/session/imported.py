"""The history that a session begins with, as a host gives it: read here for the first time, and refused here."""

from collections.abc import Iterable
from functools import partial

from msgspec import MsgspecError

from actors.core.history.history import History, from_packed
from actors.core.log.events import Opened
from actors.core.session.state import opening
from actors.core.values.content import Message
from actors.core.values.packed import Packed, packed_for_host
from actors.errors import TranscriptError
from actors.kernel.turnstile import compute


def opened_on(name: str, target: str, history: History) -> Opened:
    """Return the first event of a session. What a host has put into a history is read here for the first time."""
    try:
        return opening(name, target, history)
    except MsgspecError as error:
        raise TranscriptError(f"messages: a block or a field of one has the wrong type: {error}") from None


LONG = 256
"""Messages that are read while the event loop waits: some milliseconds."""


async def beginning(messages: Iterable[Message]) -> History:
    """Return a history to begin with. An invalid message would otherwise fail only in the actor that keeps it.

    Many messages are read in a thread. Pairing calls with results goes over all of them several times, so it has no
    slices between which the event loop could come round.
    """
    if isinstance(messages, History):
        return messages
    came = tuple(messages)
    return await compute(partial(_history_of, came), is_long=len(came) > LONG)


def _history_of(came: tuple[Message, ...]) -> History:
    packed = list[Packed]()
    for number, message in enumerate(came):
        try:
            packed.append(packed_for_host(message))
        except ValueError as error:
            raise TranscriptError(
                f"messages[{number}]: {error}; a provider's own are read by from_wire(messages, dialect)"
            ) from None
    return from_packed(came, packed)
