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
    """Return a decoder for one answer, of a nameless backend if there is no binding; see `actors.adapters.base`."""
    binding = binding or Binding(profile.name, profile.name)
    return codec(profile.family).decoder(profile, binding, first_call, turn, names, stream=stream)
