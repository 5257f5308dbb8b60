"""The first reading of a fragment: what our encoders usually write, decoded into types that hold nothing else.

Each family has a module with its types and a function that tells the family's state machine the same facts as the
whole reading does. It judges nothing: what it has no type for, and what looks unusual, is a doubt, and so is a fault
that the state machine finds. Then the judge reads the fragment whole, and only that reading counts.
"""

from functools import cache
from importlib import import_module
from typing import Any, TypeVar

import msgspec

from actors.core.check.state import CheckState
from actors.core.check.typed.literals import Doubt

S = TypeVar("S", bound=CheckState)
_DOUBTS = (Doubt, msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def accepted(state: S, text: bytes) -> S | None:
    """Return the state after an array of messages that plainly keeps every rule; None at any doubt.

    Args:
        state: The state before it, which stays as it was.
        text: The array. A 0 at its head, or at the head of the message left open, stands for what was read before.
    """
    decoder, read = _reading(state.dialect.family)
    after = state.copy()
    try:
        messages = decoder.decode(text)
        if state.opens is None:
            for message in messages[1:] if state.count else messages:
                read(after, message)
        else:
            _feed(after, messages, read)
    except _DOUBTS:
        return None
    return None if after.faults else after


def _feed(state: Any, messages: list[Any], read: Any) -> None:  # Any: of the family's own types
    """Read messages of which the first goes on where the state stands, if it stands in one."""
    if state.role is not None:
        opened, *messages = messages
        if state.blocks:
            del opened.blocks[0]
        read(state, opened.blocks)
    for message in messages:
        state.open(message.role)
        read(state, message.blocks)


@cache
def _reading(family: str) -> tuple[msgspec.json.Decoder[list[Any]], Any]:  # Any: likewise
    """Return what decodes a list of messages, and what tells the state of one. Made when first wanted."""
    module = import_module(f"{__name__}.{family}")
    return msgspec.json.Decoder(module.MESSAGES), module.read
