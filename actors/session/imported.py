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


def opened_on(name: str, target: str, history: History) -> Opened:
    """Return the first event of a session. This encodes the history, and thereby checks the types of its fields."""
    try:
        return opening(name, target, history)
    except MsgspecError as error:
        raise TranscriptError(f"messages= contains a block or a field of a wrong type: {error}") from None


LONG = 256
"""Most messages that are packed in the event loop: some milliseconds. More are packed in a thread."""


async def beginning(messages: Iterable[Message]) -> History:
    """Return the initial history. Checking here raises errors to the caller instead of in the session's actors.

    Long histories are packed in a thread. Pairing calls with results passes over all messages several times, so it
    cannot be split into slices between which the event loop runs.
    """
    if isinstance(messages, History):
        return messages
    came = tuple(messages)
    return await compute(partial(_history_of, came), is_long=len(came) > LONG)


def _history_of(came: tuple[Message, ...]) -> History:
    packed = list[Packed]()
    for number, message in enumerate(came):
        try:
            packed.append(pack_host_message(message))
        except ValueError as error:
            raise TranscriptError(
                f"messages[{number}]: {error}; to convert a provider's own messages, use from_wire(messages, dialect)"
            ) from None
    return from_packed(came, packed)
