"""The decoder for an answer, by dialect."""

from collections.abc import Mapping

from actors.adapters.assembly import Assembly
from actors.adapters.base import AnswerReader, BodyDecoder, StreamDecoder
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
) -> StreamDecoder:
    """Return a decoder for one streamed answer.

    Args:
        profile: The dialect the provider speaks.
        binding: Who is answering; without it, a nameless backend of this dialect.
        first_call: Number of the first canonical id to mint.
        turn: Number of the turn the message belongs to.
        names: `Request.names` of what is being answered: tools the provider knows by another name.
    """
    return StreamDecoder(_reader(profile, binding, first_call, turn, names), codec(profile.family).frames())


def decode_body(
    profile: Dialect,
    binding: Binding | None = None,
    *,
    first_call: int = 1,
    turn: int = 0,
    names: Mapping[str, str] | None = None,
) -> BodyDecoder:
    """Return a decoder for one answer that is not streamed. Arguments as for `decode`."""
    return BodyDecoder(_reader(profile, binding, first_call, turn, names))


def _reader(
    profile: Dialect, binding: Binding | None, first_call: int, turn: int, names: Mapping[str, str] | None
) -> AnswerReader:
    binding = binding or Binding(profile.name, profile.name)
    assembly = Assembly(profile, binding, first_call=first_call, turn=turn, names=names)
    return codec(profile.family).reader(assembly, profile)
