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
        resumes = state.opens is not None and state.role is not None
        if resumes and state.blocks:
            del messages[0].blocks[0]
        elif state.opens is None and state.count:
            del messages[0]
        read(after, messages, resumes)
    except _DOUBTS:
        return None
    return None if after.faults else after


@cache
def _reading(family: str) -> tuple[msgspec.json.Decoder[list[Any]], Any]:  # Any: likewise
    """Return what decodes a list of messages, and what tells the state of them. Made when first wanted."""
    module = import_module(f"{__name__}.{family}")
    return msgspec.json.Decoder(module.MESSAGES), module.read
