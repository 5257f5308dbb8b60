"""The decoder for an answer, by dialect."""

from collections.abc import Mapping

from actors.adapters.assembly import Assembly
from actors.adapters.base import AnswerDecoder
from actors.adapters.codec import codec
from actors.core.dialect import Dialect
from actors.core.identity import Binding


def decode(
    profile: Dialect,
    binding: Binding | None = None,
    *,
    first_call: int = 1,
    turn: int = 0,
    names: Mapping[str, str] | None = None,
    stream: bool = True,
) -> AnswerDecoder:
    """Return a decoder for one answer.

    Args:
        profile: The dialect the provider speaks.
        binding: Who is answering; without it, a nameless backend of this dialect.
        first_call: Number of the first canonical id to mint.
        turn: Number of the turn the message belongs to.
        names: `Request.names` of what is being answered: tools the provider knows by another name.
        stream: Whether it comes as events, else as one JSON document.
    """
    binding = binding or Binding(profile.name, profile.name)
    assembly = Assembly(profile, binding, first_call=first_call, turn=turn, names=names)
    family = codec(profile.family)
    return AnswerDecoder(family.reader(assembly, profile), family.frames() if stream else None)
