"""The decoder for an answer, by dialect."""

from collections.abc import Mapping

from actors.adapters.base import Decoder
from actors.adapters.codec import codec
from actors.core.dialect import Dialect
from actors.core.identity import Binding


def decode(
    profile: Dialect,
    binding: Binding | None = None,
    *,
    stream: bool = True,
    first_call: int = 1,
    turn: int = 0,
    names: Mapping[str, str] | None = None,
) -> Decoder:
    """Return a decoder for one answer.

    Args:
        profile: The dialect the provider speaks.
        binding: Who is answering; without it, a nameless backend of this dialect.
        stream: Whether the answer is streamed; else it is one JSON document, whose events are in `late` after `close`.
        first_call: Number of the first canonical id to mint.
        turn: Number of the turn the message belongs to.
        names: `Request.names` of what is being answered: tools the provider knows by another name.
    """
    binding = binding or Binding(profile.name, profile.name)
    return codec(profile.family).decoder(profile, binding, first_call, turn, names, stream=stream)
